// Package mem keeps buckets in memory, for tests and simulations. They fail, lag and lie as
// configured (see [Faults]). Under a virtual clock their behavior is a function of a seed.
package mem

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/retry"
	"github.com/entrain-network/entrain/wire"
)

// Faults are the faults of a bucket. Each chance is per thousand operations.
type Faults struct {
	Delay   time.Duration // of every operation
	Jitter  time.Duration // largest random addition to Delay
	Appear  time.Duration // after a put, until the object is seen: stores of several places lag
	Fail    int           // chance that an operation fails as if the network had
	Corrupt int           // chance that what is read has a bit changed
	Cut     int           // chance that what is read ends early, and claims to be whole
	Lost    int           // chance that a put that succeeds is lost
	Silent  bool          // nothing is ever answered
	Refuse  bool          // the credentials are no longer valid
	Full    bool          // puts find no room
	Closed  bool          // what is announced, without credentials, reads nothing
	Endless bool          // listings never end

	// Serve, if not nil, replaces the answer to a read of a key, for lies of other kinds. It
	// receives the honest answer, nil if there is none, and returns the answer to give; nil means
	// none.
	Serve func(key string, object []byte) []byte
}

// World is a set of buckets. Its methods, and those of its stores, may be called from any
// goroutine.
type World struct {
	now func() time.Time

	mu      sync.Mutex // guards what follows
	random  prng.Source
	puts    uint64 // so far
	buckets map[place]*contents
}

// place identifies a bucket, regardless of credentials.
type place struct{ endpoint, bucket string }

type contents struct {
	faults  Faults
	objects map[string]object
}

type object struct {
	body    []byte
	seen    time.Time // visible from this time
	version uint64
}

// New returns a world without buckets. now returns the current time, which decides when an object
// appears; seed determines the random choices.
func New(now func() time.Time, seed uint64) *World {
	return &World{now: now, random: prng.New(wire.Sum("entrain/bucket/mem", wire.AppendU64(nil, seed)), "faults"), buckets: make(map[place]*contents)}
}

// Make creates a bucket unless it exists.
func (w *World) Make(l bucket.Location) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := place{l.Endpoint, l.Bucket}
	if w.buckets[p] == nil {
		w.buckets[p] = &contents{objects: make(map[string]object)}
	}
}

// Break sets a bucket's faults from now on.
func (w *World) Break(l bucket.Location, f Faults) {
	w.Make(l)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buckets[place{l.Endpoint, l.Bucket}].faults = f
}

// Keys returns the keys of all objects in a bucket, sorted, whether visible yet or not.
func (w *World) Keys(l bucket.Location) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.buckets[place{l.Endpoint, l.Bucket}]
	if c == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(c.objects))
}

// Open returns the store of a location. It is a bucket.Opener. Credentials are not checked, but a
// location without an access key is read-only.
func (w *World) Open(l bucket.Location) (bucket.Store, error) {
	if err := l.Check(); err != nil {
		return nil, &bucket.Error{Op: "open", At: l.String(), Kind: bucket.ErrRefused, Cause: err}
	}
	return &store{w, l}, nil
}

// store is one bucket.
type store struct {
	world *World
	at    bucket.Location
}

// path returns the key in the bucket.
func (s *store) path(key string) string {
	if s.at.Prefix == "" {
		return key
	}
	return s.at.Prefix + "/" + key
}

func (s *store) fault(op, key string, kind, cause error) error {
	return &bucket.Error{Op: op, At: s.at.String(), Key: key, Kind: kind, Cause: cause}
}

// chance returns true with the given probability in thousandths.
func (w *World) chance(thousandths int) bool {
	return thousandths > 0 && w.random.Uint64n(1000) < uint64(thousandths)
}

// below returns a random number below n, or 0 if n is 0.
func (w *World) below(n uint64) uint64 {
	if n == 0 {
		return 0
	}
	return w.random.Uint64n(n)
}

// begin waits for the bucket's delay and returns its contents, locked, or the injected failure.
func (s *store) begin(ctx context.Context, op, key string) (*contents, error) {
	w := s.world
	w.mu.Lock()
	c := w.buckets[place{s.at.Endpoint, s.at.Bucket}]
	if c == nil {
		w.mu.Unlock()
		return nil, s.fault(op, key, bucket.ErrRefused, errors.New("there is no such bucket"))
	}
	f := c.faults
	delay := f.Delay + time.Duration(w.below(uint64(f.Jitter)))
	fails := w.chance(f.Fail)
	w.mu.Unlock()
	if f.Silent {
		delay = 1 << 55 // more than a year
	}
	if err := retry.Wait(ctx, delay); err != nil {
		kind := err
		if errors.Is(err, context.DeadlineExceeded) {
			kind = bucket.ErrSlow
		}
		return nil, s.fault(op, key, kind, nil)
	}
	switch {
	case f.Refuse, f.Closed && s.at.AccessKey == "":
		return nil, s.fault(op, key, bucket.ErrRefused, nil)
	case fails:
		return nil, s.fault(op, key, bucket.ErrUnreachable, errors.New("the connection is cut"))
	}
	w.mu.Lock()
	return c, nil
}

// time is the time of an operation.
func (s *store) time(ctx context.Context) time.Time { return s.world.now().Add(retry.Spent(ctx)) }

// Put writes an object.
func (s *store) Put(ctx context.Context, key string, body io.ReaderAt, size int64, ifAbsent bool) error {
	b, err := io.ReadAll(io.NewSectionReader(body, 0, size))
	if err != nil {
		return s.fault("put", key, bucket.ErrUnreachable, err)
	}
	c, err := s.begin(ctx, "put", key)
	if err != nil {
		return err
	}
	defer s.world.mu.Unlock()
	if s.at.AccessKey == "" {
		return s.fault("put", key, bucket.ErrRefused, errors.New("without credentials the bucket can only be read"))
	}
	if c.faults.Full {
		return s.fault("put", key, bucket.ErrFull, nil)
	}
	path := s.path(key)
	if _, ok := c.objects[path]; ok && ifAbsent {
		return s.fault("put", key, bucket.ErrExists, nil)
	}
	if !s.world.chance(c.faults.Lost) {
		s.world.puts++
		c.objects[path] = object{b, s.time(ctx).Add(c.faults.Appear), s.world.puts}
	}
	return nil
}

// Get reads a part of an object.
func (s *store) Get(ctx context.Context, key string, offset, n int64) ([]byte, bucket.Object, error) {
	if n <= 0 || offset < 0 {
		panic("mem: an empty range is asked for")
	}
	c, err := s.begin(ctx, "get", key)
	if err != nil {
		return nil, bucket.Object{}, err
	}
	defer s.world.mu.Unlock()
	b := s.look(ctx, c, s.path(key))
	if b == nil {
		return nil, bucket.Object{}, s.fault("get", key, bucket.ErrMissing, nil)
	}
	b = slices.Clone(b)
	if s.world.chance(c.faults.Cut) {
		b = b[:s.world.below(uint64(len(b)))]
	}
	if len(b) > 0 && s.world.chance(c.faults.Corrupt) {
		b[s.world.below(uint64(len(b)))] ^= 1 << s.world.below(8)
	}
	size := int64(len(b))
	from := min(offset, size)
	return b[from:min(from+n, size)], bucket.Object{Key: key, Bytes: size, Version: c.version(s.path(key))}, nil
}

// look returns what the bucket has, or claims to have, under a key at the time.
func (s *store) look(ctx context.Context, c *contents, path string) []byte {
	var b []byte
	if o, ok := c.objects[path]; ok && !s.time(ctx).Before(o.seen) {
		b = o.body
	}
	if c.faults.Serve != nil {
		b = c.faults.Serve(path, b)
	}
	return b
}

// version returns the entity tag of an object.
func (c *contents) version(path string) string {
	return strconv.Quote(strconv.FormatUint(c.objects[path].version, 10))
}

// Stat describes one object.
func (s *store) Stat(ctx context.Context, key string) (bucket.Object, error) {
	c, err := s.begin(ctx, "stat", key)
	if err != nil {
		return bucket.Object{}, err
	}
	defer s.world.mu.Unlock()
	b := s.look(ctx, c, s.path(key))
	if b == nil {
		return bucket.Object{}, s.fault("stat", key, bucket.ErrMissing, nil)
	}
	return bucket.Object{Key: key, Bytes: int64(len(b)), Version: c.version(s.path(key))}, nil
}

// List lists objects.
func (s *store) List(ctx context.Context, prefix, after string, most int) ([]bucket.Object, error) {
	c, err := s.begin(ctx, "list", prefix)
	if err != nil {
		return nil, err
	}
	defer s.world.mu.Unlock()
	if c.faults.Endless {
		page := make([]bucket.Object, most)
		for i := range page {
			after += "0"
			page[i] = bucket.Object{Key: prefix + strings.TrimPrefix(after, prefix)}
		}
		return page, nil
	}
	var page []bucket.Object
	from, cut := s.path(after), len(s.path(""))
	for path, o := range c.objects {
		if strings.HasPrefix(path, s.path(prefix)) && (after == "" || path > from) && !s.time(ctx).Before(o.seen) {
			page = append(page, bucket.Object{Key: path[cut:], Bytes: int64(len(o.body))})
		}
	}
	slices.SortFunc(page, func(a, b bucket.Object) int { return cmp.Compare(a.Key, b.Key) })
	return page[:min(len(page), most)], nil
}

// Delete removes objects.
func (s *store) Delete(ctx context.Context, keys ...string) error {
	if len(keys) == 0 {
		return nil
	}
	c, err := s.begin(ctx, "delete", keys[0])
	if err != nil {
		return err
	}
	defer s.world.mu.Unlock()
	if s.at.AccessKey == "" {
		return s.fault("delete", keys[0], bucket.ErrRefused, errors.New("without credentials the bucket can only be read"))
	}
	for _, key := range keys {
		delete(c.objects, s.path(key))
	}
	return nil
}
