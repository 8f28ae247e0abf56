// Package depot stores checkpoints away from the machine that wrote them: in S3 buckets, and on
// hubs that speak Hugging Face's HTTP API. It also fetches checkpoints from there, and from any
// static HTTP host that has the files of a checkpoint's directory.
//
// A depot is named by an address:
//
//	s3://KEY:SECRET@host/bucket/prefix   a bucket (bucket.Location); step 300 is in prefix/step-000300/
//	hf://owner/name                      a model on huggingface.co
//	hf://host:port/owner/name            a model on another hub; ?tls=0 disables encryption
//	https://host/directory               a directory with the files of one checkpoint; read-only
//
// On a hub each checkpoint is one commit, tagged with its step, so that the model's page shows the
// newest and every retained one has a name (hf://owner/name?revision=step-000300).
//
// A checkpoint appears whole or not at all: its manifest, which makes a directory a checkpoint, is
// written last. Everything that a depot serves is compared with the manifest. The caller compares
// the manifest with what it knows: the parameters that a run resumes from, or a hash on the ledger.
//
// Credentials omitted from an address come from the environment: ENTRAIN_S3_ACCESS_KEY and
// ENTRAIN_S3_SECRET_KEY, or Amazon's AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and
// AWS_SESSION_TOKEN; HF_TOKEN, for the hub at HF_ENDPOINT alone. They are used only for addresses
// that the user names, never for one that a stranger wrote into a specification.
package depot

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/retry"
)

// Options configure access to depots; zero values select the default given for each field.
type Options struct {
	Getenv   func(string) string // source of credentials that an address omits; nil: none
	S3       bucket.Opener       // nil: a new client
	Client   *http.Client        // nil: a new client
	Attempts int                 // of each request: 5
	Backoff  time.Duration       // before the second attempt, then doubled: 500 ms
	BytesMax uint64              // largest checkpoint to fetch: 1 TiB
	// Stranger says that somebody else wrote the address. A bucket must then have the checkpoint at
	// the address itself, and is not searched for one. With Public it must be on the public internet,
	// since a stranger must not send requests to hosts that only this machine reaches.
	Stranger, Public bool
	// Partial is a directory, on the file system of those that are fetched, where an interrupted
	// fetch leaves its files, for the next one of the same address to continue: for a day, and those
	// of three addresses at most. "": it leaves none.
	Partial string
	// Say takes what the user is told, such as where a fetch continues; may be nil.
	Say func(format string, args ...any)
	// Progress is called with the bytes of a checkpoint received and their total; may be nil.
	Progress func(done, total uint64)

	piece    int64         // bytes requested from a file at once: pieceBytes
	patience time.Duration // with a stranger's address, see bounded: a minute
}

// bounded returns the context of a request, with all its attempts. A stranger's address may be one
// that accepts connections and never answers, while others have the model.
func (o Options) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if !o.Stranger {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, o.patience)
}

func (o *Options) fill() {
	if o.Getenv == nil {
		o.Getenv = func(string) string { return "" }
	}
	if o.Attempts <= 0 {
		o.Attempts = 5
	}
	if o.Backoff <= 0 {
		o.Backoff = 500 * time.Millisecond
	}
	if o.piece <= 0 {
		o.piece = pieceBytes
	}
	if o.patience <= 0 {
		o.patience = time.Minute
	}
	if o.BytesMax == 0 {
		o.BytesMax = 1 << 40
	}
	if o.Client == nil {
		o.Client = &http.Client{}
		if o.Public {
			o.Client.Transport = &http.Transport{DialContext: (&net.Dialer{Timeout: dialTimeout, ControlContext: bucket.PublicOnly}).DialContext}
		}
	}
}

func (o Options) say(format string, args ...any) {
	if o.Say != nil {
		o.Say(format, args...)
	}
}

// dialTimeout bounds connecting to a stranger's address.
const dialTimeout = 10 * time.Second

// Depot is a place where checkpoints are stored.
type Depot struct {
	place   place
	options Options
	client  *bucket.Client // its own, or nil
}

// place is a kind of depot.
type place interface {
	String() string // the address without secrets

	// upload adds a checkpoint, whose files open opens.
	upload(ctx context.Context, u upload) error

	// prune removes all but the newest of the checkpoints up to a step.
	prune(ctx context.Context, keep int, step uint32) error

	// source returns where to read the newest checkpoint, or the only one; with foreign, a model that
	// is none if there is no checkpoint.
	source(ctx context.Context, foreign bool) (source, error)
}

// errReadOnly is the error of writing to a read-only place.
var errReadOnly = errors.New("checkpoints cannot be written to this address: use s3:// or hf://")

// IsAddress reports whether text is meant as the address of a depot rather than as a directory.
func IsAddress(s string) bool {
	return bucket.IsLocation(s) || strings.HasPrefix(s, "hf://") || strings.HasPrefix(s, "https://") || strings.HasPrefix(s, "http://")
}

// IsPublic reports whether an address can be shown to everybody: it names no credentials, and no
// bucket, whose readers may need some.
func IsPublic(s string) bool {
	return IsAddress(s) && !bucket.IsLocation(s) && (strings.HasPrefix(s, "hf://") || !strings.Contains(s, "@"))
}

// Open returns the depot at an address, without contacting it. The caller must Close it.
func Open(address string, o Options) (*Depot, error) {
	o.fill()
	d := &Depot{options: o}
	var err error
	switch {
	case bucket.IsLocation(address):
		err = d.openS3(address)
	case strings.HasPrefix(address, "hf://"):
		d.place, err = parseHub(address, o)
	case strings.HasPrefix(address, "https://"), strings.HasPrefix(address, "http://"):
		d.place, err = parseDirectory(address, o)
	default:
		err = errors.New("it does not begin with s3://, hf:// or https://")
	}
	if err != nil {
		return nil, fmt.Errorf("address of checkpoints: %w", err)
	}
	return d, nil
}

func (d *Depot) openS3(address string) error {
	l, err := bucket.ParseLocation(address)
	if err != nil {
		return err
	}
	if l, err = l.WithEnvironment(d.options.Getenv); err != nil {
		return err
	}
	open := d.options.S3
	if open == nil {
		d.client = bucket.NewClient(bucket.S3Options{Public: d.options.Public})
		open = d.client.Open
	}
	store, err := open(l)
	if err != nil {
		return err
	}
	d.place = &inBucket{at: l, store: store, options: d.options}
	return nil
}

// String returns the address without secrets.
func (d *Depot) String() string { return d.place.String() }

// Close closes idle connections.
func (d *Depot) Close() {
	if d.client != nil {
		d.client.Close()
	}
	d.options.Client.CloseIdleConnections()
}

// Upload adds the checkpoint in dir, whose manifest is m, unless it is present, and removes all but
// the last keep checkpoints up to it (0: none). Two members may safely upload the same checkpoint.
// A depot is one run's: in those of others, steps of the same number and older ones would be lost.
func (d *Depot) Upload(ctx context.Context, dir string, m checkpoint.Manifest, keep int) error {
	there, err := d.Manifest(ctx)
	switch {
	case err != nil || there.Params == m.Params: // it is empty, or upload finds what is wrong
	case there.Run != m.Run:
		return fmt.Errorf("the checkpoint of step %d is not uploaded: %s has checkpoints of run %q, which those of run %q would replace: give another address", m.Step, d, there.Run, m.Run)
	case there.Step > m.Step && there.Round > m.Round:
		return fmt.Errorf("the checkpoint of step %d is not uploaded: %s has a later one, of step %d and round %d; give another address if that is of an earlier run of this name", m.Step, d, there.Step, there.Round)
	}
	if err := d.place.upload(ctx, upload{dir, m}); err != nil {
		return fmt.Errorf("uploading the checkpoint of step %d to %s: %w", m.Step, d, err)
	}
	if keep > 0 {
		if err := d.place.prune(ctx, keep, m.Step); err != nil {
			return fmt.Errorf("removing old checkpoints from %s: %w", d, err)
		}
	}
	return nil
}

func (o Options) retry(ctx context.Context, do func() error) error {
	return retry.Policy{Attempts: o.Attempts, Min: o.Backoff, Max: backoffMax}.Do(ctx, temporary, do)
}

// backoffMax is the longest pause between two attempts.
const backoffMax = 30 * time.Second

// temporary reports whether another attempt may succeed.
func temporary(err error) bool {
	var p permanent
	return !errors.As(err, &p) && !errors.Is(err, bucket.ErrMissing) && !errors.Is(err, bucket.ErrRefused)
}

// permanent is an error that retrying cannot fix.
type permanent struct{ error }

// Unwrap returns the error.
func (p permanent) Unwrap() error { return p.error }

const stepPrefix = "step-"

// StepName returns the directory or the tag of a step's checkpoint.
func StepName(step uint32) string { return fmt.Sprintf("%s%06d", stepPrefix, step) }

// parseStep is the inverse of stepName.
func parseStep(s string) (uint32, bool) {
	text, ok := strings.CutPrefix(s, stepPrefix)
	n, err := strconv.ParseUint(text, 10, 32)
	return uint32(n), ok && err == nil && StepName(uint32(n)) == s
}

// parseDirectory reads the address of a directory on a static host.
func parseDirectory(address string, o Options) (place, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("the address is not of the form https://host/directory")
	}
	return directory{web{base: strings.TrimSuffix(address, "/") + "/", shown: u.Redacted(), options: o}}, nil
}

// directory is a static host.
type directory struct{ web }

// String returns the address without a password.
func (d directory) String() string { return d.shown }

func (d directory) upload(context.Context, upload) error { return errReadOnly }

func (d directory) prune(context.Context, int, uint32) error { return errReadOnly }

func (d directory) source(context.Context, bool) (source, error) { return &d.web, nil }
