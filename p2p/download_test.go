package p2p_test

import (
	"bytes"
	"errors"
	"math/bits"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/p2p/mem"
	"github.com/entrain-network/entrain/wire"
	"pgregory.net/rapid"
)

// blob is n bytes that differ from chunk to chunk and between seeds.
func blob(n int, seed byte) []byte {
	b := make([]byte, n)
	x := uint64(seed) + 1
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x >> 32)
	}
	return b
}

func keys(n int) []key.Public {
	ks := make([]key.Public, n)
	for i := range ks {
		ks[i] = key.FromSeed([32]byte{byte(i), byte(i >> 8), 1}).Public()
	}
	return ks
}

// conduct is how a peer of the driver below behaves.
type conduct int

const (
	honest   conduct = iota
	lies             // sends wrong leaves and chunks
	lacks            // does not hold the blob
	breaks           // the connection fails before anything came
	flickers         // the connection fails after each chunk
	sticks           // late, then stalled
	shortens         // sends inner nodes as leaves, with the right root
	shifts           // sends another part of the leaf list than was asked for, with that one's proof
)

// driver performs a download in the order that pick chooses.
type driver struct {
	t        fataler
	data     []byte
	source   *p2p.Underway
	conduct  map[key.Public]conduct
	d        *p2p.Download
	open     []*answer
	asked    map[key.Public]int
	requests int
	parts    bool // leaf lists of more than shortWhole leaves come in parts
}

// The lists of short blobs in tests.
const (
	shortWhole = 4
	shortPart  = 2
)

type answer struct {
	p2p.Request
	next uint32
	late bool
}

func (v *driver) pump() {
	for _, r := range v.d.Next() {
		v.requests++
		v.asked[r.To]++
		v.open = append(v.open, &answer{Request: r, next: r.From})
	}
}

func (v *driver) remove(a *answer) {
	v.open = slices.DeleteFunc(v.open, func(b *answer) bool { return a == b })
}

func (v *driver) end(a *answer, err error) {
	v.remove(a)
	v.d.End(a.Request, err)
}

// advance lets one thing happen to a request.
func (v *driver) advance(a *answer) {
	c := v.conduct[a.To]
	switch {
	case c == lacks:
		v.end(a, p2p.ErrMissing)
	case c == breaks:
		v.end(a, errors.New("no route"))
	case c == sticks && !a.late:
		a.late = true
		v.d.Late(a.Request)
	case c == sticks:
		v.end(a, p2p.ErrStalled)
	case c == shortens && a.Count == 0:
		leaves := merkle.BlobLeaves(v.data)
		if n := uint64(len(leaves)); n > 1 {
			half := uint64(1) << (bits.Len64(n-1) - 1)
			leaves = []wire.Hash{merkle.Root(leaves[:half]), merkle.Root(leaves[half:])}
		}
		v.remove(a)
		v.d.Leaves(a.Request, leaves)
	default:
		v.serve(a, c)
	}
}

// serve has the next answer to a request come as p2p.Serve gives it.
func (v *driver) serve(a *answer, c conduct) {
	q := p2p.Query{Ref: a.Ref, From: a.next, Count: min(a.Count, 1)}
	if n := a.Ref.Chunks(); c == shifts && a.Count == 0 && v.parts && n > shortWhole {
		q.From = (q.From + shortPart) % (n / shortPart * shortPart)
	}
	p2p.Serve(v.source, wire.Hash{}, q, func(s p2p.Status, b []byte) error {
		b = bytes.Clone(b)
		if c == lies {
			b = append(b, make([]byte, 32)...)
		}
		switch {
		case s != p2p.StatusOK:
			v.end(a, s.Err())
		case a.Count == 0:
			leaves, err := p2p.ParseLeaves(b)
			if err != nil {
				v.end(a, err)
				break
			}
			v.remove(a)
			v.d.Leaves(a.Request, leaves)
		default:
			v.chunk(a, c, b)
		}
		return nil
	})
}

func (v *driver) chunk(a *answer, c conduct, b []byte) {
	chunk, err := a.Verify(a.next, b)
	if err != nil {
		v.end(a, err)
		return
	}
	a.next++
	switch more := v.d.Chunk(a.Request, chunk); {
	case !more || a.next == a.From+a.Count:
		v.end(a, nil)
	case c == flickers:
		v.end(a, errors.New("connection reset"))
	}
}

// run drives to the end.
func (v *driver) run(pick func(n int) int) ([]byte, error) {
	for steps := 0; ; steps++ {
		v.pump()
		if v.d.Done() {
			return v.d.Result()
		}
		if len(v.open) == 0 {
			v.t.Fatal("the download is neither done nor waiting")
		}
		if steps > 100_000 {
			v.t.Fatal("the download does not end")
		}
		v.advance(v.open[pick(len(v.open))])
	}
}

func newDriver(t fataler, data []byte, f p2p.Fetch, c map[key.Public]conduct) *driver {
	t.Helper()
	d, err := p2p.NewDownload(f)
	if err != nil {
		t.Fatal(err)
	}
	store := mem.NewStore(uint64(len(data)))
	if _, err := store.Put(data); err != nil {
		t.Fatal(err)
	}
	return &driver{t: t, data: data, source: p2p.NewUnderway(store), conduct: c, d: d, asked: map[key.Public]int{}}
}

// TestDownloadAlwaysEndsWithTheBlobOrItsReason drives downloads through random
// orders of events among random peers.
func TestDownloadAlwaysEndsWithTheBlobOrItsReason(t *testing.T) {
	whole := blob(9*merkle.ChunkBytes+17, 1)
	rapid.Check(t, func(t *rapid.T) { checkDownload(t, whole, false) })
	p2p.ShortLists(t, shortWhole, shortPart)
	rapid.Check(t, func(t *rapid.T) { checkDownload(t, whole, true) })
}

// Many peers, whatever they do, cost a download no more requests than their number and that of the chunks allow.
func FuzzDownload(f *testing.F) {
	whole := blob(9*merkle.ChunkBytes+17, 1)
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) { checkDownload(t, whole, false) }))
}

// The same of a blob whose leaf list comes in parts.
func FuzzDownloadInParts(f *testing.F) {
	p2p.ShortLists(f, shortWhole, shortPart)
	whole := blob(9*merkle.ChunkBytes+17, 1)
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) { checkDownload(t, whole, true) }))
}

func checkDownload(t *rapid.T, whole []byte, parts bool) {
	sizes := []int{0, 1, merkle.ChunkBytes, merkle.ChunkBytes + 1, 5 * merkle.ChunkBytes, len(whole)}
	data := whole[:rapid.SampledFrom(sizes).Draw(t, "size")]
	parts = parts && merkle.BlobChunks(uint64(len(data))) > shortWhole
	peers := keys(rapid.IntRange(0, 12).Draw(t, "peers"))
	conducts := map[key.Public]conduct{}
	var penalized []key.Public
	good := false
	for _, k := range peers {
		c := conduct(rapid.IntRange(0, int(shifts)).Draw(t, "conduct"))
		conducts[k] = c
		good = good || c == honest || c == flickers || c == shifts && !parts || (c == shortens && len(data) <= 2*merkle.ChunkBytes)
	}
	var progress uint64
	f := p2p.Fetch{
		Ref: mem.NewRef(data), From: peers,
		Progress: func(done, total uint64) {
			if done < progress || done > total || total != uint64(len(data)) {
				t.Fatalf("progress from %d to %d of %d", progress, done, total)
			}
			progress = done
		},
		Penalty: func(k key.Public, o p2p.Offence) {
			c := conducts[k]
			lied := c == lies || parts && (c == shortens || c == shifts)
			if !(lied && o == p2p.Lied) && !(c == sticks && o == p2p.Stalled) {
				t.Fatalf("a peer of conduct %d is blamed: %v", c, o)
			}
			if slices.Contains(penalized, k) {
				t.Fatal("a peer is blamed twice in one fetch")
			}
			penalized = append(penalized, k)
		},
	}
	v := newDriver(t, data, f, conducts)
	v.parts = parts
	got, err := v.run(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") })
	if most := 8*len(peers) + 4*int(f.Ref.Chunks())*max(1, len(peers)); v.requests > most { // leaves included
		t.Fatalf("%d requests to %d peers for %d chunks", v.requests, len(peers), f.Ref.Chunks())
	}
	if good {
		if err != nil || !bytes.Equal(got, data) {
			t.Fatalf("with an honest peer the fetch failed: %v", err)
		}
		return
	}
	var fe *p2p.FetchError
	if !errors.As(err, &fe) || !errors.Is(err, p2p.ErrNoPeers) {
		// Peers that shorten the leaf list, or shift it, can still serve chunks, once the list is known.
		if err != nil || !bytes.Equal(got, data) {
			t.Fatalf("got error %v", err)
		}
	}
}

// fataler is what the driver needs of testing.T and rapid.T.
type fataler interface {
	Helper()
	Fatal(args ...any)
}

func TestAFailedFetchIsResumed(t *testing.T) {
	data := blob(6*merkle.ChunkBytes, 2)
	ks := keys(3)
	d := newDriver(t, data, p2p.Fetch{Ref: mem.NewRef(data), From: ks[:1]}, nil)
	for range 4 { // the leaves, and three chunks
		d.pump()
		d.advance(d.open[0])
	}
	d.d.Abort(p2p.ErrClosed)
	_, err := d.d.Result()
	var fe *p2p.FetchError
	if !errors.As(err, &fe) || !errors.Is(err, p2p.ErrClosed) || fe.Held != 3 {
		t.Fatalf("got %v", err)
	}

	corrupt := true
	again := p2p.Fetch{Ref: fe.Ref, From: ks[1:], Leaves: fe.Leaves(), Have: func(i uint32, leaf wire.Hash) []byte {
		b := fe.Chunk(i, leaf)
		if b != nil && corrupt { // as a bad disk would
			corrupt = false
			b = bytes.Clone(b)
			b[0] ^= 1
		}
		return b
	}}
	d = newDriver(t, data, again, nil)
	delivered := 0
	got, err := d.run(func(n int) int { delivered++; return 0 })
	if err != nil || !bytes.Equal(got, data) {
		t.Fatal(err)
	}
	if delivered != 4 {
		t.Errorf("%d answers for the 4 chunks that were missing", delivered)
	}
}

func TestAFalseSizeIsNobodysFaultButTheAuthors(t *testing.T) {
	data := blob(3*merkle.ChunkBytes-5, 3)
	for name, size := range map[string]uint64{
		"last chunk longer":  3*merkle.ChunkBytes - 5 + 1,
		"last chunk shorter": 3*merkle.ChunkBytes - 5 - 1,
		"a chunk more":       3*merkle.ChunkBytes + 1,
		"a chunk less":       2 * merkle.ChunkBytes,
		"empty":              0,
		"largest":            p2p.MaxBlob,
	} {
		t.Run(name, func(t *testing.T) {
			f := p2p.Fetch{Ref: p2p.Ref{Root: merkle.BlobRoot(data), Size: size}, From: keys(3)}
			f.Penalty = func(key.Public, p2p.Offence) {
				t.Error("an honest peer is blamed")
			}
			got, err := newDriver(t, data, f, nil).run(func(n int) int { return n - 1 })
			if err == nil || got != nil {
				t.Error("a blob of another length was accepted")
			}
		})
	}
	if _, err := p2p.NewDownload(p2p.Fetch{Ref: p2p.Ref{Size: p2p.MaxBlob + 1}}); !errors.Is(err, p2p.ErrTooLarge) {
		t.Errorf("a blob beyond the limit: %v", err)
	}
}

func TestASlowPeersShareIsTakenOver(t *testing.T) {
	data := blob(20*merkle.ChunkBytes, 4)
	ks := keys(2)
	v := newDriver(t, data, p2p.Fetch{Ref: mem.NewRef(data), From: ks}, nil)
	// The second peer never answers, and is never even called late.
	for i := 0; ; i++ {
		v.pump()
		fast := slices.IndexFunc(v.open, func(a *answer) bool { return a.To == ks[0] })
		if fast < 0 {
			break
		}
		v.advance(v.open[fast])
	}
	if v.d.Done() {
		t.Fatal("chunks that are on their way were asked for twice")
	}
	for _, a := range v.open {
		v.d.Late(a.Request)
	}
	got, err := v.run(func(n int) int {
		return slices.IndexFunc(v.open, func(a *answer) bool { return a.To == ks[0] })
	})
	if err != nil || !bytes.Equal(got, data) {
		t.Fatal(err)
	}
}

func TestASmallBlobIsAskedOfOnePeer(t *testing.T) {
	data := blob(1000, 5)
	v := newDriver(t, data, p2p.Fetch{Ref: mem.NewRef(data), From: keys(5)}, nil)
	if _, err := v.run(func(int) int { return 0 }); err != nil {
		t.Fatal(err)
	}
	if v.requests != 1 {
		t.Errorf("%d requests for one chunk", v.requests)
	}
}

func TestRepeatedPeersCountOnce(t *testing.T) {
	k := keys(1)[0]
	data := blob(8*merkle.ChunkBytes, 6)
	v := newDriver(t, data, p2p.Fetch{Ref: mem.NewRef(data), From: []key.Public{k, k, k}}, map[key.Public]conduct{k: breaks})
	if _, err := v.run(func(int) int { return 0 }); !errors.Is(err, p2p.ErrNoPeers) {
		t.Errorf("got %v", err)
	}
	if v.asked[k] != 1 {
		t.Errorf("asked %d times", v.asked[k])
	}
}

// TestTheFirstPeerIsAskedFirstAndOnce names the author of a blob beside a list in which it is, too. Nobody has
// the blob: each of the four is asked in turn, the author first.
func TestTheFirstPeerIsAskedFirstAndOnce(t *testing.T) {
	others := []key.Public{{2}, {1}, {3}, {2}, {4}}
	d, err := p2p.NewDownload(p2p.Fetch{Ref: p2p.Ref{Root: wire.Hash{1}, Size: 1}, First: key.Public{1}, From: others})
	if err != nil {
		t.Fatal(err)
	}
	var asked []key.Public
	for !d.Done() {
		for _, r := range d.Next() {
			asked = append(asked, r.To)
			d.End(r, p2p.ErrLied)
		}
	}
	if want := []key.Public{{1}, {2}, {3}, {4}}; !slices.Equal(asked, want) {
		t.Errorf("%x are asked, want %x", asked, want)
	}
	if want := []key.Public{{2}, {1}, {3}, {2}, {4}}; !slices.Equal(others, want) {
		t.Errorf("the list that many share became %x", others)
	}
}

func TestVerifyKeepsToTheRequest(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a chunk outside the request was accepted")
		}
	}()
	p2p.Request{From: 2, Count: 1}.Verify(3, nil)
}
