package p2p_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/p2p/mem"
	"github.com/entrain-network/entrain/wire"
)

// spreadSource is a Source of a blob of any size, whose chunks are made when they are asked for, and
// repeat. The last one has one byte.
type spreadSource struct {
	ref    p2p.Ref
	leaves []wire.Hash
}

// spreadChunks is the number of chunks that differ. It divides no part of a leaf list, so that parts
// differ.
const spreadChunks = 11

func spreadChunk(i uint32) []byte {
	b := make([]byte, merkle.ChunkBytes)
	binary.LittleEndian.PutUint32(b, i%spreadChunks)
	return b
}

func spread(chunks uint32) (p2p.Ref, *spreadSource) {
	var repeated [spreadChunks]wire.Hash
	for i := range repeated {
		repeated[i] = merkle.Leaf(spreadChunk(uint32(i)))
	}
	s := &spreadSource{leaves: make([]wire.Hash, chunks)}
	for i := range s.leaves {
		s.leaves[i] = repeated[i%spreadChunks]
	}
	s.leaves[chunks-1] = merkle.Leaf([]byte{1})
	s.ref = p2p.Ref{Root: merkle.Root(s.leaves), Size: uint64(chunks-1)*merkle.ChunkBytes + 1}
	return s.ref, s
}

func (s *spreadSource) Leaves(root wire.Hash) ([]wire.Hash, bool) {
	return s.leaves, root == s.ref.Root
}

func (s *spreadSource) Chunk(root wire.Hash, i uint32) ([]byte, bool) {
	if int(i) == len(s.leaves)-1 {
		return []byte{1}, root == s.ref.Root
	}
	return spreadChunk(i), root == s.ref.Root && int(i) < len(s.leaves)
}

// fetchSome drives a fetch from a source until the given number of chunks has come, or it ends. It returns with how many
// requests each part of the leaf list was asked for.
func fetchSome(t *testing.T, source p2p.Source, f p2p.Fetch, c map[key.Public]conduct, chunks int) (*driver, map[uint32]int) {
	t.Helper()
	d, err := p2p.NewDownload(f)
	if err != nil {
		t.Fatal(err)
	}
	v := &driver{t: t, source: p2p.NewUnderway(source), conduct: c, d: d, asked: map[key.Public]int{}}
	lists := map[uint32]int{}
	for steps, came := 0, 0; came < chunks; steps++ {
		if v.pump(); v.d.Done() {
			return v, lists
		}
		a := v.open[steps%len(v.open)]
		if a.Count == 0 {
			lists[a.From]++
		} else if c[a.To] != lies {
			came++
		}
		v.advance(a)
	}
	return v, lists
}

// The leaf list of a large blob comes in parts, a liar is given up for its own, and another fetch gets them from
// the one that is under way.
func TestTheLeafListOfALargeBlobComesInParts(t *testing.T) {
	const whole, part = 32, 16
	p2p.ShortLists(t, whole, part)
	ref, source := spread(37)
	peers := keys(3)
	var blamed []key.Public
	penalty := func(k key.Public, o p2p.Offence) { blamed = append(blamed, k) }
	conducts := map[key.Public]conduct{peers[1]: lies}
	first, lists := fetchSome(t, source, p2p.Fetch{Ref: ref, From: peers, Self: key.Public{9}, Penalty: penalty}, conducts, 24)
	if len(lists) != 3 || lists[0]+lists[part]+lists[2*part] > 5 {
		t.Errorf("requests for parts of the list, by their begin: %v", lists)
	}
	if len(blamed) != 1 || blamed[0] != peers[1] {
		t.Errorf("blamed are %x", blamed)
	}

	others := p2p.NewUnderway(mem.NewStore(0))
	end := others.Begin(first.d)
	second, lists := fetchSome(t, others, p2p.Fetch{Ref: ref, From: peers[:1], Self: key.Public{9}}, nil, 10)
	if len(lists) != 3 {
		t.Errorf("from a fetch under way came the parts %v", lists)
	}
	end()

	first.d.Abort(p2p.ErrClosed)
	_, err := first.d.Result()
	var fe *p2p.FetchError
	if !errors.As(err, &fe) || fe.Held < 20 || len(fe.Leaves()) != len(source.leaves) {
		t.Fatalf("the first fetch ended with %v", err)
	}
	second.d.Abort(p2p.ErrClosed)
	if _, err := second.d.Result(); !errors.As(err, &fe) || fe.Held != 10 {
		t.Errorf("the second fetch ended with %v", err)
	}
	third, lists := fetchSome(t, source, p2p.Fetch{Ref: ref, From: peers[:1], Leaves: fe.Leaves(), Have: fe.Chunk}, nil, 1)
	third.d.Abort(p2p.ErrClosed)
	if _, err := third.d.Result(); !errors.As(err, &fe) || fe.Held != 11 || len(lists) != 0 {
		t.Errorf("the third fetch asked for the parts %v, and ended with %v", lists, err)
	}
}

// Whoever asks again and again for parts of a list does not have the roots of them all computed again, which
// takes longer than to send a part.
func TestPartsAreProvedOnce(t *testing.T) {
	ref, source := spread(p2p.MaxChunks + 1)
	held := p2p.NewUnderway(source)
	ask := func() (answer []byte) {
		p2p.Serve(held, wire.Hash{}, p2p.Query{Ref: ref, From: p2p.PartChunks}, func(_ p2p.Status, b []byte) error {
			answer = b
			return nil
		})
		return answer
	}
	before := ask()
	source.leaves[0][0] ^= 1 // no source does that; the proof shows it if the roots are computed again
	if again := ask(); len(again) != 32*(p2p.PartChunks+2) || !bytes.Equal(before, again) {
		t.Errorf("an answer of %d bytes, and then another of %d", len(before), len(again))
	}
}
