package validator

import (
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
)

// What a validator does not get from its author's bucket it gets as members do (client/copies.go):
// it says what it lacks, and looks for copies in the witnesses' buckets. In eighths of window r+1,
// for the results of r:
const (
	eighths = 8
	tellAt  = 3 // and again when r's set is decided
	findAt  = 5
)

// copiesFrom is the number of buckets in which an attempt looks for a copy.
const copiesFrom = 8

// Lack publishes whose results of a window the validator lacks, as client.Lack does.
type Lack struct {
	Window  coordinator.Round
	Members []byte
}

func (Lack) action() {}

// eighth returns how many eighths of a window have passed since w's results could be shown.
func (m *Machine) eighth(w *window) uint64 {
	return (m.now - w.shownMs) * eighths / max(uint64(m.run.RoundTrainMs), 1)
}

// wanted reports whether a result may count, and is not held.
func (w *window) wanted(r *result) bool { return !r.held && r.committed && (r.accepted || !w.final) }

// tell says which results of a window are lacking: once before witnesses read it, and once when the
// set is decided.
func (m *Machine) tell(w *window) {
	due := 0
	switch {
	case w.final:
		due = 2
	case m.eighth(w) >= tellAt:
		due = 1
	}
	if due <= w.told {
		return
	}
	w.told = due
	var lacking []byte
	for _, r := range w.results {
		if w.wanted(r) {
			lacking = coordinator.SetHeld(lacking, r.member)
		}
	}
	if lacking != nil {
		m.do(Lack{Window: w.number, Members: lacking})
	}
}

// copiers returns in whose buckets this attempt to get a result looks for a copy: those of other
// witnesses each time, beginning with the one that copies it first (client's toCopy).
func (m *Machine) copiers(w *window, r *result) (from []key.Public) {
	if m.eighth(w) < findAt {
		return nil
	}
	for k := range min(copiesFrom, len(w.witnesses)) {
		from = append(from, w.witnesses[(int(r.member)+r.tries*copiesFrom+k)%len(w.witnesses)])
	}
	return from
}
