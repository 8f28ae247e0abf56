package validator

import (
	"slices"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/score"
	"github.com/entrain-network/entrain/wire"
)

// window is what is known of one round, noted as long as the run's state tells it.
type window struct {
	number    coordinator.Round
	step      coordinator.Step
	trains    bool
	attests   coordinator.Round // the round whose set is due at the start of the next one
	closed    bool              // it is over: attests is settled
	final     bool              // the accepted set is known
	finalMs   uint64            // when this became known
	seed      wire.Hash
	hasSeed   bool // of the slice
	agreed    wire.Hash
	hasAgreed bool
	results   []*result    // of all who had a share, by places, once the seed or the set is known
	shownMs   uint64       // when results was noted
	witnesses []key.Public // of results
	told      int          // how often it was said which results are lacking
	done      bool         // nothing is left to evaluate
}

// result is one member's of a window.
type result struct {
	member     coordinator.Member
	key        key.Public
	committed  bool
	accepted   bool // once the window is final
	commitment wire.Hash
	spans      []batch.Span

	held, fetching bool
	missing        bool // it was not held in time, and scores 0
	tries          int
	triedMs        uint64
	norm           float64
}

// job is the evaluation that is going on.
type job struct {
	window  coordinator.Round // 0: none
	left    []*result
	running bool // Evaluate is under way
	median  float64
}

// windowsKept is the most windows that a validator may be behind. It is more than the state holds,
// because the validator records what it needs.
const windowsKept = 16

// lagMax is the number of final windows that may wait before evaluations are given up in order to
// keep up.
const lagMax = 3

// find returns what is noted of a round.
func (m *Machine) find(number coordinator.Round) *window {
	for _, w := range m.windows {
		if w.number == number {
			return w
		}
	}
	return nil
}

// capture notes what the state tells of its rounds.
func (m *Machine) capture() {
	now := m.state.Round()
	for number := now - min(now, 3); number <= now; number++ {
		r, ok := m.state.At(number)
		if !ok {
			continue
		}
		w := m.find(number)
		if w == nil {
			w = &window{number: number, step: r.Step(), trains: r.Trains()}
			m.windows = append(m.windows, w)
		}
		w.attests = r.Attests()
		w.closed = w.closed || number < now || !inRound(m.state.Phase())
		if seed, ok := r.SliceSeed(); ok {
			w.seed, w.hasSeed = seed, true
		}
		if agreed, ok := r.Agreed(); ok {
			w.agreed, w.hasAgreed = agreed, true
		}
		if (w.hasSeed || r.Final()) && w.trains && w.results == nil {
			m.note(w, r)
		}
		if r.Final() && !w.final {
			w.final, w.finalMs = true, m.now
			for _, x := range w.results {
				x.accepted = x.committed && r.Accepted(x.member)
			}
		}
	}
	slices.SortFunc(m.windows, func(a, b *window) int { return int(a.number) - int(b.number) })
	if n := len(m.windows) - windowsKept; n > 0 {
		m.windows = slices.Delete(m.windows, 0, n)
	}
}

func inRound(p coordinator.Phase) bool {
	return p == coordinator.RoundTrain || p == coordinator.RoundWitness
}

// note keeps who had a share in a round, and what they committed to.
func (m *Machine) note(w *window, r coordinator.RoundState) {
	w.shownMs = m.now
	if next, ok := m.state.At(w.number + 1); ok && next.Attests() == w.number {
		for _, i := range next.Witnesses() {
			w.witnesses = append(w.witnesses, m.state.Key(i))
		}
	}
	r.Shares(func(i coordinator.Member, spans []batch.Span) {
		id, committed := r.Committed(i)
		w.results = append(w.results, &result{member: i, key: m.state.Key(i), committed: committed, commitment: id, spans: slices.Clone(spans)})
	})
	slices.SortFunc(w.results, func(a, b *result) int { return int(a.member) - int(b.member) })
}

// accepted are the results that count, in canonical order.
func (w *window) accepted() []*result {
	var list []*result
	for _, r := range w.results {
		if r.accepted {
			list = append(list, r)
		}
	}
	return list
}

// fetch asks for what may count and is not held, from the moment at which its author may have shown
// it: who shows a reveal to the witnesses alone, and takes it away when it is accepted, was seen.
func (m *Machine) fetch() {
	for _, w := range m.windows {
		if !w.hasSeed || m.model.known && w.number+1 < m.model.round {
			continue
		}
		for _, r := range w.results {
			if r.fetching || !w.wanted(r) {
				continue
			}
			if m.due(&r.triedMs, m.patience()<<min(max(r.tries-1, 0), 3)) {
				r.fetching = true
				m.do(Fetch{Window: w.number, Member: r.member, Key: r.key, Commitment: r.commitment, Seed: w.seed, From: m.copiers(w, r)})
				r.tries++
			}
		}
		m.tell(w)
	}
}

// patience is the time between the first two attempts to get a result; it doubles three times. A
// result must be looked for several times in a window, however short that is.
func (m *Machine) patience() uint64 { return min(refetchMs, uint64(m.run.RoundTrainMs)/triesInWindow) }

// triesInWindow is a window's length over the shortest patience.
const triesInWindow = 16

// gathered reports whether nothing more is waited for of a final window's accepted results: what is
// not held by the end of the next window is missing.
func (m *Machine) gathered(w *window) bool {
	over := m.now >= w.finalMs+m.run.RoundTrainMs
	all := true
	for _, r := range w.accepted() {
		r.missing = r.missing || over && !r.held
		all = all && (r.held || r.missing)
	}
	return all
}

func (m *Machine) fetched(ev Fetched) {
	w := m.find(ev.Window)
	if w == nil {
		return
	}
	for _, r := range w.results {
		if r.member == ev.Member && r.fetching {
			r.fetching, r.held, r.norm = false, ev.OK, ev.Norm
		}
	}
}

// decideWindow evaluates the window of the held model, and reports whether nothing is left to
// evaluate in it from now on.
func (m *Machine) decideWindow() bool {
	if !m.model.ready() || m.job.running {
		return false
	}
	w := m.find(m.model.round)
	if w == nil || w.done || !w.final {
		return false
	}
	if !w.trains || !w.hasAgreed || !w.hasSeed || m.behind(w.number) >= lagMax {
		if m.behind(w.number) >= lagMax {
			m.do(Note{"too far behind to evaluate more of a window"})
		}
		m.finish(w)
		return true
	}
	if w.agreed != m.model.hash || !m.gathered(w) {
		return false // the model is healed, or results are being fetched
	}
	if m.job.window != w.number {
		m.begin(w)
	}
	if len(m.job.left) == 0 {
		m.finish(w)
		return true
	}
	m.job.running = true
	m.do(m.evaluate(w, m.job.left[0]))
	return false
}

// behind returns the number of windows after this one that are already final.
func (m *Machine) behind(number coordinator.Round) (n int) {
	for _, w := range m.windows {
		if w.number > number && w.final && w.trains {
			n++
		}
	}
	return n
}

// begin draws a window's sample.
func (m *Machine) begin(w *window) {
	var norms []float64
	var held []*result
	for _, r := range w.accepted() {
		if !r.missing {
			held, norms = append(held, r), append(norms, r.norm)
		}
	}
	m.job = job{window: w.number, left: m.draw(w, held), median: score.Median(norms)}
}

// finish ends a window. Members that delivered nothing, to the witnesses or to this validator, are
// noted. Where this validator got nothing of anybody the fault is its own.
func (m *Machine) finish(w *window) {
	w.done = true
	if m.job.window == w.number {
		m.job = job{}
	}
	cutOff := !slices.ContainsFunc(w.results, func(r *result) bool { return r.accepted && r.held })
	for _, r := range w.results {
		if !r.accepted || r.missing && !cutOff {
			m.enter(w.number, r, 0, score.Absent, score.Evidence{})
		}
	}
	if w.trains {
		m.unsaved = true
		// drops members that the run has forgotten
		m.book.Keep(func(k key.Public) bool { _, ok := m.state.Find(k); return ok })
	}
}

// enter puts an evaluation into the book.
func (m *Machine) enter(number coordinator.Round, r *result, s float64, v score.Verdict, e score.Evidence) {
	m.book.Note(r.key, uint32(number), s, v, m.cfg.Rules.Alpha)
	a, _ := m.book.Find(r.key)
	m.unsaved = true
	m.do(Scored{Window: number, Member: r.member, Key: r.key, Score: s, Verdict: v, Evidence: e, Average: score.Float(a.Value())})
}

// sinceMax bounds how much more likely somebody is drawn who was not evaluated for long.
const sinceMax = 64

// draw draws the members that are evaluated, without replacement, each with a weight of how many
// windows have passed since it was last. The draw follows from the validator's secret, so that who
// may have cheated does not know whether to withhold its reveal.
func (m *Machine) draw(w *window, from []*result) []*result {
	left := slices.Clone(from)
	random := prng.New(wire.Sum("entrain/sample", m.cfg.Secret[:], w.seed[:]), "sample")
	var drawn []*result
	for n := m.sample(len(from)); n > 0 && len(left) > 0; n-- {
		total := uint64(0)
		for _, r := range left {
			total += m.since(r.key, w.number)
		}
		at := random.Uint64n(total)
		for i, r := range left {
			weight := m.since(r.key, w.number)
			if at < weight {
				drawn, left = append(drawn, r), slices.Delete(left, i, i+1)
				break
			}
			at -= weight
		}
	}
	return drawn
}

func (m *Machine) since(member key.Public, number coordinator.Round) uint64 {
	a, ok := m.book.Find(member)
	if !ok {
		return sinceMax
	}
	return uint64(min(max(number-min(number, coordinator.Round(a.Last)), 1), sinceMax))
}

// sample returns how many of a number of results are evaluated.
func (m *Machine) sample(results int) int {
	if m.cfg.Sample > 0 {
		return min(int(m.cfg.Sample), results)
	}
	windows := max(1, int(m.run.ScoreWindows))
	return min((2*results+windows-1)/windows, results)
}

// randomSpan is among how many sequences those are drawn that nobody was given: more than any run
// reads.
const randomSpan = 1 << 40

// evaluate makes the action for one result.
func (m *Machine) evaluate(w *window, r *result) Evaluate {
	e := Evaluate{Window: w.number, Step: w.step, Member: r.member, Params: m.model.hash, Spans: r.spans, Median: m.job.median}
	n := min(m.cfg.Losses, batch.Total(r.spans))
	if n == 0 {
		return e
	}
	random := prng.New(wire.Sum("entrain/losses", m.cfg.Secret[:], w.seed[:], wire.AppendU32(nil, uint32(r.member))), "losses")
	e.Assigned = batch.Cut(r.spans, uint32(random.Uint64n(uint64(batch.Total(r.spans)-n)+1)), n)
	e.Random = []batch.Span{{Start: random.Uint64n(randomSpan), Count: n}}
	return e
}

func (m *Machine) evaluated(ev Evaluated) {
	if !m.job.running || m.job.window != ev.Window || len(m.job.left) == 0 || m.job.left[0].member != ev.Member {
		return
	}
	m.job.running = false
	r := m.job.left[0]
	m.job.left = m.job.left[1:]
	if !ev.OK {
		return
	}
	ev.Evidence.Median = m.job.median
	s, v := m.cfg.Rules.Score(ev.Evidence)
	m.enter(ev.Window, r, s, v, ev.Evidence)
}
