package main

import (
	"context"
	"fmt"
	"net"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/data"
)

func dataPublishCommand(c console) *cobra.Command {
	var addr string
	cmd := &cobra.Command{
		Use:   "publish DIR [s3://HOST/BUCKET/PREFIX]",
		Short: "Offer a data set to members, over HTTP or in an S3 bucket",
		Long: `Offers a data set or a mix to members. They read the pieces that they need and compare each with the
manifest, so they need not trust the server.

Without an address, serves the set over HTTP until Ctrl-C. A static web server that has the files of the
directory does the same. Members join with

  entrain join my-run --data http://203.0.113.5:7372

To an s3:// address, uploads the set. If interrupted, call it again to continue. It does not replace
another set. The credentials to write are in the address (s3://KEY:SECRET@host/bucket) or in the
environment: ENTRAIN_S3_ACCESS_KEY and ENTRAIN_S3_SECRET_KEY, or AWS_ACCESS_KEY_ID and
AWS_SECRET_ACCESS_KEY. Members need others that can only read, or none if everybody may read the bucket.
?tls=0 names a server without TLS, ?region=NAME a region.`,
		Example: `  entrain data publish ./corpus --addr 0.0.0.0:7372
  entrain data publish ./corpus s3://s3.eu-central-1.amazonaws.com/my-sets/opticks?region=eu-central-1`,
		Args:       between(1, 2, "one directory, and at most one address"),
		SuggestFor: []string{"serve", "upload"},
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := data.ReadManifest(args[0])
			if err != nil {
				return err
			}
			if len(args) == 2 {
				return c.uploadData(cmd.Context(), args[0], m, args[1])
			}
			l, err := (&net.ListenConfig{}).Listen(cmd.Context(), "tcp", addr)
			if err != nil {
				return err
			}
			fmt.Fprintf(c.out, "http://%s\n", l.Addr())
			c.say("offering data set %q, manifest %s; Ctrl-C ends", m.Name, m.Hash())
			return data.Serve(cmd.Context(), l, args[0], m, 0)
		},
	}
	addrFlag(cmd, &addr, "127.0.0.1:7372")
	return cmd
}

// uploadData puts a data set into a bucket.
func (c console) uploadData(ctx context.Context, dir string, m data.Manifest, address string) error {
	err := data.PublishAt(ctx, dir, m, address, c.env, func(file string, bytes int64, sent bool) {
		state := "is there"
		if sent {
			state = "sent"
		}
		c.say("%-24s %12d bytes  %s", file, bytes, state)
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(c.out, m.Hash())
	return err
}
