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

// serving holds the flags of bucket.
type serving struct {
	dir, addr, public, cert, key string
	buckets                      []string
	asJSON                       bool
}

func bucketCommand(c console) *cobra.Command {
	var o serving
	cmd := &cobra.Command{
		Use:   "bucket DIR [NAME...]",
		Short: "Serve S3 buckets from this machine, until Ctrl-C",
		Long: `Serves S3 buckets until Ctrl-C, for runs that exchange by buckets: there every miner has an S3 bucket, at a
provider or from this command. The objects are files below DIR. It makes each bucket NAME that does not exist,
and writes to DIR the files NAME.write and NAME.read, as entrain join takes them: where the bucket is, with
credentials that can write and with those that can only read. All follow from a secret that it makes in
DIR/secret.

Others reach the buckets at --public, which is --addr by default. On the internet give a certificate.
Then test the bucket with entrain join --check.`,
		Example: `  entrain bucket ./buckets mine
  entrain bucket ./buckets mine --addr 0.0.0.0:9000 --tls-cert cert.pem --tls-key key.pem`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("say where objects are kept: %s", cmd.UseLine())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.dir, o.buckets = args[0], args[1:]
			return c.serveBuckets(cmd.Context(), o)
		},
	}
	addrFlag(cmd, &o.addr, "127.0.0.1:9000")
	f := cmd.Flags()
	f.StringVar(&o.public, "public", "", "`HOST:PORT` at which others reach it (default: where it listens)")
	f.StringVar(&o.cert, "tls-cert", "", "`file` of the certificate, PEM")
	f.StringVar(&o.key, "tls-key", "", "`file` of its key, PEM")
	jsonFlag(cmd, &o.asJSON)
	_ = cmd.MarkFlagFilename("tls-cert")
	_ = cmd.MarkFlagFilename("tls-key")
	return cmd
}

// bucketEvent is what bucket --json prints.
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
	s, err := serve.Start(ctx, serve.Config{Dir: filepath.Join(o.dir, "served"), Addr: o.addr, Secret: secret, Cert: o.cert, Key: o.key})
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
	if o.public != "" {
		public.Endpoint = o.public
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
