package node

import (
	"context"
	"encoding/binary"
	"testing"
	"time"

	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/loop"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/node/blobs"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/wire"
)

// holder is a network with one peer, which answers questions for many payloads.
type holder struct {
	p2p.Network
	*blobs.Store
	asked  int
	answer func(right []byte) []byte
}

func (h *holder) Ask(_ context.Context, _ key.Public, q []byte, done func([]byte, error)) {
	h.asked++
	r := wire.NewReader(q)
	if r.U8() != questionBulk {
		done(nil, p2p.ErrRefused)
	} else if answer := h.answer(h.AnswerBulk(&r)); answer != nil {
		done(answer, nil)
	} else {
		done(nil, p2p.ErrStalled)
	}
}

// A member asks for 1,500 payloads in two questions. It keeps those that have their hashes, and
// nothing else, whatever the peer answers.
func TestManyPayloadsComeAtOnce(t *testing.T) {
	const all = 1500
	at := func(i int) int { return i * (4 + len(toyMagic) + 4) } // in an answer
	for name, c := range map[string]struct {
		answer func([]byte) []byte
		want   int
	}{
		"honest":     {func(b []byte) []byte { return b }, all},
		"silent":     {func([]byte) []byte { return nil }, 0},
		"garbage":    {func([]byte) []byte { return []byte{1, 2, 3} }, 0},
		"cut short":  {func(b []byte) []byte { return b[:at(10)+5] }, 20},
		"altered":    {func(b []byte) []byte { b[at(10)-1]++; return b }, all - 2},
		"in another": {func(b []byte) []byte { return append(append([]byte{}, b[at(1):]...), b[:at(1)]...) }, 0},
	} {
		h := &holder{Store: blobs.New(), answer: c.answer}
		clock, fetched := loop.NewVirtual(time.Unix(0, 0)), 0
		n := &Node{cfg: Config{Loop: clock, Engine: toy{}, Observe: func(ev event.Event) {
			if _, ok := ev.(event.Fetched); ok {
				fetched++
			}
		}}, ctx: t.Context(), limits: loop.Limits{Step: wakeEvery}, blobs: blobs.New(), machine: client.New(client.Config{})}
		n.exchange = &peers{node: n, network: h}
		var roots []wire.Hash
		for i := range all {
			payload := binary.LittleEndian.AppendUint32(append([]byte{}, toyMagic...), uint32(i))
			roots = append(roots, h.PutPayload(1, payload))
			n.fetchPayload(client.FetchPayload{Round: 1, Payload: merkle.BlobRoot(payload), PayloadBytes: uint32(len(payload)), Bulk: key.Public{1}})
		}
		n.fetchBulk()
		clock.Run(time.Unix(10, 0))
		kept := 0
		for _, root := range roots {
			if _, ok := n.blobs.Payload(root); ok {
				kept++
			}
		}
		if h.asked != 2 || kept != c.want || fetched != c.want {
			t.Errorf("%s: %d questions, %d payloads came and %d are kept, want %d", name, h.asked, fetched, kept, c.want)
		}
	}
}

// Payloads for which an answer has no room are left out, and the rest is there.
func TestAnAnswerWithManyPayloadsHasALimit(t *testing.T) {
	s := blobs.New()
	q := []byte{}
	const size = 300 << 10
	for i := range 5 {
		payload := make([]byte, size)
		payload[0] = byte(i)
		root := s.PutPayload(1, payload)
		q = append(q, root[:]...)
	}
	r := wire.NewReader(append(q, make([]byte, 32)...)) // and one that nobody has
	answer := s.AnswerBulk(&r)
	if want := 3*size + 6*4; len(answer) != want {
		t.Errorf("an answer of %d bytes, want %d", len(answer), want)
	}
	for _, bad := range [][]byte{q[:31], append(q, 1)} {
		if r := wire.NewReader(bad); s.AnswerBulk(&r) != nil {
			t.Errorf("a question of %d bytes is answered", len(bad))
		}
	}
}
