package participant

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/node"
)

// Mining says where a miner's bucket is. The miner writes with credentials that it keeps to itself;
// it announces others on the chain that can only read.
type Mining struct {
	Own     string // location with the credentials to write, or a file that holds it
	Read    string // location that is announced, or a file; "": our own one without credentials
	Private bool   // buckets at private addresses are read too
	Shared  bool   // the announced credentials may write: of a demo on this machine
}

// LocationBytesMax bounds a file with a location.
const LocationBytesMax = 4 << 10

// Location reads a location from a value that is one, or that names a file with one.
func Location(flag, value string) (bucket.Location, error) {
	if !bucket.IsLocation(value) {
		b, err := atomicfile.ReadBounded(value, LocationBytesMax)
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

// Places returns the location to write to and the one to announce.
func (m Mining) Places(getenv func(string) string) (own, read bucket.Location, err error) {
	value := cmp.Or(m.Own, getenv("ENTRAIN_BUCKET"))
	if value == "" {
		return own, read, errors.New("this run exchanges by buckets: name your S3 bucket with --bucket FILE (see entrain join --help), or serve one from this machine with: entrain bucket DIR NAME")
	}
	if own, err = Location("bucket", value); err != nil {
		return own, read, err
	}
	if own.AccessKey == "" {
		own.AccessKey, own.SecretKey = bucket.Secret(getenv("AWS_ACCESS_KEY_ID")), bucket.Secret(getenv("AWS_SECRET_ACCESS_KEY"))
		own.Token = bucket.Secret(getenv("AWS_SESSION_TOKEN"))
	}
	read = own
	read.AccessKey, read.SecretKey, read.Token = "", "", ""
	if value := cmp.Or(m.Read, getenv("ENTRAIN_BUCKET_READ")); value != "" {
		if read, err = Location("bucket-read", value); err != nil {
			return own, read, err
		}
	}
	return own, read, nil
}

// ProbeFor bounds the time that probing a bucket takes.
const ProbeFor = 30 * time.Second

// Probe tests a bucket before the run depends on it: the announced credentials must read what was
// written, and must not be able to write.
func (m Mining) Probe(ctx context.Context, client *bucket.Client, own, read bucket.Location, name string) error {
	ctx, cancel := context.WithTimeout(ctx, ProbeFor)
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
	if !m.Shared && put(theirs) == nil {
		return errors.New("the credentials that would be announced to everybody (--bucket-read) can write to your bucket, so anybody could empty it: announce some that can only read")
	}
	return mine.Delete(ctx, key)
}

// reached returns an error if strangers refuse to read where the bucket is announced. A miner whose
// bucket nobody reads pays for its membership and earns nothing.
func (m Mining) reached(read bucket.Location) error {
	if m.Private || m.Shared || read.Public() {
		return nil
	}
	return fmt.Errorf("others do not read a bucket at %s, an address of this machine or of a private network: announce one that they reach (--bucket-read); in a network of your own all say --private-buckets", read.Endpoint)
}

// Finding is one thing that a run needs of a bucket, and whether the bucket has it.
type Finding struct {
	What   string `json:"finding"`
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitempty"`
}

// Examine tests each operation that a run needs of a miner's bucket, and that others cannot write.
// It also returns the location that would be announced.
func (m Mining) Examine(ctx context.Context, getenv func(string) string) (announced bucket.Location, list []Finding, err error) {
	own, read, err := m.Places(getenv)
	if err == nil {
		_, err = read.Registered()
	}
	if err == nil {
		err = m.reached(read)
	}
	if err != nil {
		return read, nil, err
	}
	client := bucket.NewClient(bucket.S3Options{})
	defer client.Close()
	mine, err := client.Open(own)
	if err != nil {
		return read, nil, err
	}
	public, err := client.Open(read)
	if err != nil {
		return read, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*ProbeFor)
	defer cancel()
	for _, f := range bucket.Probe(ctx, mine, public) {
		is := Finding{What: f.What, OK: f.Err == nil}
		if f.Err != nil {
			is.Reason = f.Err.Error()
		}
		list = append(list, is)
	}
	return read, list, nil
}

// Try tests whether a miner's bucket can be used.
func (m Mining) Try(ctx context.Context, getenv func(string) string) error {
	own, read, err := m.Places(getenv)
	if err == nil {
		err = m.reached(read)
	}
	if err != nil {
		return err
	}
	client := bucket.NewClient(bucket.S3Options{})
	defer client.Close()
	return m.Probe(ctx, client, own, read, "try")
}

// mine gives the node its buckets, if the run exchanges by buckets.
func (p *Participant) mine(ctx context.Context, cfg *node.Config) error {
	if !p.Trainer.Spec.Buckets() {
		return nil
	}
	writer, registered, err := p.Mining.open(ctx, p.Getenv, p.Key, p.member)
	if err != nil {
		return err
	}
	// The member's own bucket may be at a private address. Strangers' buckets may not: they
	// could make this machine ask hosts that only it reaches.
	others := bucket.NewClient(bucket.S3Options{Public: !p.Mining.Private})
	context.AfterFunc(ctx, others.Close)
	reader := bucket.NewReader(others.Open, bucket.Options{})
	cfg.Listen = nil
	cfg.Bucket = &node.Bucket{Exchange: bucket.NewExchange(p.loop, writer, reader, bucket.ExchangeOptions{}), Registered: registered}
	return nil
}

// open tests the bucket, and returns what writes to it until ctx ends, and where others read it. A
// member of the run that comes back may have a full one: its node makes room, or leaves the run.
func (m Mining) open(ctx context.Context, getenv func(string) string, k key.Private, member bool) (*bucket.Writer, string, error) {
	own, read, err := m.Places(getenv)
	if err == nil {
		err = m.reached(read)
	}
	if err != nil {
		return nil, "", err
	}
	registered, err := read.Registered()
	if err != nil {
		return nil, "", err
	}
	client := bucket.NewClient(bucket.S3Options{})
	context.AfterFunc(ctx, client.Close)
	err = m.Probe(ctx, client, own, read, k.Public().String()[:16])
	if err != nil && !(member && errors.Is(err, bucket.ErrFull)) {
		return nil, "", err
	}
	store, err := client.Open(own)
	if err != nil {
		return nil, "", err
	}
	return bucket.NewWriter(store, k, bucket.Options{}), registered, nil
}
