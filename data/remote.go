package data

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/tokenizer"
	"github.com/entrain-network/entrain/wire"
)

// RemoteOptions configure access to a data set on other machines; 0 selects the default given for
// each field.
type RemoteOptions struct {
	Options
	Attempts    int           // at each host, before reading fails: 6
	Timeout     time.Duration // of one attempt to get a chunk of 256 KiB: 30 s
	Backoff     time.Duration // after a failed round of attempts, doubled each time: 500 ms
	LookAhead   int           // sequences to prefetch (see Set.Ahead): 64; negative: none
	Connections int           // at once: 4
	// Public refuses addresses that are not on the public internet, of new clients. An address from
	// a specification comes from a stranger, who must not direct requests to hosts that only this
	// machine reaches.
	Public bool
	Kept   *Chunks       // keeps what is fetched; nil: nothing is kept
	Client *http.Client  // nil: a new client
	S3     bucket.Opener // opens buckets; nil: a new client
}

// lookAhead and connections hide the time to fetch a chunk behind training on the chunks before it.
const (
	lookAhead   = 64
	connections = 4
)

func (o *RemoteOptions) fill() {
	if o.Attempts <= 0 {
		o.Attempts = 6
	}
	if o.Timeout <= 0 {
		o.Timeout = 30 * time.Second
	}
	if o.Backoff <= 0 {
		o.Backoff = 500 * time.Millisecond
	}
	if o.LookAhead == 0 {
		o.LookAhead = lookAhead
	}
	if o.Connections <= 0 {
		o.Connections = connections
	}
}

// remote is the state that the shards of a set on other machines share.
type remote struct {
	hosts  *hosts
	kept   *Chunks
	ctx    context.Context // ends with Close: engine.Source.Read takes no context
	cancel context.CancelCauseFunc
	ended  []func()   // closes what belongs to the set
	ahead  chan chunk // chunks to prefetch
	work   sync.WaitGroup
}

// errClosed is the error of reading a closed set.
var errClosed = errors.New("the data set is closed")

// Place is where a data set is.
type Place struct {
	Location string  // a directory, or addresses with spaces between them
	Public   bool    // RemoteOptions.Public
	Kept     *Chunks // RemoteOptions.Kept
}

// IsURL reports whether a location of data is for OpenURL rather than a directory.
func IsURL(location string) bool {
	return strings.HasPrefix(location, "http://") || strings.HasPrefix(location, "https://") || bucket.IsLocation(location)
}

// OpenURL opens the data set whose files several hosts offer, under the same names as in a
// directory. Hosts are static HTTP servers and S3 buckets, in the notation of bucket.Location. Any
// host that serves the right bytes will do. OpenURL fetches chunks of 256 KiB on demand or ahead of
// use, unless o.Kept has them, and checks each against the manifest. With leaves.bin beside the
// manifest, chunks are checked one by one; without it, a shard is first read whole, to learn its
// leaves.
//
// The set ends with ctx or Close. Data that no host serves correctly is reported as a
// *CorruptError.
func OpenURL(ctx context.Context, addresses []string, want wire.Hash, o RemoteOptions) (*Set, error) {
	given := o
	o.fill()
	r := &remote{kept: o.Kept, ahead: make(chan chunk, 4*max(o.LookAhead, 1))}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	r.hosts = &hosts{attempts: o.Attempts, timeout: o.Timeout, backoff: o.Backoff}
	s, mix, err := r.begin(addresses, want, o)
	if err != nil || s == nil {
		r.close()
	}
	if err != nil || s != nil {
		return s, err
	}
	return openMix(mix, o.Options, func(c Component, of Options) (*Set, error) {
		below, each := make([]string, len(addresses)), given
		for i, address := range addresses {
			if below[i], err = addressBelow(address, c.Set); err != nil {
				return nil, err
			}
		}
		each.Options = of
		return OpenURL(ctx, below, c.Manifest, each)
	})
}

// begin contacts the hosts and opens the set, or returns the mix if there is one.
func (r *remote) begin(addresses []string, want wire.Hash, o RemoteOptions) (*Set, Mix, error) {
	if len(addresses) == 0 {
		return nil, Mix{}, errors.New("name an address of the data")
	}
	var names []string
	for _, address := range addresses {
		h, err := r.host(address, &o)
		if err != nil {
			return nil, Mix{}, err
		}
		r.hosts.list, names = append(r.hosts.list, h), append(names, h.String())
	}
	s, mix, err := r.open(want, o)
	if err != nil {
		return nil, Mix{}, fmt.Errorf("data set at %s: %w", strings.Join(names, ", "), err)
	}
	return s, mix, nil
}

// host returns the host at an address, and creates the client that it needs unless there is one.
func (r *remote) host(address string, o *RemoteOptions) (host, error) {
	if bucket.IsLocation(address) {
		at, err := bucket.ParseLocation(address)
		if err != nil {
			return nil, fmt.Errorf("address of the data: %w", err)
		}
		if o.S3 == nil {
			client := bucket.NewClient(bucket.S3Options{Public: o.Public})
			r.ended = append(r.ended, client.Close)
			o.S3 = client.Open
		}
		store, err := o.S3(at)
		return &s3{at, store}, err
	}
	base, err := parseWeb(address)
	if err != nil {
		return nil, err
	}
	if o.Client == nil {
		own := o.transport()
		r.ended = append(r.ended, own.CloseIdleConnections)
		o.Client = &http.Client{Transport: own}
	}
	return web{base, o.Client}, nil
}

// transport returns a transport for hosts over HTTP.
func (o *RemoteOptions) transport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = o.Connections
	if o.Public {
		dialer := &net.Dialer{Timeout: o.Timeout, ControlContext: bucket.PublicOnly}
		t.DialContext, t.Proxy = dialer.DialContext, nil // a proxy would connect to any address
	}
	return t
}

func (r *remote) open(want wire.Hash, o RemoteOptions) (*Set, Mix, error) {
	b, err := r.hosts.all(r.ctx, manifestFile, manifestBytesMax, func(b []byte) error {
		if got := wire.SHA256(b); got != want {
			return fmt.Errorf("its manifest has hash %s, want %s", got, want)
		}
		return nil
	})
	if err != nil {
		return nil, Mix{}, err
	}
	if isMix(b) && o.component {
		return nil, Mix{}, errNested
	}
	if isMix(b) {
		m, err := ParseMix(b)
		return nil, m, err
	}
	m, err := ParseManifest(b)
	if err != nil {
		return nil, Mix{}, err
	}
	if o.CacheBytes == 0 && o.LookAhead > 0 { // prefetched chunks must not evict each other
		perSequence := int(min(o.SequenceTokens, sequenceMax))*m.TokenBytes/merkle.ChunkBytes + 2
		o.CacheBytes = max(cacheBytes, (o.LookAhead+o.Connections)*perSequence*merkle.ChunkBytes)
	}
	s, err := newSet("", m, o.Options, r)
	if err != nil {
		return nil, Mix{}, err
	}
	if o.LookAhead > 0 {
		s.ahead.sequences = uint64(o.LookAhead)
		for range o.Connections {
			r.work.Go(func() { r.fetchAhead(s.train.cache) })
		}
	}
	if o.Verify {
		return s, Mix{}, s.Verify(r.ctx)
	}
	return s, Mix{}, nil
}

// close ends everything that the set started.
func (r *remote) close() {
	r.cancel(errClosed)
	r.work.Wait()
	for _, end := range r.ended {
		end()
	}
}

// fetchAhead fetches chunks into the cache until the set is closed. Failures are retried, and
// reported, when the chunk is read.
func (r *remote) fetchAhead(c *cache) {
	for {
		select {
		case key := <-r.ahead:
			_, _ = c.load(key)
		case <-r.ctx.Done():
			return
		}
	}
}

// want requests a chunk before it is needed, unless the queue is full.
func (r *remote) want(key chunk) {
	select {
	case r.ahead <- key:
	default:
	}
}

// leavesFile is the name of the file of leaves in the directory of a data set: the hashes of all
// chunks of all shards, in manifest order, 32 bytes each, training shards first. It follows from
// the shards, so it is not part of the set. With it, chunks from strangers can be checked one by
// one.
const leavesFile = "leaves.bin"

// leavesOf returns the leaves of a shard, from the file of leaves or else from all its chunks.
func (r *remote) leavesOf(s *shard) ([]wire.Hash, error) {
	leaves := make([]wire.Hash, s.chunks())
	b := make([]byte, len(leaves)*len(wire.Hash{}))
	err := r.hosts.get(r.ctx, leavesFile, s.leafOffset, s.leavesSize, b, func(b []byte) error {
		for i := range leaves {
			leaves[i] = wire.Hash(b[i*len(wire.Hash{}):])
		}
		if merkle.Root(leaves) != s.Root {
			return permanentError{errors.New("the leaves do not lead to the shard's root")}
		}
		return nil
	})
	if err == nil || r.ctx.Err() != nil {
		return leaves, err
	}
	buf := make([]byte, min(s.Bytes, merkle.ChunkBytes))
	for i := range leaves {
		from, to := merkle.Chunk(s.Bytes, uint64(i))
		if err := r.hosts.get(r.ctx, s.File, from, s.Bytes, buf[:to-from], func([]byte) error { return nil }); err != nil {
			return nil, fmt.Errorf("read shard: %w", err)
		}
		leaves[i] = merkle.Leaf(buf[:to-from])
		r.kept.Put(leaves[i], buf[:to-from])
	}
	if got := merkle.Root(leaves); got != s.Root {
		return nil, &CorruptError{s.path, fmt.Sprintf("its root is %s instead of %s, and there is no right %s", got, s.Root, leavesFile)}
	}
	return leaves, nil
}

// fetch returns chunk i of a shard, which must have the leaf want, from the disk or a host.
func (r *remote) fetch(s *shard, i uint64, want wire.Hash) ([]byte, error) {
	from, to := merkle.Chunk(s.Bytes, i)
	if b := r.kept.Get(want, to-from); b != nil {
		return b, nil
	}
	b := make([]byte, to-from)
	err := r.hosts.get(r.ctx, s.File, from, s.Bytes, b, func(b []byte) error {
		if merkle.Leaf(b) != want {
			return &CorruptError{s.path, fmt.Sprintf("bytes %d to %d are not those of the manifest", from, to)}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read shard: %w", err)
	}
	r.kept.Put(want, b)
	return b, nil
}

// tokenizer fetches the definition of the set's tokenizer.
func (r *remote) tokenizer(m Manifest) (tokenizer.Tokenizer, error) {
	if t, err := tokenizer.Find(m.Tokenizer.Name, m.Tokenizer.Hash); err == nil {
		return t, nil
	}
	b, err := r.hosts.all(r.ctx, tokenizerFile, tokenizer.JSONBytesMax, func(b []byte) error {
		if got := wire.SHA256(b); got != m.Tokenizer.Hash {
			return fmt.Errorf("it has hash %s, want %s", got, m.Tokenizer.Hash)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("tokenizer of the data set: %w", err)
	}
	return tokenizer.Resolve(m.Tokenizer.Name, m.Tokenizer.Hash, b)
}
