package main

import (
	"cmp"
	"context"
	"errors"
	"math"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/atomicfile/dirlock"
	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/bucket/serve"
	"github.com/entrain-network/entrain/view"
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
		Long: `Serves S3 buckets until Ctrl-C, for runs that exchange by buckets, in which every miner needs a
bucket from a provider or from this command. Objects are files below DIR. It creates each bucket
NAME if it does not exist, and writes to DIR the files NAME.write and NAME.read for entrain join:
the bucket's location with credentials that can write, and with credentials that can only read. All
credentials derive from DIR/secret, which it creates.

Others reach the buckets at --public, by default --addr. On the internet, give a certificate.`,
		Example: `  entrain bucket ./buckets mine
  entrain bucket ./buckets mine --addr 0.0.0.0:9000 --tls-cert cert.pem --tls-key key.pem`,
		Args: between(1, math.MaxInt, "where objects are kept"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.dir, o.buckets = args[0], args[1:]
			return c.serveBuckets(cmd.Context(), o)
		},
	}
	addrFlag(cmd, &o.addr, "127.0.0.1:9000")
	f := cmd.Flags()
	f.StringVar(&o.public, "public", "", "`HOST` or HOST:PORT at which others reach it (default: where it listens)")
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

// serveBuckets serves until ctx ends or the server does.
func (c console) serveBuckets(ctx context.Context, o serving) error {
	if (o.cert == "") != (o.key == "") {
		return errors.New("--tls-cert and --tls-key go together")
	}
	if err := serve.CheckNames(o.buckets); err != nil {
		return err
	}
	unlock, err := dirlock.Lock(o.dir, "directory of the buckets")
	if err != nil {
		return err
	}
	defer unlock()
	s, err := serve.Home(ctx, o.dir, o.buckets, o.public, serve.Config{Addr: o.addr, Cert: o.cert, Key: o.key, Tell: c.tell})
	if err != nil {
		return err
	}
	defer s.Close()
	if err := c.announce(o.asJSON, bucketEvent{"listening", s.Addr(), o.buckets}, "serving S3 at %s; Ctrl-C ends it", s.Addr()); err != nil {
		return err
	}
	private := ""
	if !(bucket.Location{Endpoint: cmp.Or(o.public, s.Addr())}).Public() {
		private = " --private-buckets"
	}
	for _, name := range o.buckets {
		at := filepath.Join(o.dir, name)
		c.say("mine with: entrain join RUN --bucket %s --bucket-read %s%s; --check in place of RUN tests the bucket", view.Quote(at+".write"), view.Quote(at+".read"), private)
	}
	select {
	case <-ctx.Done():
		return nil
	case <-s.Done():
		return errors.New("the server has ended by itself")
	}
}
