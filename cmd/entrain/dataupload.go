package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/data"
)

func dataUploadCommand(c console) *cobra.Command {
	return &cobra.Command{
		Use:   "upload DIR s3://HOST/BUCKET/PREFIX",
		Short: "Put a data set into an S3 bucket, for members to read",
		Long: `Uploads a data set to an S3 bucket; files that are there with the right size are not sent again. Members read
it with join --data, or from the location that the run's specification names: the chunks that they need,
each compared with the manifest, so the bucket's provider need not be trusted.

The credentials to write are taken from the address (s3://KEY:SECRET@host/bucket), or from the environment:
ENTRAIN_S3_ACCESS_KEY and ENTRAIN_S3_SECRET_KEY, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY. Members
need others that can only read, or none if everybody may read the bucket. A server without TLS is named with
?tls=0, a region with ?region=NAME.`,
		Example: `  entrain data upload ./corpus s3://s3.eu-central-1.amazonaws.com/my-sets/opticks?region=eu-central-1`,
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := data.ReadManifest(args[0])
			if err != nil {
				return err
			}
			at, err := bucket.ParseLocation(args[1])
			if err != nil {
				return err
			}
			if at, err = at.WithEnvironment(c.env); err != nil {
				return err
			}
			client := bucket.NewClient(bucket.S3Options{})
			defer client.Close()
			store, err := client.Open(at)
			if err != nil {
				return err
			}
			err = data.Publish(cmd.Context(), args[0], m, store, func(file string, bytes int64, sent bool) {
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
		},
	}
}
