package view

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/runlog"
	"github.com/entrain-network/entrain/wire"
)

// standing takes a look at the coordinator. One that is older than the newest is left out:
// participants hear at different times.
func (f *Fold) standing(ms uint64, s *runlog.Standing) {
	if f.seen && s.ID == f.run.ID && s.Height < f.run.Height {
		return
	}
	if f.seen && s.ID != f.run.ID {
		names, called, keys, kept := f.names, f.called, f.keys, f.kept
		*f = *New(f.own) // another run: nothing of the old one is true
		f.names, f.called, f.keys, f.kept = names, called, keys, kept
		f.run.SeenMs = ms
	}
	if f.own == "" {
		f.own = s.Own
	}
	f.tellPhase(ms, s)
	f.head(s)
	clear(f.passed)
	for _, m := range s.Members {
		f.member(ms, m)
	}
	for _, r := range s.Rounds {
		f.round(&r)
	}
	f.trust(ms, s.Trust)
	f.windows(ms, s.Windows)
	f.worked()
	f.close()
	f.measure(s.TimeMs)
	f.seen = true
}

func (f *Fold) head(s *runlog.Standing) {
	chain := cmp.Or(s.Chain, f.run.Chain)
	f.run.Height, f.run.StateMs, f.run.Head = s.Height, s.TimeMs, s.Head
	f.run.Chain = chain
}

// worked counts the trained tokens. Points for verifying do not count.
func (f *Fold) worked() {
	f.run.Tokens = f.trained() * uint64(f.run.SeqTokens)
}

// trained returns the points given for training.
func (f *Fold) trained() uint64 {
	points := f.run.Points
	if t := f.run.Trust; t != nil {
		points -= min(points, t.Verified)
	}
	return points
}

// tellPhase writes what changed of the run as a whole to the log. Rounds come and go without a
// line.
func (f *Fold) tellPhase(ms uint64, s *runlog.Standing) {
	before := &f.run
	if s.Phase != before.Phase && !(inRounds(s.Phase) && inRounds(before.Phase)) {
		f.say(ms, "info", "", fmt.Sprintf("%s: epoch %d, step %d of %d, %d members", s.Phase, s.Epoch, s.Step, s.Steps, s.Present))
	}
	if !f.seen {
		return
	}
	if s.Rollbacks > before.Rollbacks {
		f.say(ms, "warn", "", fmt.Sprintf("no agreement on the parameters: back to those of round %d", s.ParamsRound))
	}
	if s.Pausing && !before.Pausing {
		f.say(ms, "info", "", "the owner pauses the run when the epoch has drained")
	}
	if s.Saved.Manifest != before.Saved.Manifest {
		f.say(ms, "info", "", fmt.Sprintf("checkpoint of epoch %d reported by %s", s.Saved.Epoch, Short(s.Saved.By)))
	}
}

// member takes a member's row.
func (f *Fold) member(ms uint64, m runlog.Member) {
	for coordinator.Member(len(f.members)) <= m.Index {
		f.members = append(f.members, Member{Index: coordinator.Member(len(f.members)), Mark: None})
	}
	row := &f.members[m.Index]
	var digits [2 * len(key.Public{})]byte
	if k := wire.AppendHex(digits[:0], m.Key[:]); row.Key != string(k) {
		if row.Key != "" {
			f.replaced(m.Index, row.Key)
		}
		*row = Member{Index: m.Index, Key: string(k), Mark: None} // the place was given to another
	}
	if status := m.Status.String(); f.seen && row.Status != status {
		level := "info"
		switch m.Status {
		case coordinator.StatusDropped, coordinator.StatusEjected:
			level = "warn"
		case coordinator.StatusReady, coordinator.StatusActive:
			level = ""
		case coordinator.StatusWaiting:
			if row.Status == "ready" || row.Status == "active" {
				level = ""
			}
		}
		if level != "" {
			f.say(ms, level, "", fmt.Sprintf("member %d (%s) %s", m.Index, Short(row.Key), becomes(status)))
		}
	}
	if was := row.Present(); f.seen && row.Status != m.Status.String() && (!was || !m.Status.Present()) {
		what := m.Status.String()
		if m.Status.Present() {
			what = "joined"
		}
		f.turned(row.Key, what)
	}
	if m.Passed > row.Passed {
		f.passed[m.Index] = true
	}
	row.set(m.MemberState)
	row.Own = f.own != "" && row.Key == f.own
	if row.Own {
		o := f.self()
		o.Index, o.Status, o.Points = int(m.Index), row.Status, m.Points
	}
}

// set takes what the state has of a member.
func (row *Member) set(m coordinator.MemberState) {
	row.Status, row.Points, row.Results, row.Missed, row.Idle = m.Status.String(), m.Points, m.Results, m.Missed, m.Idle
	row.Speed, row.JoinedMs, row.LeftMs = m.Speed, m.JoinedMs, m.LeftMs
	row.Stake, row.Balance, row.Settled, row.Claimed = m.Stake, m.Balance, m.Settled, m.Claimed
	row.Doubt, row.Strikes, row.Passed = m.Doubt, m.Strikes, m.Passed
	row.Scored, row.Score, row.Unvested, row.Earned = m.Scored, scoreOf(m.Score), m.Unvested, m.Earned
	row.Payee, row.ReleaseMs = hashText(m.Payee), m.ReleaseMs
}

// becomes returns words for a new status.
func becomes(status string) string {
	switch status {
	case "waiting":
		return "joined"
	case "withdrawn":
		return "has left"
	case "dropped":
		return "was dropped: it missed too often"
	case "ejected":
		return "was ejected"
	case "replaced":
		return "gave its slot to another"
	}
	return "is " + status
}

// round takes what the state says of a round.
func (f *Fold) round(s *runlog.Round) {
	r := f.find(s.Number)
	if r == nil {
		r = f.newRound(s.Number)
		if i := slices.IndexFunc(f.pending, func(p *round) bool { return p.Number == s.Number }); i >= 0 {
			r = f.pending[i]
		}
		f.pending = slices.DeleteFunc(f.pending, func(p *round) bool { return p.Number <= s.Number })
		i, _ := slices.BinarySearchFunc(f.rounds, s.Number, func(p *round, number coordinator.Round) int { return cmp.Compare(p.Number, number) })
		f.rounds = slices.Insert(f.rounds, i, r)
	}
	r.Number, r.Epoch, r.Step, r.OpenedMs, r.Batch, r.Seed = s.Number, s.Epoch, s.Step, s.OpenedMs, s.Batch, s.Seed
	r.Final, r.Agreed, r.Accepted, r.Quorum, r.Attests = s.Final, s.Agreed, s.AcceptedCount, s.Quorum, s.Attests
	f.witnesses(r, s.Witnesses)
	r.Active, r.Expected = s.Active.Count(), s.Expected.Count()
	if d := r.detail; d != nil {
		d.active, d.expected, d.accepted, d.shares = s.Active, s.Expected, s.Accepted, s.Sequences
	}
	for i := range coordinator.Member(len(f.members)) {
		if !s.Expected.Has(i) {
			continue
		}
		m := r.mark(i)
		switch {
		case *m == Verified || *m == Wrong: // and stays so
		case s.Accepted.Has(i):
			*m = Accepted
		case s.Final:
			*m = Missed
		case *m == None:
			*m = Expected
		}
	}
}

// newRound returns a round of which nothing but its number is known.
func (f *Fold) newRound(number coordinator.Round) *round {
	r := &round{Round: Round{Number: number}}
	if f.kept == HistoryKept {
		r.detail = &detail{}
	}
	return r
}

// witnesses takes the seats of a round.
func (f *Fold) witnesses(r *round, seats []runlog.Witness) {
	if len(r.Witnesses) != len(seats) {
		r.Witnesses = make([]Witness, len(seats))
	}
	r.Seats, r.Reports = uint32(len(seats)), 0
	for i, w := range seats {
		to := &r.Witnesses[i]
		if w.Reported {
			r.Reports++
			if !to.Reported {
				to.Ms = f.run.StateMs
			}
		}
		to.Member, to.Key, to.Reported, to.Complete = w.Member, f.keyIn(r, w.Member), w.Reported, w.Complete
	}
}

// mark returns the mark of member i, and makes room for what else is known of it.
func (r *round) mark(i coordinator.Member) *Mark {
	for coordinator.Member(len(r.marks)) <= i {
		r.marks = append(r.marks, None)
		r.heard = append(r.heard, false)
	}
	return &r.marks[i]
}

// find returns a round that has opened, nil if it is not kept.
func (f *Fold) find(number coordinator.Round) *round {
	if i, ok := f.search(number); ok {
		return f.rounds[i]
	}
	return nil
}

// lateMs is how long after a round's end commitments to it may still be heard of.
const lateMs = 5000

// close tells rounds that are over when they ended, puts what is settled of them into curves, and
// forgets the oldest.
func (f *Fold) close() {
	for i := max(0, len(f.rounds)-roundsKept-1); i < len(f.rounds); i++ {
		r := f.rounds[i]
		last, gap := i+1 == len(f.rounds), i+1 < len(f.rounds) && f.rounds[i+1].Number != r.Number+1
		if last && r.Number == f.run.Round && f.run.Phase == coordinator.RoundWitness.String() {
			r.WitnessMs = f.run.SinceMs
		}
		switch {
		case r.ClosedMs != 0:
		case !last && f.rounds[i+1].Epoch == r.Epoch:
			r.ClosedMs = f.rounds[i+1].OpenedMs
		case !last || !inRounds(f.run.Phase):
			r.ClosedMs = f.run.SinceMs
		}
		if r.ClosedMs == 0 || r.Step == 0 {
			continue
		}
		if r.Final && !r.timed && !gap && r.ClosedMs >= r.OpenedMs {
			r.timed = true
			f.seconds.add(r.Step, f.run.Tokens, float64(r.ClosedMs-r.OpenedMs)/1000)
			f.size.add(r.Step, f.run.Tokens, float64(r.Active))
		}
		settled := r.Committed >= r.Expected || f.run.StateMs > r.ClosedMs+lateMs || i < len(f.rounds)-roundsKept
		if settled && !r.inLine {
			r.inLine = true
			if len(r.losses) > 0 {
				low, mid, high := runlog.Quartiles(r.losses)
				f.loss.spread(r.Step, f.run.Tokens, low, mid, high)
				r.Loss, r.losses = mid, nil
			}
			if r.Bytes > 0 {
				f.payloads.add(r.Step, f.run.Tokens, float64(r.Bytes))
			}
		}
	}
	if n := len(f.rounds) - f.kept; n > 0 {
		f.rounds = slices.Delete(f.rounds, 0, n)
	}
	for i := len(f.rounds) - DetailsKept - 1; i >= 0 && f.rounds[i].detail != nil; i-- {
		r := f.rounds[i]
		r.detail, r.marks, r.heard, r.Witnesses = nil, nil, nil, nil
	}
}

// measure follows the pace at which results are accepted. The wait for the first round does not
// count, nor does a long one after it.
func (f *Fold) measure(ms uint64) {
	now := sample{ms: ms, points: f.trained(), step: f.run.Step}
	waited := f.waits
	f.waits = !inRounds(f.run.Phase)
	n := len(f.progress)
	if n > 0 && f.progress[n-1].points == now.points {
		if waited && (n == 1 || ms > f.progress[n-1].ms+paceOver) {
			now.step = f.progress[n-1].step // of the last round that ended
			f.progress = append(f.progress[:0], now)
		}
		return
	}
	if n > 0 && f.progress[n-1].ms < ms {
		last := f.progress[n-1]
		f.speed.add(f.run.Step, f.run.Tokens, float64(now.points-last.points)*float64(f.run.SeqTokens)*1000/float64(ms-last.ms))
	}
	f.progress = append(f.progress, now)
	for len(f.progress) > 3 && f.progress[1].ms+paceOver < ms {
		f.progress = slices.Delete(f.progress, 0, 1)
	}
	if len(f.progress) > samplesMax {
		f.progress = slices.Delete(f.progress, 0, 1)
	}
}

// samplesMax bounds the samples of the pace: several a second for a minute.
const samplesMax = 512
