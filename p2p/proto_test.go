package p2p_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/p2p/mem"
	"github.com/entrain-network/entrain/wire"
)

func FuzzQuery(f *testing.F) {
	f.Add(p2p.Query{}.Append(nil))
	f.Add(p2p.Query{Run: wire.Hash{1}, Ref: p2p.Ref{Root: wire.Hash{2}, Size: 9 << 20}, From: 3, Count: 4}.Append(nil))
	f.Add(p2p.Query{Ref: p2p.Ref{Size: p2p.MaxBlob}, From: p2p.MaxBlob/merkle.ChunkBytes - 1, Count: 1}.Append(nil))
	f.Add(p2p.Query{Ref: p2p.Ref{Size: p2p.MaxBlob}, From: p2p.MaxBlob/merkle.ChunkBytes - p2p.PartChunks}.Append(nil))
	large, source := spread(p2p.MaxChunks + 1)
	f.Add(p2p.Query{Ref: large, From: 2 * p2p.PartChunks}.Append(nil))
	f.Add([]byte("GET / HTTP/1.1\r\n"))
	store := mem.NewStore(1 << 20)
	store.Put(blob(merkle.ChunkBytes+1, 7))
	held := []*p2p.Underway{p2p.NewUnderway(store), p2p.NewUnderway(source)}
	f.Fuzz(func(t *testing.T, b []byte) {
		q, err := p2p.ParseQuery(b)
		if err != nil {
			return
		}
		if !bytes.Equal(q.Append(nil), b) {
			t.Errorf("%x parses but re-encodes as %x", b, q.Append(nil))
		}
		for _, source := range held {
			answers := 0
			p2p.Serve(source, q.Run, q, func(s p2p.Status, data []byte) error {
				answers++
				if len(data) > p2p.MaxAnswer {
					t.Errorf("an answer of %d bytes", len(data))
				}
				return nil
			})
			if answers == 0 || answers > max(1, int(q.Count)) {
				t.Errorf("%d answers to a request of %d chunks", answers, q.Count)
			}
		}
	})
}

func FuzzLeaves(f *testing.F) {
	f.Add(make([]byte, 64))
	f.Add([]byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		leaves, err := p2p.ParseLeaves(b)
		if err != nil {
			return
		}
		var again []byte
		for _, l := range leaves {
			again = append(again, l[:]...)
		}
		if !bytes.Equal(again, b) {
			t.Errorf("%x parses but re-encodes as %x", b, again)
		}
	})
}

func TestQueryHasTheBytesOfThePackageComment(t *testing.T) {
	q := p2p.Query{Run: wire.Hash{0xaa}, Ref: p2p.Ref{Root: wire.Hash{0xbb}, Size: 0x40003}, From: 1, Count: 1}
	want := make([]byte, p2p.QueryBytes)
	want[0], want[32] = 0xaa, 0xbb
	copy(want[64:], []byte{3, 0, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0})
	if got := q.Append(nil); !bytes.Equal(got, want) {
		t.Errorf("got  %x\nwant %x", got, want)
	}
	if got := append(p2p.AppendAnswerHead(nil, p2p.StatusOK, 2), "hi"...); !bytes.Equal(got, []byte{0, 2, 0, 0, 0, 'h', 'i'}) {
		t.Errorf("an answer is %x", got)
	}
	if got := p2p.AppendAnswerHead(nil, p2p.StatusMissing, 0); !bytes.Equal(got, []byte{1}) {
		t.Errorf("a refusal is %x", got)
	}
}

func TestServeAnswersForWhatItHolds(t *testing.T) {
	data := blob(2*merkle.ChunkBytes+5, 8)
	held := mem.NewStore(uint64(len(data)))
	ref, err := held.Put(data)
	if err != nil {
		t.Fatal(err)
	}
	run, store := wire.Hash{1}, p2p.NewUnderway(held)
	longer := ref
	longer.Size++
	for _, c := range []struct {
		name string
		q    p2p.Query
		want []p2p.Status
	}{
		{"leaves", p2p.Query{Run: run, Ref: ref}, []p2p.Status{p2p.StatusOK}},
		{"chunks", p2p.Query{Run: run, Ref: ref, From: 1, Count: 2}, []p2p.Status{p2p.StatusOK, p2p.StatusOK}},
		{"another run", p2p.Query{Run: wire.Hash{2}, Ref: ref}, []p2p.Status{p2p.StatusOtherRun}},
		{"unknown", p2p.Query{Run: run, Ref: p2p.Ref{Size: 1}}, []p2p.Status{p2p.StatusMissing}},
		{"false size, last chunk", p2p.Query{Run: run, Ref: longer, From: 1, Count: 2}, []p2p.Status{p2p.StatusOK, p2p.StatusMissing}},
		{"false number of chunks", p2p.Query{Run: run, Ref: p2p.Ref{Root: ref.Root}, Count: 1}, []p2p.Status{p2p.StatusMissing}},
	} {
		var got []p2p.Status
		err := p2p.Serve(store, run, c.q, func(s p2p.Status, _ []byte) error { got = append(got, s); return nil })
		if err != nil || !bytes.Equal(statuses(got), statuses(c.want)) {
			t.Errorf("%s: got %v, %v, want %v", c.name, got, err, c.want)
		}
	}
	broken := errors.New("broken pipe")
	sent := 0
	err = p2p.Serve(store, run, p2p.Query{Run: run, Ref: ref, Count: 3}, func(p2p.Status, []byte) error { sent++; return broken })
	if !errors.Is(err, broken) || sent != 1 {
		t.Errorf("after a broken pipe it sent %d more times and returned %v", sent-1, err)
	}
}

func statuses(s []p2p.Status) []byte {
	var b []byte
	for _, x := range s {
		b = append(b, byte(x))
	}
	return b
}

func TestStoreKeepsToItsLimit(t *testing.T) {
	s := mem.NewStore(100)
	a, err := s.Put(make([]byte, 60))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(make([]byte, 60)); err != nil {
		t.Errorf("the same blob again: %v", err)
	}
	if _, err := s.Put(make([]byte, 41)); !errors.Is(err, p2p.ErrTooLarge) {
		t.Errorf("beyond the limit: %v", err)
	}
	s.Drop(a.Root)
	s.Drop(a.Root)
	if _, err := s.Put(make([]byte, 100)); err != nil {
		t.Errorf("after dropping: %v", err)
	}
	if _, ok := s.Chunk(a.Root, 0); ok {
		t.Error("a dropped blob is served")
	}
}

func TestStandingBansAndForgives(t *testing.T) {
	var s p2p.Standing
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ann, bob := key.Public{1}, key.Public{2}
	for lie := 1; lie <= 3; lie++ {
		if banned := s.Charge(ann, p2p.Lied, now); banned != (lie == 3) {
			t.Errorf("lie %d bans: %v", lie, banned)
		}
	}
	if s.Charge(ann, p2p.Lied, now) {
		t.Error("banned twice")
	}
	if !s.Banned(ann, now) || s.Banned(bob, now) {
		t.Error("the wrong peer is banned")
	}
	if s.Banned(ann, now.Add(p2p.BanTime)) {
		t.Error("a ban does not end")
	}
	for range 1000 { // twice a minute for hours: a bad link, not an enemy
		if now = now.Add(30 * time.Second); s.Charge(bob, p2p.Stalled, now) {
			t.Fatal("a peer with a bad link is banned")
		}
	}
	s.Charge(bob, p2p.Lied, now)
	s.Charge(bob, p2p.Lied, now)
	for i := range 16 << 10 { // strangers come and go
		s.Charge(key.Public{3, byte(i), byte(i >> 8)}, p2p.Stalled, now.Add(time.Second))
	}
	if s.Charge(bob, p2p.Lied, now) {
		t.Error("the memory of peers is not bounded")
	}
}
