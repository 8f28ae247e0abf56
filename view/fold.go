package view

import (
	"slices"
	"strings"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/runlog"
)

// Fold makes a [Run] out of records. The zero Fold is not valid; [New] makes one.
type Fold struct {
	own     string // key, hex
	names   func(sequences, op uint32) string
	called  map[string]string // names of members by key, hex
	keys    map[string]string // the other way round
	chosen  Names
	run     Run // what needs no list: the head, Own, Network
	members []Member
	rounds  []*round // by number, at most kept
	kept    int      // rounds
	turns   []Turn   // oldest first
	pending []*round // heard of before the state told that they have opened

	loss, heldOut, speed, gradNorm, lr, payloads, seconds, size curve

	tasks   []*task
	samples []Sample

	progress []sample            // of the last while, oldest first
	waits    bool                // no round is open
	fetched  [paceSeconds]second // what came in the last minute, by second modulo that
	recent   []Transfer          // the last ones, newest last
	lines    []Line
	tellers  map[string]*Teller
	passed   map[coordinator.Member]bool // members one of whose checks passed in the newest standing
	seen     bool                        // a standing came
}

// round is a round with what its summary does not keep.
type round struct {
	Round
	marks  []Mark
	heard  []bool    // whose commitments were counted
	losses []float32 // that they state, until they are in the curve
	inLine bool      // its losses and bytes are in the curves
	timed  bool      // it is in the curves of seconds and sizes
	detail *detail   // nil of old rounds
}

// second is the bytes that came in one second, counted from 1970.
type second struct{ at, bytes uint64 }

// sample is the progress of a run at a time of the ledger.
type sample struct {
	ms     uint64
	points uint64
	step   coordinator.Step
}

// New returns a Fold. Own is the key, in hex, of the participant whose events have no Who; "" takes
// what the log says of whose it is.
func New(own string) *Fold {
	return &Fold{
		own: own, kept: roundsKept, tellers: map[string]*Teller{}, passed: map[coordinator.Member]bool{}, called: map[string]string{}, keys: map[string]string{},
	}
}

// NameOps sets the function that names the operations of disputes: operation op in a step with a
// number of sequences. See verify.OpNames.
func (f *Fold) NameOps(name func(sequences, op uint32) string) { f.names = name }

// Name names the member with a key, in hex. Windows then show the name instead of the key, and a
// record's Who may be the name.
func (f *Fold) Name(key, name string) { f.called[key], f.keys[name] = name, key }

// Add takes the next record. Records of different participants may come in about the order of their
// times.
func (f *Fold) Add(r runlog.Record) {
	ms := uint64(max(0, r.Time.UnixMilli()))
	f.run.SeenMs = max(f.run.SeenMs, ms)
	if r.Standing != nil {
		f.standing(ms, r.Standing)
	}
	if r.Heard != nil {
		f.heardOf(ms, r.Heard)
	}
	if r.Event != nil {
		f.event(ms, r.Who, r.Event)
	}
}

// Run returns the run as of now.
func (f *Fold) Run(now time.Time) Run {
	r := f.run
	r.NowMs = uint64(max(0, now.UnixMilli()))
	if r.DeadlineMs > r.NowMs {
		r.CountdownMs = r.DeadlineMs - r.NowMs
	}
	r.TokensPerSecond, r.LeftMs = f.pace(r.NowMs)
	r.Loss, r.HeldOut, r.Speed, r.GradNorm, r.LR = f.losses(), f.heldOut.copy(), f.speed.copy(), f.gradNorm.copy(), f.lr.copy()
	r.Payloads, r.Seconds, r.Size = f.payloads.copy(), f.seconds.copy(), f.size.copy()
	r.Tasks, r.Samples = f.taskCurves(), slices.Clone(f.samples)
	if f.run.Own != nil {
		own := *f.run.Own
		r.Own = &own
	}
	r.Trust, r.Windows = f.run.Trust.copy(), f.run.Windows.copy()
	r.Network.BytesPerSecond = f.bandwidth(r.NowMs)
	r.Network.Transfers = slices.Clone(f.recent)
	slices.Reverse(r.Network.Transfers)
	r.Members = f.table()
	r.Rounds = make([]Round, min(len(f.rounds), roundsKept))
	for i := range r.Rounds {
		r.Rounds[len(r.Rounds)-1-i] = f.Round(i)
	}
	r.Log = slices.Clone(f.lines)
	return r
}

// losses returns the curve of the losses that members state, with those of rounds that more may yet
// be heard of.
func (f *Fold) losses() Curve {
	c := curve{buckets: f.loss.copy(), width: f.loss.width}
	for _, r := range f.rounds[max(0, len(f.rounds)-roundsKept):] {
		if !r.inLine && r.Step > 0 && len(r.losses) > 0 {
			low, mid, high := runlog.Quartiles(slices.Clone(r.losses))
			c.spread(r.Step, f.run.Tokens, low, mid, high)
		}
	}
	return c.buckets
}

// table returns the members with their roles in the running round.
func (f *Fold) table() []Member {
	list := slices.Clone(f.members)
	for i := range list {
		list[i].Name = f.called[list[i].Key]
	}
	f.chosen.Call(list)
	var now *round
	if n := len(f.rounds); n > 0 && inRounds(f.run.Phase) {
		now = f.rounds[n-1]
	}
	elected := map[coordinator.Member]bool{}
	if now != nil {
		for _, w := range now.Witnesses {
			elected[w.Member] = true
		}
	}
	for i := range list {
		m := &list[i]
		m.Mark = None
		if f.run.Points > 0 {
			m.Share = float64(m.Points) / float64(f.run.Points)
		}
		if now == nil {
			continue
		}
		if i < len(now.marks) {
			m.Mark = now.marks[i]
		}
		var roles []string
		if m.Mark != None {
			roles = append(roles, "trainer")
		}
		if elected[m.Index] {
			roles = append(roles, "witness")
		}
		m.Role = strings.Join(roles, ", ")
	}
	return list
}

// summary returns the round as a window gets it. Only the newest has the marks of many members.
func (r *round) summary(newest bool) Round {
	s := r.Round
	s.Witnesses = slices.Clone(r.Witnesses)
	if !r.inLine {
		_, s.Loss, _ = runlog.Quartiles(slices.Clone(r.losses))
	}
	if newest || len(r.marks) <= marksMax {
		b := make([]byte, len(r.marks))
		for i, m := range r.marks {
			b[i] = byte(m)
		}
		s.Marks = string(b)
	}
	return s
}

// inRounds reports whether a round runs in a phase.
func inRounds(phase string) bool { return phase == "RoundTrain" || phase == "RoundWitness" }

// paceSeconds is the time over which the pace of the run and of transfers is measured, if enough
// happened in it; paceOver is the same in milliseconds.
const (
	paceSeconds = 60
	paceOver    = 1000 * paceSeconds
)

// pace returns the accepted tokens a second, and the time until the last step.
func (f *Fold) pace(nowMs uint64) (tokensPerSecond float64, leftMs uint64) {
	n := len(f.progress)
	if n < 2 {
		return 0, 0
	}
	first, last := f.progress[0], f.progress[n-1]
	took := last.ms - first.ms
	if took == 0 {
		return 0, 0
	}
	// Nothing for longer than all of that: it stands still.
	if f.run.Phase != "Finished" && nowMs < last.ms+max(paceOver, 3*took) && inRounds(f.run.Phase) {
		tokensPerSecond = float64(last.points-first.points) * float64(f.run.SeqTokens) * 1000 / float64(took)
	}
	if steps := last.step - first.step; steps > 0 && f.run.Step < f.run.Steps {
		leftMs = took / uint64(steps) * uint64(f.run.Steps-f.run.Step)
	}
	return tokensPerSecond, leftMs
}

// bandwidth returns the bytes a second fetched over the last minute.
func (f *Fold) bandwidth(nowMs uint64) float64 {
	var sum uint64
	for _, s := range f.fetched {
		if s.at+paceSeconds > nowMs/1000 {
			sum += s.bytes
		}
	}
	return float64(sum) / paceSeconds
}

// say adds a line to the log.
func (f *Fold) say(ms uint64, level, who, text string) {
	f.lines = append(f.lines, Line{TimeMs: ms, Level: level, Who: who, Text: text})
	f.run.Logged++
	if len(f.lines) > LinesKept {
		f.lines = slices.Delete(f.lines, 0, len(f.lines)-LinesKept)
	}
}
