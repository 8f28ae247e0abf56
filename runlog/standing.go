package runlog

import (
	"reflect"
	"slices"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/ledger"
)

// Digest returns what windows show of a coordinator's state. It costs O(members).
func Digest(snapshot ledger.Snapshot) *Standing { return digestAfter(snapshot, nil) }

// digestAfter is Digest, but takes the sizes of shares from an earlier standing if there is one.
func digestAfter(snapshot ledger.Snapshot, earlier *Standing) *Standing {
	s := snapshot.State
	config := s.Config()
	params, at := s.Params()
	d := &Standing{Height: snapshot.Height, TimeMs: snapshot.TimeMs, Head: Head{
		Name: config.Name, ID: s.ID().String(), Steps: config.TotalSteps, Capacity: s.Limits().Members,
		SeqTokens: config.SequenceTokens, Overlap: config.Overlap, MissedMax: config.MissedMax,
		Phase: s.Phase().String(), SinceMs: s.PhaseSince(), DeadlineMs: s.Deadline(),
		Epoch: s.Epoch(), Round: s.Round(), Step: s.Step(), Present: s.Present(), Draining: s.Draining(),
		Pausing: s.PausePending(), Rollbacks: s.Rollbacks(), Points: s.PointsTotal(),
		Retired: s.PointsRetired(), Params: params.String(), ParamsRound: at, Start: max(config.StartMembers, config.MinMembers),
	}}
	if saved, ok := s.LastCheckpoint(); ok {
		d.Saved = Saved{Epoch: saved.Epoch, Params: saved.Params.String(),
			Manifest: saved.Manifest.String(), By: saved.By.String()}
	}
	d.Members = make([]Member, s.Count())
	for i := range d.Members {
		d.Members[i] = Member{Index: coordinator.Member(i), MemberState: s.Member(coordinator.Member(i))}
	}
	for number := oldestRound(s); number <= s.Round(); number++ {
		if r, ok := s.At(number); ok {
			round := digestRound(r, uint32(s.Count()))
			if config.Sharing == coordinator.SpeedShares {
				round.Sequences = digestShares(r, uint32(s.Count()), earlier)
			}
			d.Rounds = append(d.Rounds, round)
		}
	}
	d.Trust, d.Windows = digestTrust(s), digestWindows(s)
	return d
}

// roundsKept is the number of rounds that a coordinator keeps.
const roundsKept = 4

// oldestRound returns the number of the oldest round that a state may still have.
func oldestRound(s coordinator.State) coordinator.Round {
	return s.Round() - min(s.Round(), roundsKept-1)
}

func digestRound(r coordinator.RoundState, members uint32) Round {
	d := Round{
		Number: r.Number(), Epoch: r.Epoch(), Step: r.Step(), OpenedMs: r.OpenedMs(), Batch: r.Batch(),
		Seed: r.Seed().String(), Final: r.Final(), Attests: r.Attests(), Quorum: r.Quorum(),
		AcceptedCount: r.AcceptedCount(),
	}
	if agreed, ok := r.Agreed(); ok {
		d.Agreed = agreed.String()
	}
	complete := map[coordinator.Member]bool{}
	for _, report := range r.Reports() {
		complete[report.Member] = report.Complete
	}
	for _, i := range r.Witnesses() {
		full, reported := complete[i]
		d.Witnesses = append(d.Witnesses, Witness{Member: i, Reported: reported, Complete: full})
	}
	n := (members + 7) / 8
	d.Active, d.Expected, d.Accepted = make(Set, n), make(Set, n), make(Set, n)
	for i := range coordinator.Member(members) {
		if r.Active(i) {
			d.Active.add(i)
		}
		if r.Expected(i) {
			d.Expected.add(i)
		}
		if r.Accepted(i) {
			d.Accepted.add(i)
		}
	}
	return d
}

// digestShares returns the sizes of a round's shares, from an earlier standing if that has them.
func digestShares(r coordinator.RoundState, members uint32, earlier *Standing) []uint32 {
	if earlier != nil {
		seed := r.Seed().String()
		for _, e := range earlier.Rounds {
			if e.Number == r.Number() && e.Seed == seed && len(e.Sequences) > 0 {
				return e.Sequences
			}
		}
	}
	of := make([]uint32, members)
	r.Shares(func(i coordinator.Member, spans []batch.Span) { of[i] = batch.Total(spans) })
	return slices.DeleteFunc(of, func(n uint32) bool { return n == 0 })
}

// digestTrust returns what a state says of checks, disputes and tokens; nil in a run that has none.
func digestTrust(s coordinator.State) *Trust {
	config := s.Config()
	drawn, passed := s.ChecksDrawn()
	head := TrustHead{
		Percent: config.VerificationPercent, Stake: config.Stake, Rate: config.Rate,
		Treasury: s.Treasury(), Escrow: s.Escrow(), Verified: s.PointsVerified(), Drawn: drawn,
		Passed: passed, Disputed: s.DisputesTotal(), Convicted: s.ConvictionsTotal(),
	}
	if head == (TrustHead{}) {
		return nil
	}
	return &Trust{Whole: true, TrustHead: head, Checks: s.Checks(), Disputes: s.Disputes(),
		Convictions: s.Convictions()}
}

// digestWindows returns what a state says of windows and scores; nil in a run that has neither.
func digestWindows(s coordinator.State) *Windows {
	c := s.Config()
	if c.Exchange != coordinator.Buckets && c.Validators == 0 {
		return nil
	}
	w := &Windows{Whole: true, SeatsTold: true, WindowsHead: WindowsHead{
		Buckets: c.Exchange == coordinator.Buckets, WindowBlocks: c.WindowBlocks,
		DeadlineHeight: s.DeadlineHeight(), Window: uint32(s.Window()), ScoreWindows: c.ScoreWindows,
		Current: s.Period(), Emission: c.Emission, ValidatorPercent: c.ValidatorPercent,
		Bittensor: c.Clock != 0,
	}}
	w.Scoring, w.Stage = s.Scoring()
	w.Given, w.Taken = s.Emitted()
	for number := oldestRound(s); number <= s.Round(); number++ {
		if r, ok := s.At(number); ok && w.Buckets {
			w.Commits = append(w.Commits, Commits{number, r.CommittedCount()})
		}
	}
	if c.Validators == 0 {
		return w
	}
	w.Validators = s.Validators()
	if last, ok := s.LastScores(); ok && last.Settled {
		w.Period = &last
	}
	return w
}

// since returns d without what was the same in an earlier standing; nil if nothing but height and
// time has changed. Without an earlier one, or with one of another run, it returns d itself.
func (d *Standing) since(earlier *Standing) *Standing {
	if earlier == nil || earlier.ID != d.ID {
		return d
	}
	out := *d
	out.Members, out.Rounds = nil, nil
	out.Trust, out.Windows = d.Trust.since(earlier.Trust), d.Windows.since(earlier.Windows)
	for i, m := range d.Members {
		if i >= len(earlier.Members) || earlier.Members[i] != m {
			if out.Members == nil {
				out.Members = make([]Member, 0, len(d.Members)-i)
			}
			out.Members = append(out.Members, m)
		}
	}
	out.Rounds, _ = news(d.Rounds, earlier.Rounds, func(r Round) coordinator.Round { return r.Number })
	if len(out.Members) == 0 && len(out.Rounds) == 0 && out.Trust == nil && out.Windows == nil && out.Head == earlier.Head {
		return nil
	}
	return &out
}

// news returns the rows that are new or changed since an earlier list, and the keys of those that
// are gone, both in the order of their lists.
func news[T any, K comparable](now, earlier []T, key func(T) K) (changed []T, gone []K) {
	left := make(map[K]T, len(earlier))
	for _, row := range earlier {
		left[key(row)] = row
	}
	for _, row := range now {
		if before, ok := left[key(row)]; !ok || !reflect.DeepEqual(before, row) {
			changed = append(changed, row)
		}
		delete(left, key(row))
	}
	for _, row := range earlier {
		if _, ok := left[key(row)]; ok {
			gone = append(gone, key(row))
		}
	}
	return changed, gone
}

// since returns what differs from an earlier Trust; nil if nothing does. Without an earlier one it
// returns t itself.
func (t *Trust) since(earlier *Trust) *Trust {
	if t == nil || earlier == nil {
		return t
	}
	out := &Trust{TrustHead: t.TrustHead}
	out.Checks, out.Closed = news(t.Checks, earlier.Checks, func(c dispute.Check) Share { return Share{c.Round, c.Member} })
	out.Disputes, out.Ended = news(t.Disputes, earlier.Disputes, func(d dispute.Dispute) uint32 { return d.ID })
	for _, c := range t.Convictions {
		if c.Number > earlier.Convicted {
			out.Convictions = append(out.Convictions, c)
		}
	}
	if reflect.DeepEqual(out, &Trust{TrustHead: earlier.TrustHead}) {
		return nil
	}
	return out
}

// since returns what differs from an earlier Windows; nil if nothing does. Without an earlier one
// it returns w itself.
func (w *Windows) since(earlier *Windows) *Windows {
	if w == nil || earlier == nil {
		return w
	}
	out := &Windows{WindowsHead: w.WindowsHead, Commits: w.Commits}
	if !slices.Equal(w.Validators, earlier.Validators) {
		out.Validators, out.SeatsTold = w.Validators, true
	}
	if w.Period != nil && (earlier.Period == nil || earlier.Period.Period != w.Period.Period) {
		out.Period = w.Period
	}
	if out.WindowsHead == earlier.WindowsHead && slices.Equal(out.Commits, earlier.Commits) && !out.SeatsTold && out.Period == nil {
		return nil
	}
	return out
}
