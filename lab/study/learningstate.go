package study

import (
	"errors"
	"fmt"
	"time"

	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/view"
)

// training is how far a run is.
type training struct {
	rounds int       // done
	losses []float64 // measured so far
	checkpoint.State
	// states are the members' optimizer states, parts of Optimizer. The moments of one optimizer for
	// all follow them, and then the losses.
	states [][]float32
}

// begin returns the run's state: what its file keeps, or the beginning.
func (w *way) begin() (*training, error) {
	each := w.engine.StateLen()
	length := w.row.Members*each + learningPoints + 1
	if w.whole != nil {
		length += 2 * len(w.start)
	}
	t := &training{State: checkpoint.State{Run: w.id(w.row), Params: w.fresh(), Optimizer: make([]float32, length)}}
	kept, err := w.kept.part(t.Run, len(w.start), length)
	var damaged *checkpoint.CorruptError
	switch {
	case errors.As(err, &damaged):
		w.o.Progress(fmt.Sprintf("%s: begins again: %v", w.name(), err))
	case err != nil:
		return nil, err
	case kept != nil:
		t.State, t.rounds = *kept, int(kept.Step)
	}
	rest := t.Optimizer
	for range w.row.Members {
		t.states, rest = append(t.states, rest[:each:each]), rest[each:]
	}
	if w.whole != nil {
		n := len(w.start)
		w.whole.Restore(rest[:n], rest[n:2*n], t.Step)
		rest = rest[2*n:]
	}
	for _, loss := range rest[:t.Round] {
		t.losses = append(t.losses, float64(loss))
	}
	return t, nil
}

// save keeps how far the run is, if results are kept.
func (w *way) save(t *training) error {
	rest := t.Optimizer[w.row.Members*w.engine.StateLen():]
	if w.whole != nil {
		m, v, _ := w.whole.Moments()
		rest = rest[copy(rest, m):]
		rest = rest[copy(rest, v):]
	}
	for i, loss := range t.losses {
		rest[i] = float32(loss) // as which it was measured
	}
	t.Step, t.Round = uint32(t.rounds), uint32(len(t.losses))
	return w.kept.putPart(t.State)
}

// saveEvery is the time between two states of a run that are kept, in addition to those after each
// eighth.
const saveEvery = 5 * time.Minute

// stopwatch times a run from where this process began.
type stopwatch struct {
	start, last time.Time
	from        int // rounds that were done before
}

func newStopwatch(rounds int) *stopwatch {
	now := time.Now()
	return &stopwatch{now, now, rounds}
}

// due reports whether so much time has passed since it last did.
func (s *stopwatch) due(every time.Duration) bool {
	if time.Since(s.last) < every {
		return false
	}
	s.last = time.Now()
	return true
}

// progress says how far a run is, at which speed and how long it still takes. Measurements of the
// loss count as training.
func (s *stopwatch) progress(t *training, rounds, tokens int) string {
	line := fmt.Sprintf("%.1f %%, loss %.4f", 100*float64(t.rounds)/float64(rounds), t.losses[len(t.losses)-1])
	if done := t.rounds - s.from; done > 0 {
		each := time.Since(s.start) / time.Duration(done)
		line += fmt.Sprintf(", %s tokens/s, %v left", view.Thousands(uint64(float64(tokens)/each.Seconds())), (time.Duration(rounds-t.rounds) * each).Round(time.Minute))
	}
	return line
}
