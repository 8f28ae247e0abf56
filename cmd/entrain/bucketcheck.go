package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/participant"
)

func bucketCheckCommand(c console) *cobra.Command {
	var m participant.Mining
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check --bucket FILE --bucket-read FILE",
		Short: "Try whether a bucket is fit for a run, and safe to publish",
		Long: `Writes an object to a bucket, reads and lists it with the credentials that will be announced to everybody,
tries to write and to remove with those, which must be refused, and removes it. Run it before joining: what
is wrong with a bucket costs windows, and what is too much allowed costs the bucket.

The locations are named as for entrain join.`,
		Example: `  entrain bucket check --bucket ./mine.write --bucket-read ./mine.read
  entrain bucket check --bucket s3://s3.example.org/mine --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.checkBucket(cmd.Context(), m, asJSON) },
	}
	f := cmd.Flags()
	f.StringVar(&m.Own, "bucket", "", "the location with the credentials to write, or a `file` that holds it (default: ENTRAIN_BUCKET)")
	f.StringVar(&m.Read, "bucket-read", "", "the location that is announced, or a `file` (default: ENTRAIN_BUCKET_READ, or --bucket without credentials)")
	f.BoolVar(&asJSON, "json", false, "print a JSON object for each finding")
	return cmd
}

// finding is what bucket check --json prints.
type finding struct {
	Finding string `json:"finding"`
	OK      bool   `json:"ok"`
	Reason  string `json:"reason,omitempty"`
}

// errUnfit is what bucket check fails with when it has said why.
var errUnfit = errors.New("the bucket is not fit: see above, and docs/buckets.md")

func (c console) checkBucket(ctx context.Context, m participant.Mining, asJSON bool) error {
	own, read, err := m.Places(c.env)
	if err != nil {
		return err
	}
	registered, err := read.Registered()
	if err != nil {
		return err
	}
	client := bucket.NewClient(bucket.S3Options{})
	defer client.Close()
	mine, err := client.Open(own)
	if err != nil {
		return err
	}
	public, err := client.Open(read)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*participant.ProbeFor)
	defer cancel()
	fit := true
	for _, f := range bucket.Probe(ctx, mine, public) {
		line := finding{Finding: f.What, OK: f.Err == nil}
		if f.Err != nil {
			fit, line.Reason = false, f.Err.Error()
		}
		switch {
		case asJSON:
			err = errors.Join(err, c.object(line))
		case line.OK:
			c.say("yes  %s", line.Finding)
		default:
			c.say("NO   %s: %s", line.Finding, line.Reason)
		}
	}
	if !fit {
		return errors.Join(err, errUnfit)
	}
	if !asJSON {
		c.say("the bucket is fit; %d bytes will be announced as %s", len(registered), read)
	}
	return err
}
