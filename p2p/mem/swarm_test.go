package mem_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/p2p/mem"
	"github.com/entrain-network/entrain/wire"
)

// seed counts the chunks that the holder of a whole blob serves.
type seed struct {
	*participant
	chunks int
}

func (s *seed) Chunk(root wire.Hash, i uint32) ([]byte, bool) {
	b, ok := s.Store.Chunk(root, i)
	if ok {
		s.chunks++
	}
	return b, ok
}

// Many who want one member's blob at the same time get most of it from each other.
func TestOneSeedIsSpared(t *testing.T) {
	const fetchers = 12
	net := newNetwork(fetchers, mem.Config{Link: mem.Link{Delay: 40 * time.Millisecond, BytesPerSecond: 12_500_000}})
	s := &seed{participant: &participant{Store: mem.NewStore(64 << 20), net: net, got: map[string]int{}}}
	s.key = key.FromSeed([32]byte{99}).Public()
	s.Peer = net.Join(s.key, s)
	net.peers = append(net.peers, s.participant)
	net.introduce()
	data := bytes.Repeat([]byte("a model that one member has, and twelve others want at once... "), 1<<18) // 16 MiB
	for i := range data {
		data[i] ^= byte(i >> 18)
	}
	ref, err := s.Put(data)
	if err != nil {
		t.Fatal(err)
	}
	all := net.keys(0, fetchers+1)
	done := 0
	began := net.loop.Now()
	for i := range fetchers {
		from := append(append([]key.Public{s.key}, all[i+1:fetchers]...), all[:i]...)
		net.peers[i].Fetch(t.Context(), p2p.Fetch{Ref: ref, From: from}, func(b []byte, err error) {
			if err != nil || !bytes.Equal(b, data) {
				t.Errorf("fetcher %d: %v", i, err)
			}
			done++
			if _, err := net.peers[i].Put(b); err != nil { // as a member does
				t.Error(err)
			}
		})
	}
	for done < fetchers && net.loop.Step() {
	}
	took := net.loop.Now().Sub(began)
	whole := int(ref.Chunks())
	t.Logf("%d fetchers of %d chunks in %s: the seed served %d, %.1f times the blob", fetchers, whole, took, s.chunks, float64(s.chunks)/float64(whole))
	if done < fetchers || s.chunks > fetchers*whole/2 {
		t.Errorf("the seed served %d of the %d chunks that were wanted", s.chunks, fetchers*whole)
	}
}
