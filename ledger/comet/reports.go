package comet

import (
	"bytes"
	"slices"
	"sync"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/change"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/wire"
)

// hearsay is what the reports of a run's last rounds say is held. The state does not have it.
// A member that uses it checks what follows from it, so it need not be proven, or complete.
type hearsay struct {
	mu   sync.Mutex // guards list
	list []said
}

// said is what one report says.
type said struct {
	round  coordinator.Round
	filter wire.Hash // of its filter, by which it is found
	held   []byte
}

const hearsayRounds = 4 // that a state has

// heard takes a transaction that has been carried out.
func (h *hub) heard(body host.Body) {
	to, ok := body.(host.RunMessage)
	if !ok {
		return
	}
	m, err := coordinator.ParseMessage(to.Message)
	report, ok := m.(coordinator.Witness)
	if err != nil || !ok {
		return
	}
	h.mu.Lock()
	f := h.feeds[to.Run]
	h.mu.Unlock()
	if f != nil {
		f.line.said.add(report)
	}
}

func filterHash(filter []byte) wire.Hash { return wire.Sum("entrain/ledger/comet/filter", filter) }

func (h *hearsay) add(report coordinator.Witness) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = slices.DeleteFunc(h.list, func(s said) bool { return s.round+hearsayRounds <= report.Round })
	h.list = append(h.list, said{report.Round, filterHash(report.Commitments), bytes.Clone(report.Held)})
}

// of returns what the report of a round with a filter says is held, nil if it was not heard.
func (h *hearsay) of(round coordinator.Round, filter []byte) []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	hash := filterHash(filter)
	for _, s := range h.list {
		if s.round == round && s.filter == hash {
			return s.held
		}
	}
	return nil
}

// reports returns the frame with the reports of the next round that is over in the state that was
// shown last and newer than seen, which it moves on; nil if there is none. Each is made once.
func (l *line) reports(seen *coordinator.Round) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.picture == nil {
		return nil, nil // of a run that was created again
	}
	s := l.now.view.State
	for number := max(*seen, s.Round()-min(s.Round(), hearsayRounds)) + 1; number < s.Round(); number++ {
		*seen = number
		if frame, made := l.rounds[number]; made {
			return frame, nil
		}
		r, ok := change.ReportsOf(s, number, func(filter []byte) []byte { return l.said.of(number, filter) })
		if !ok {
			continue
		}
		frame, err := deflated(wire.AppendU8(wire.AppendU32(nil, 0), frameReports), r.Append(nil), nil)
		if err != nil {
			return nil, err
		}
		if l.rounds == nil {
			l.rounds = map[coordinator.Round][]byte{}
		}
		delete(l.rounds, number-min(number, hearsayRounds))
		l.rounds[number] = frame
		return frame, nil
	}
	return nil, nil
}

// hear returns the state with what a frame says of a round's reports.
func (p lightState) hear(r *wire.Reader) (lightState, *ledger.Snapshot, error) {
	if p.picture == nil {
		return p, nil, errOutOfStep
	}
	content, err := inflate(r.Rest(), nil, p.picture.ReportsBytesMax())
	if err != nil {
		return p, nil, err
	}
	c := wire.NewReader(content)
	reports := p.picture.ReadReports(&c)
	if err := c.Done().OrNil(); err != nil {
		return p, nil, err
	}
	if !p.picture.Proves(reports) {
		return p, nil, errOutOfStep
	}
	list := []change.Reports{reports}
	for _, other := range p.shown.Reports {
		if other.Round%hearsayRounds != reports.Round%hearsayRounds {
			list = append(list, other)
		}
	}
	p.shown.Reports = list
	s := p.shown
	return p, &s, nil
}
