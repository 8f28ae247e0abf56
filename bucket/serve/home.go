package serve

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
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

// Home starts a server whose objects and root secret are in dir, which the caller has made and
// locked. It makes the secret unless there is one. The fields Dir and Secret of c are ignored.
func Home(ctx context.Context, dir string, c Config) (*Server, error) {
	var err error
	if c.Secret, err = rootSecret(filepath.Join(dir, secretFile)); err != nil {
		return nil, err
	}
	c.Dir = filepath.Join(dir, servedDir)
	return Start(ctx, c)
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

// MakeFor makes a bucket, unless it exists, and writes to dir the files NAME.write and NAME.read:
// its location with credentials to write, and the one that readers get, at the HOST or HOST:PORT in
// public unless that is "".
func (s *Server) MakeFor(dir, name, public string) error {
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
