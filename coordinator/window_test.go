package coordinator

import (
	"github.com/entrain-network/entrain/key"
)

// commitAll puts the commitments of all who have a share, and are not silent, on the ledger.
func (w *world) commitAll() {
	w.t.Helper()
	r, ok := w.s.At(w.s.Round())
	for i := range w.s.Count() {
		if _, done := r.Committed(i); !ok || done || w.silent[i] || w.s.Status(i) != StatusActive || !r.Expected(i) {
			continue
		}
		if err := w.apply(w.s.Key(i), Commit{Signed: w.sign(commitment(r, i))}); err != nil {
			w.t.Fatalf("an honest commitment was refused: %v", err)
		}
	}
}

// window lets everybody who is not silent do what a window asks for, and passes it.
func (w *world) window() {
	w.t.Helper()
	if w.s.Phase() != RoundTrain {
		w.t.Fatalf("no window in %v", w.s.Phase())
	}
	if w.config.Exchange == Buckets {
		w.commitAll()
		w.block += uint64(w.config.WindowBlocks)
		if err := w.apply(key.Public{}, Tick{}); err != nil {
			w.t.Fatal(err)
		}
	}
	number := w.s.Round()
	r, _ := w.s.At(number)
	for _, i := range r.Witnesses() {
		if w.s.Round() == number && w.s.h().InEpoch() && !r.Reported(i) && !w.silent[i] && w.s.Status(i) == StatusActive {
			if err := w.apply(w.s.Key(i), w.report(i, w.heard)); err != nil {
				w.t.Fatalf("an honest report was refused: %v", err)
			}
		}
	}
	if w.s.Round() == number && w.s.h().InEpoch() {
		w.now += w.config.RoundWitnessMs
		if err := w.apply(key.Public{}, Tick{}); err != nil {
			w.t.Fatal(err)
		}
	}
}
