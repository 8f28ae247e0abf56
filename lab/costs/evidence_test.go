package costs

import (
	"bytes"
	"errors"
	"testing"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/lab/check"
	"github.com/entrain-network/entrain/wire"
)

// judge counts what the referee judges, and refuses evidence that begins with bad.
type judge struct {
	check.Program
	judged *int
}

func (j judge) Judge(c dispute.Case, op, tile, slice uint32, root wire.Hash, evidence []byte) (wire.Hash, error) {
	*j.judged++
	if bytes.HasPrefix(evidence, bad) {
		return wire.Hash{}, errors.New("no evidence")
	}
	return j.Program.Judge(c, op, tile, slice, root, evidence)
}

var bad = []byte("bad")

// TestRefusedEvidenceIsJudgedOnceABlock has an accuser send evidence that opens nothing, a hundred
// times a block. It can still open the slice in the next one.
func TestRefusedEvidenceIsJudgedOnceABlock(t *testing.T) {
	w, judged := newWorld(MembersMin), 0
	w.referee, w.plain = judge{judged: &judged}, true
	l, c := w.config()
	w.found(l, c)
	w.draw()
	d, traces := w.accuse()
	w.descend(d, traces)
	judged = 0
	for block := 1; block <= 2; block++ {
		w.h.Begin(host.Block{Height: w.h.Height() + 1, TimeMs: w.h.TimeMs(), Seed: w.seed})
		for i := range 100 {
			m := coordinator.Evidence{Dispute: d.ID, Bytes: append(bytes.Clone(bad), byte(i))}
			if err := w.h.Deliver(w.tx(w.keys[d.Accuser], host.ToRun(runName, m))); err == nil {
				t.Fatal("evidence that opens nothing is accepted")
			}
		}
		w.h.Commit()
		if judged != block {
			t.Fatalf("after %d blocks the referee has judged %d times", block, judged)
		}
	}
	w.block(0, w.tx(w.keys[d.Accuser], host.ToRun(runName, coordinator.Evidence{Dispute: d.ID, Bytes: traces[0].Evidence()})))
	if w.state().Status(d.Accused) != coordinator.StatusEjected {
		t.Error("the accused was not convicted")
	}
}
