package node

import (
	"bytes"
	"context"
	"testing"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/node/blobs"
	"github.com/entrain-network/entrain/node/gossip"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/wire"
)

// Whatever a peer asks is answered from what is held, in bounds, or not at all.
func FuzzAnswer(f *testing.F) {
	h, _ := listener()
	author := worldKey(1)
	signed := dispute.Commitment{Run: h.node.cfg.ID, Round: 3, Member: 1}.Sign(author)
	h.Commitments.Put(gossip.NewAuthored(author.Public(), signed))
	public := author.Public()
	f.Add(gossip.AppendQuestion(nil, 3, []coordinator.Member{0, 1}))
	f.Add(signed.Append(append([]byte{questionOffer}, public[:]...)))
	f.Add(append([]byte{questionSpans}, make([]byte, 32)...))
	h.Store = blobs.New()
	root := h.PutMade(blobs.NewUpdate(3, []byte("update")))
	f.Add([]byte{questionUpdate, 3, 0, 0, 0})
	f.Add(append(wire.AppendHash([]byte{questionBulk}, root), make([]byte, 32)...))
	f.Add([]byte{gossip.QuestionCommitments, 3, 0, 0, 0, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, request []byte) {
		answer := h.Answer(public, request)
		if len(request) > 0 && request[0] == questionUpdate {
			if want := wire.AppendU64(wire.AppendHash(nil, root), 6); len(answer) > 0 && !bytes.Equal(answer, want) {
				t.Fatalf("%x is answered by %x", request, answer)
			}
			return
		}
		if len(request) > 0 && request[0] == questionOffer {
			if len(answer) > 0 && !bytes.Equal(answer, []byte{1}) {
				t.Fatalf("%x is answered by %x", request, answer)
			}
			return
		}
		if len(answer) > p2p.MaxAnswer {
			t.Fatalf("an answer of %d bytes", len(answer))
		}
		for r := wire.NewReader(answer); r.Len() > 0; {
			b := r.Var(p2p.MaxGossip)
			if request[0] == questionBulk {
				if len(b) > 0 && string(b) != "update" {
					t.Fatalf("%x is answered by %x", request, b)
				}
				continue
			}
			if got, ok := gossip.Read(b); !ok || !got.Verify() || got.Author != public || got.Signed != signed {
				t.Fatalf("%x is answered by %x, which is not held", request, b)
			}
		}
	})
}

// The spans of an answer are few, and written in one way only.
func FuzzAnsweredSpans(f *testing.F) {
	f.Add(batch.Append(nil, []batch.Span{{Start: 1 << 40, Count: 3}, {Start: 7, Count: 1}}))
	f.Add(bytes.Repeat([]byte{0xff}, p2p.MaxAnswer))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, answer []byte) {
		spans, ok := gossip.AnsweredSpans(answer)
		if len(spans) > gossip.SpansMax {
			t.Errorf("%d spans", len(spans))
		}
		if again := batch.Append(nil, spans); ok && !bytes.Equal(again, answer) {
			t.Errorf("%x is read as what is written as %x", answer, again)
		}
	})
}

// The commitments of an answer are checked one by one: no more signatures than commitments fit into
// its bytes.
func FuzzAnsweredCommitments(f *testing.F) {
	run := wire.Sum("run")
	author := worldKey(1)
	k := author.Public()
	one := dispute.Commitment{Run: run, Round: 3, Member: 2}.Sign(author).Append(k[:])
	f.Add(wire.AppendVar(wire.AppendVar(nil, one), one))
	f.Add(wire.AppendVar(nil, one)[:50])
	f.Add([]byte{255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, answer []byte) {
		var read readings
		n := &Node{cfg: Config{ID: run, Read: read.read}}
		taken := 0
		gossip.Answered(answer, n.checked, func(a *gossip.Authored) {
			if taken++; a.Signed.Commitment.Run != run || !a.Verified() || !a.Verify() {
				t.Error("a commitment that is not signed, or of another run, is taken")
			}
		})
		if checked := read.verified(); checked > len(answer)/len(one) || taken > checked {
			t.Errorf("%d bytes: %d signatures are checked, %d commitments are taken", len(answer), checked, taken)
		}
		reader, err := gossip.NewReader(run, nil, nil, func(p2p.Handler) (p2p.Network, error) { return told{answer: answer}, nil })
		if err != nil {
			t.Fatal(err)
		}
		list, err := reader.Commitments(t.Context(), k, 3, []coordinator.Member{2})
		for _, a := range list {
			if c := a.Signed.Commitment; err != nil || c.Run != run || c.Round != 3 || c.Member != 2 || !a.Verify() {
				t.Errorf("a reader takes %+v, %v", c, err)
			}
		}
	})
}

// told is a network whose peers give one answer.
type told struct {
	p2p.Network
	answer []byte
}

func (n told) Ask(_ context.Context, _ key.Public, _ []byte, done func([]byte, error)) {
	done(n.answer, nil)
}
