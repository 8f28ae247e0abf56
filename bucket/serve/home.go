package serve

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"strings"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/bucket"
)

// Files in a server's home.
const (
	secretFile = "secret" // the root secret
	servedDir  = "served" // the objects

	secretBytesMax = 4 << 10
)

// CheckNames returns an error unless all names can be those of buckets.
func CheckNames(names []string) error {
	for _, name := range names { // whatever port the server will get
		if err := (bucket.Location{Endpoint: "localhost", Bucket: name}).Check(); err != nil {
			return fmt.Errorf("bucket %q: %w", name, err)
		}
	}
	return nil
}

// Home starts a server whose objects and root secret are in dir, which the caller has made and
// locked, and makes buckets with these names; see makeFor. It makes the secret unless there is one.
// The fields Dir and Secret of c are ignored.
func Home(ctx context.Context, dir string, names []string, public string, c Config) (*Server, error) {
	var err error
	if c.Secret, err = rootSecret(filepath.Join(dir, secretFile)); err != nil {
		return nil, err
	}
	c.Dir = filepath.Join(dir, servedDir)
	s, err := Start(ctx, c)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if err := s.makeFor(dir, name, public); err != nil {
			s.Close()
			return nil, fmt.Errorf("bucket %q: %w", name, err)
		}
	}
	return s, nil
}

// rootSecret reads the secret of a server, and makes it first if need be.
func rootSecret(path string) (string, error) {
	b, err := atomicfile.ReadBounded(path, secretBytesMax)
	if err == nil {
		return strings.TrimSpace(string(b)), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	random := make([]byte, 20)
	_, _ = rand.Read(random) // never fails
	secret := hex.EncodeToString(random)
	return secret, atomicfile.WriteBytes(path, 0o600, []byte(secret+"\n"))
}

// makeFor makes a bucket, unless it exists, and writes to dir the files NAME.write and NAME.read:
// its location with credentials to write, and the one that readers get, at the HOST or HOST:PORT in
// public unless that is "".
func (s *Server) makeFor(dir, name, public string) error {
	own, read, err := s.Make(name)
	if err != nil {
		return err
	}
	if _, _, err := net.SplitHostPort(public); err != nil && public != "" {
		if _, port, err := net.SplitHostPort(read.Endpoint); err == nil {
			public = net.JoinHostPort(strings.Trim(public, "[]"), port)
		}
	}
	read.Endpoint = cmp.Or(public, read.Endpoint)
	for suffix, l := range map[string]bucket.Location{".write": own, ".read": read} {
		if err := l.Check(); err != nil {
			return err
		}
		if err := atomicfile.WriteBytes(filepath.Join(dir, name+suffix), 0o600, []byte(l.URL()+"\n")); err != nil {
			return err
		}
	}
	return nil
}
