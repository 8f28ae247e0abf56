package comet

import (
	"sync"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/change"
)

// Limits of a line.
const (
	stepsMax     = 64      // steps that are kept
	stepBytesMax = 4 << 20 // and their bytes together
	// A newcomer trusts a newer header than the one that proves a line's state. It believes an older
	// one if it is not much older: see headers.Trust. After this time another one proves the state.
	proofMax = time.Minute
	// A light watcher waits so long for what is not urgent: while a round goes on, and else.
	lightRoundWait = 30 * time.Second
	lightWait      = beatInterval
)

// line is the sequence of a run's states that its light watchers are shown: the newest whenever one
// of them asks and it is due. The frames from one to the next are made once for all.
type line struct {
	mu      sync.Mutex // guards what follows
	now     sight      // what was shown last
	at      mark       // its mark
	shown   time.Time
	picture *change.Picture
	context []byte                       // what the next step is compressed by
	whole   []byte                       // the frame with all of the state, if one was made
	steps   []step                       // to the newest state, oldest first
	bytes   int                          // of the steps
	rounds  map[coordinator.Round][]byte // frames with the reports of rounds that are over
	said    hearsay
}

// step is the frame from one state of a line to the next.
type step struct {
	from mark
	news
}

// headerSource gives encoded headers.
type headerSource interface {
	// block returns the header of a height.
	block(height uint64) ([]byte, error)
	// way returns those that lead from a trusted one to another, which is the last.
	way(from, to uint64) ([][]byte, error)
	// same reports whether the same replicas sign two headers.
	same(a, b uint64) bool
}

// after returns the frame that a watcher is to get next, with no bytes if there is none yet.
// trusted is the newest header that it trusts.
func (l *line) after(have mark, trusted uint64, now sight, clock time.Time, h headerSource) (news, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.picture == nil || l.due(now, clock) {
		if err := l.advance(now, clock, h); err != nil {
			return news{}, err
		}
	}
	if have == l.at {
		return news{to: have}, nil
	}
	for _, s := range l.steps {
		if s.from == have {
			return s.news, nil
		}
	}
	// A header that does not exist yet is a stranger's word: each step is sent to all watchers.
	others := trusted > l.now.header && trusted <= now.header && !h.same(l.now.header, trusted)
	if old := clock.Sub(l.shown) > proofMax; (old || others) && now.header > l.now.header {
		if err := l.advance(now, clock, h); err != nil {
			return news{}, err
		}
	}
	if l.whole == nil {
		block, err := h.block(l.now.header)
		if err != nil {
			return news{}, err
		}
		blank := change.Blank(l.now.view.State.Limits())
		if l.whole, err = encodeChange(l.now, [][]byte{block}, mark{}, nil, blank, l.picture); err != nil {
			return news{}, err
		}
	}
	return news{frame: l.whole, to: l.at, needs: l.now.header}, nil
}

// due reports whether watchers are to be shown a newer state now.
func (l *line) due(now sight, clock time.Time) bool {
	if now.view.Changed <= l.at.height {
		return false
	}
	wait := lightWait
	switch now.view.State.Phase() {
	case coordinator.RoundTrain, coordinator.RoundWitness:
		wait = lightRoundWait
	}
	return change.Urgent(l.now.view.State, now.view.State) || clock.Sub(l.shown) >= wait
}

// advance makes the step to a newer state, or to a newer proof of the same.
func (l *line) advance(now sight, clock time.Time, h headerSource) error {
	block, err := h.block(now.header)
	if err != nil {
		return err
	}
	picture, context := change.Of(now.view.State), contextOf(block, now.proof)
	at := mark{height: now.view.Changed, sum: sumOf(context)}
	if l.picture != nil {
		blocks, err := h.way(l.now.header, now.header)
		if err != nil {
			return err
		}
		frame, err := encodeChange(now, blocks, l.at, l.context, l.picture, picture)
		if err != nil {
			return err
		}
		l.steps = append(l.steps, step{l.at, news{frame: frame, to: at, needs: l.now.header, proves: now.header}})
		for l.bytes += len(frame); len(l.steps) > stepsMax || l.bytes > stepBytesMax; l.steps = l.steps[1:] {
			l.bytes -= len(l.steps[0].frame)
		}
	}
	l.now, l.at, l.shown, l.picture, l.context, l.whole = now, at, clock, picture, context, nil
	return nil
}
