package node

import (
	"testing"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/wire"
)

// Whatever a peer asks is answered from what is held, in bounds, or not at all.
func FuzzAnswer(f *testing.F) {
	s := &commitments{byRound: map[coordinator.Round][]authored{}}
	author := worldKey(1)
	signed := coordinator.Commitment{Run: wire.Sum("run"), Round: 3, Member: 2}.Sign(author)
	s.put(author.Public(), signed)
	f.Add(appendQuestion(nil, 3, []coordinator.Member{0, 2}))
	f.Add(append([]byte{questionSpans}, make([]byte, 32)...))
	f.Add([]byte{questionCommitments, 3, 0, 0, 0, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, request []byte) {
		answer := (&handler{commitments: s}).Answer(author.Public(), request)
		if len(answer) > p2p.MaxAnswer {
			t.Fatalf("an answer of %d bytes", len(answer))
		}
		for r := wire.NewReader(answer); r.Len() > 0; {
			b := r.Var(p2p.MaxGossip)
			if from, got, ok := parseAuthored(signed.Commitment.Run, b, coordinator.Signed.Verify); !ok || from != author.Public() || got != signed {
				t.Fatalf("%x is answered by %x, which is not held", request, b)
			}
		}
	})
}
