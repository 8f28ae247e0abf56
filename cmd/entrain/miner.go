package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/node"
	"github.com/entrain-network/entrain/spec"
)

// A member of a run of buckets, a miner, has a bucket of its own. It writes there with credentials that it keeps to itself; what it announces
// on the chain are others, which can only read.

// mining is where a miner's bucket is.
type mining struct {
	role    string // "" as the run asks for
	own     string // location with the credentials to write, or a file that holds it
	read    string // location that is announced, or a file; "": the own one without credentials
	private bool   // buckets at private addresses are read too
	shared  bool   // the announced credentials may write: of a demo on this machine
}

// The roles of members.
const (
	roleClient = "client"
	roleMiner  = "miner"
)

func (m *mining) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&m.role, "role", "", "take part as client, in a run of peers, or as miner, in one of buckets: refused if the `role` is not what\nthe run asks for (default: what it asks for)")
	f.StringVar(&m.own, "bucket", "", "your S3 bucket: a `file` with one line, s3://KEY:SECRET@host/bucket/prefix?region=R, or that line without\nKEY and SECRET, which are then read from the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY);\nfor runs that exchange by buckets (default: the variable ENTRAIN_BUCKET)")
	f.StringVar(&m.read, "bucket-read", "", "a `file` with the same bucket as others read it, in the same form, with credentials that can only read: they are\nannounced to everybody (default: ENTRAIN_BUCKET_READ, or --bucket without credentials)")
	f.BoolVar(&m.private, "private-buckets", false, "read other miners' buckets at addresses of this machine and of private networks as well")
	f.BoolVar(&m.shared, "bucket-shared", false, "announce credentials that may write")
	_ = f.MarkHidden("bucket-shared")
	_ = cmd.RegisterFlagCompletionFunc("role", cobra.FixedCompletions([]string{roleClient, roleMiner}, cobra.ShellCompDirectiveNoFileComp))
}

// check says what is wrong with the flags for a run of this kind.
func (m mining) check(s spec.Spec) error {
	switch {
	case m.role != "" && m.role != roleClient && m.role != roleMiner:
		return fmt.Errorf("--role %q: the roles are %s and %s", m.role, roleClient, roleMiner)
	case m.role == roleMiner && !s.Buckets():
		return fmt.Errorf("--role %s: run %q exchanges between peers; leave --role out", roleMiner, s.Name)
	case m.role == roleClient && s.Buckets():
		return fmt.Errorf("--role %s: run %q exchanges by buckets, and takes miners; leave --role out, and name your bucket with --bucket FILE", roleClient, s.Name)
	}
	return nil
}

// locationBytesMax bounds a file with a location.
const locationBytesMax = 4 << 10

// location reads a location from a flag's value, which is one or names a file that holds one.
func (c console) location(flag, value string) (bucket.Location, error) {
	if !bucket.IsLocation(value) {
		b, err := atomicfile.ReadBounded(value, locationBytesMax)
		if err != nil {
			return bucket.Location{}, fmt.Errorf("--%s: %w (it names a file with a line of the form s3://KEY:SECRET@host/bucket, or is that line without KEY and SECRET)", flag, err)
		}
		value = strings.TrimSpace(string(b))
	}
	l, err := bucket.ParseLocation(value)
	if err != nil {
		return l, fmt.Errorf("--%s: %w", flag, err)
	}
	return l, nil
}

// orEnv is the flag's value, or that of the environment.
func (c console) orEnv(value, name string) string {
	if value != "" {
		return value
	}
	return c.env(name)
}

// places returns where a miner writes and what it announces.
func (m mining) places(c console) (own, read bucket.Location, err error) {
	value := c.orEnv(m.own, "ENTRAIN_BUCKET")
	if value == "" {
		return own, read, errors.New("this run exchanges by buckets: name your S3 bucket with --bucket FILE (see entrain join --help), or serve one from this machine with: entrain bucket serve")
	}
	if own, err = c.location("bucket", value); err != nil {
		return own, read, err
	}
	if own.AccessKey == "" {
		own.AccessKey, own.SecretKey = bucket.Secret(c.env("AWS_ACCESS_KEY_ID")), bucket.Secret(c.env("AWS_SECRET_ACCESS_KEY"))
		own.Token = bucket.Secret(c.env("AWS_SESSION_TOKEN"))
	}
	read = own
	read.AccessKey, read.SecretKey, read.Token = "", "", ""
	if value := c.orEnv(m.read, "ENTRAIN_BUCKET_READ"); value != "" {
		if read, err = c.location("bucket-read", value); err != nil {
			return own, read, err
		}
	}
	return own, read, nil
}

// probeFor bounds the trial of a bucket.
const probeFor = 30 * time.Second

// probe tries a bucket before the run counts on it: what is written must be read with what will be announced, and that must not write.
func (m mining) probe(ctx context.Context, client *bucket.Client, own, read bucket.Location, name string) error {
	ctx, cancel := context.WithTimeout(ctx, probeFor)
	defer cancel()
	mine, err := client.Open(own)
	if err != nil {
		return err
	}
	theirs, err := client.Open(read)
	if err != nil {
		return err
	}
	key, body := "entrain-probe-"+name, []byte("entrain")
	put := func(s bucket.Store) error { return s.Put(ctx, key, bytes.NewReader(body), int64(len(body)), false) }
	if err := put(mine); err != nil {
		return fmt.Errorf("your bucket cannot be written to: %w", err)
	}
	got, _, err := theirs.Get(ctx, key, 0, int64(len(body)))
	if err != nil {
		return fmt.Errorf("your bucket cannot be read by others with what would be announced (--bucket-read): %w", err)
	}
	if !bytes.Equal(got, body) {
		return fmt.Errorf("your bucket and --bucket-read are not the same place: what is written to %v is not what is read from %v", own, read)
	}
	if !m.shared && put(theirs) == nil {
		return errors.New("the credentials that would be announced to everybody (--bucket-read) can write to your bucket, so anybody could empty it: announce some that can only read")
	}
	return mine.Delete(ctx, key)
}

// try finds out whether a miner's bucket can be used.
func (m mining) try(ctx context.Context, c console) error {
	own, read, err := m.places(c)
	if err != nil {
		return err
	}
	client := bucket.NewClient(bucket.S3Options{})
	defer client.Close()
	return m.probe(ctx, client, own, read, "try")
}

// mine makes the participant's node one of a run of buckets, if the run is one.
func (p *participant) mine(ctx context.Context, cfg *node.Config) error {
	if !p.trainer.spec.Buckets() {
		return nil
	}
	own, read, err := p.mining.places(p.console)
	if err != nil {
		return err
	}
	registered, err := read.Registered()
	if err != nil {
		return err
	}
	// Where one's own bucket is, is one's own business; strangers must not have this machine ask what only it reaches.
	client := bucket.NewClient(bucket.S3Options{})
	others := bucket.NewClient(bucket.S3Options{Public: !p.mining.private})
	context.AfterFunc(ctx, func() {
		client.Close()
		others.Close()
	})
	if err := p.mining.probe(ctx, client, own, read, p.key.Public().String()[:16]); err != nil {
		return err
	}
	store, err := client.Open(own)
	if err != nil {
		return err
	}
	writer, reader := bucket.NewWriter(store, p.key, bucket.Options{}), bucket.NewReader(others.Open, bucket.Options{})
	cfg.Listen = nil
	cfg.Bucket = &node.Bucket{Exchange: bucket.NewExchange(p.loop, writer, reader, bucket.ExchangeOptions{}), Registered: registered}
	return nil
}
