package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/atomicfile/dirlock"
	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/bucket/serve"
	"github.com/entrain-network/entrain/participant"
)

func bucketCommand(c console) *cobra.Command {
	return group("bucket", "Serve S3 buckets from this machine",
		`In a run that exchanges by buckets every miner has an S3 bucket, at whatever provider it likes. Who has a disk
and an address that others reach, and no provider, can serve buckets itself.`,
		bucketServeCommand(c), bucketCheckCommand(c))
}

// serving is bucket serve's flags.
type serving struct {
	dir, listen, host, cert, key string
	buckets                      []string
	asJSON                       bool
}

func bucketServeCommand(c console) *cobra.Command {
	var o serving
	cmd := &cobra.Command{
		Use:   "serve --dir DIR --bucket NAME",
		Short: "Serve S3 buckets until Ctrl-C",
		Long: `Serves S3 buckets whose objects are files below DIR, until Ctrl-C. Each --bucket is made if there is none;
where it is, with the credentials to write and with those that can only read, is written to the files
NAME.write and NAME.read in DIR, as entrain join takes them. A root secret is made in DIR/secret, from
which all follow.

Others reach the buckets at --host, which is --listen unless said; on the internet give a certificate.`,
		Example: `  entrain bucket serve --dir ./buckets --bucket mine
  entrain bucket serve --dir ./buckets --bucket mine --listen 0.0.0.0:9000 --tls-cert cert.pem --tls-key key.pem`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.serveBuckets(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.dir, "dir", "", "`directory` of the objects and of the files about them")
	f.StringVar(&o.listen, "listen", "127.0.0.1:9000", "`address` to listen on, host:port; port 0 is a free one")
	f.StringVar(&o.host, "host", "", "`host:port` at which others reach it (default: where it listens)")
	f.StringArrayVar(&o.buckets, "bucket", nil, "`name` of a bucket to make; may be repeated")
	f.StringVar(&o.cert, "tls-cert", "", "`file` of the certificate, PEM")
	f.StringVar(&o.key, "tls-key", "", "`file` of its key, PEM")
	f.BoolVar(&o.asJSON, "json", false, "print a JSON object when buckets can be used")
	_ = cmd.MarkFlagDirname("dir")
	_ = cmd.MarkFlagFilename("tls-cert")
	_ = cmd.MarkFlagFilename("tls-key")
	return cmd
}

// bucketEvent is what bucket serve --json prints.
type bucketEvent struct {
	Event    string   `json:"event"`
	Endpoint string   `json:"endpoint"`
	Buckets  []string `json:"buckets"`
}

// rootSecret reads the secret of a server, which is made if need be.
func rootSecret(path string) (string, error) {
	b, err := atomicfile.ReadBounded(path, participant.LocationBytesMax)
	if err == nil {
		return strings.TrimSpace(string(b)), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	random := make([]byte, 20)
	rand.Read(random)
	secret := hex.EncodeToString(random)
	return secret, atomicfile.WriteBytes(path, 0o600, []byte(secret+"\n"))
}

// serveBuckets serves until ctx ends or the server does.
func (c console) serveBuckets(ctx context.Context, o serving) error {
	if o.dir == "" {
		return errors.New("say where objects are kept with --dir DIR")
	}
	if (o.cert == "") != (o.key == "") {
		return errors.New("--tls-cert and --tls-key go together")
	}
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return err
	}
	unlock, err := dirlock.Lock(o.dir, "directory of the buckets")
	if err != nil {
		return err
	}
	defer unlock()
	secret, err := rootSecret(filepath.Join(o.dir, "secret"))
	if err != nil {
		return err
	}
	s, err := serve.Start(ctx, serve.Config{Dir: filepath.Join(o.dir, "served"), Addr: o.listen, Secret: secret, Cert: o.cert, Key: o.key})
	if err != nil {
		return err
	}
	defer s.Close()
	for _, name := range o.buckets {
		if err := o.make(s, name); err != nil {
			return fmt.Errorf("bucket %q: %w", name, err)
		}
	}
	if o.asJSON {
		err = c.object(bucketEvent{"listening", s.Addr(), o.buckets})
	} else {
		c.say("serving S3 at %s; Ctrl-C ends it. How to reach %d buckets stands in %s", s.Addr(), len(o.buckets), o.dir)
	}
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case <-s.Done():
		return errors.New("the server has ended by itself")
	}
}

// make makes a bucket and writes how to reach it.
func (o serving) make(s *serve.Server, name string) error {
	own, public, err := s.Make(name)
	if err != nil {
		return err
	}
	if o.host != "" {
		public.Endpoint = o.host
	}
	for suffix, l := range map[string]bucket.Location{".write": own, ".read": public} {
		if err := l.Check(); err != nil {
			return err
		}
		if err := atomicfile.WriteBytes(filepath.Join(o.dir, name+suffix), 0o600, []byte(l.URL()+"\n")); err != nil {
			return err
		}
	}
	return nil
}
