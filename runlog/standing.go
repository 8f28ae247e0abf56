package runlog

import (
	"bytes"
	"slices"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/wire"
)

// Digest is all of a coordinator's state that windows show. It costs O(members).
func Digest(snapshot ledger.Snapshot) *Standing { return digestAfter(snapshot, nil) }

// digestAfter is Digest that takes the texts of keys from an earlier one, if there is one, which saves half of the work.
func digestAfter(snapshot ledger.Snapshot, earlier *Standing) *Standing {
	s := snapshot.State
	config := s.Config()
	params, at := s.Params()
	d := &Standing{Height: snapshot.Height, TimeMs: snapshot.TimeMs, Head: Head{
		Run: config.Name, ID: s.ID().String(), Steps: config.TotalSteps, Capacity: s.Limits().Members, SeqTokens: config.SequenceTokens,
		Overlap: config.Overlap, MissedMax: config.MissedMax,
		Phase: s.Phase().String(), SinceMs: s.PhaseSince(), DeadlineMs: s.Deadline(),
		Epoch: s.Epoch(), Round: s.Round(), Step: s.Step(), Present: s.Present(), Draining: s.Draining(), Pausing: s.PausePending(),
		Rollbacks: s.Rollbacks(), Points: s.PointsTotal(), Retired: s.PointsRetired(), Params: params.String(), ParamsRound: at,
	}}
	if saved, ok := s.LastCheckpoint(); ok {
		d.Saved = Saved{Epoch: saved.Epoch, Params: saved.Params.String(), Manifest: saved.Manifest.String(), By: saved.By.String()}
	}
	d.Members = make([]Member, s.Count())
	var digits [2 * len(key.Public{})]byte
	for i := range d.Members {
		m := s.Member(uint32(i))
		name := wire.AppendHex(digits[:0], m.Key[:])
		text := ""
		if earlier != nil && i < len(earlier.Members) && earlier.Members[i].Key == string(name) {
			text = earlier.Members[i].Key
		} else {
			text = string(name)
		}
		d.Members[i] = Member{
			Index: uint32(i), Key: text, Status: m.Status.String(), Points: m.Points, Results: m.Results, Missed: m.Missed, Idle: m.Idle,
			Speed: m.Speed, JoinedMs: m.JoinedMs, JoinedEpoch: m.JoinedEpoch, LeftMs: m.LeftMs, LeftRound: m.LeftRound,
		}
	}
	for number := s.Round() - min(s.Round(), roundsKept-1); number <= s.Round(); number++ {
		if r, ok := s.At(number); ok {
			round := digestRound(r, s.Count())
			if config.Sharing == coordinator.SpeedShares {
				round.Sequences = digestShares(r, s.Count(), earlier)
			}
			d.Rounds = append(d.Rounds, round)
		}
	}
	d.Trust, d.Windows = digestTrust(s), digestWindows(s)
	return d
}

// roundsKept is how many rounds the coordinator's ring holds.
const roundsKept = 4

func digestRound(r coordinator.Round, members uint32) Round {
	d := Round{
		Number: r.Number(), Epoch: r.Epoch(), Step: r.Step(), OpenedMs: r.OpenedMs(), Batch: r.Batch(), Seed: r.Seed().String(),
		Final: r.Final(), Attests: r.Attests(), Quorum: r.Quorum(), AcceptedCount: r.AcceptedCount(),
	}
	if agreed, ok := r.Agreed(); ok {
		d.Agreed = agreed.String()
	}
	complete := map[uint32]bool{}
	for _, report := range r.Reports() {
		complete[report.Member] = report.Complete
	}
	for _, i := range r.Witnesses() {
		full, reported := complete[i]
		d.Witnesses = append(d.Witnesses, Witness{Member: i, Reported: reported, Complete: full})
	}
	n := (members + 7) / 8
	d.Active, d.Expected, d.Accepted = make(Set, n), make(Set, n), make(Set, n)
	for i := range members {
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

// digestShares returns how many sequences the shares of a round have, from an earlier standing if that knows the round.
func digestShares(r coordinator.Round, members uint32, earlier *Standing) []uint32 {
	if earlier != nil {
		seed := r.Seed().String()
		for _, e := range earlier.Rounds {
			if e.Number == r.Number() && e.Seed == seed && len(e.Sequences) > 0 {
				return e.Sequences
			}
		}
	}
	of := make([]uint32, members)
	r.Shares(func(i uint32, spans []batch.Span) { of[i] = batch.Total(spans) })
	return slices.DeleteFunc(of, func(n uint32) bool { return n == 0 })
}

// since returns d without the members and rounds that were the same in an earlier one; nil if nothing at all has changed but
// height and time. Without an earlier one, or with one of another run, it is d itself.
func (d *Standing) since(earlier *Standing) *Standing {
	if earlier == nil || earlier.ID != d.ID {
		return d
	}
	out := *d
	out.Members, out.Rounds, out.Trust = nil, nil, d.Trust.since(earlier.Trust)
	out.Windows = d.Windows.since(earlier.Windows)
	for i, m := range d.Members {
		if i >= len(earlier.Members) || earlier.Members[i] != m {
			if out.Members == nil {
				out.Members = make([]Member, 0, len(d.Members)-i)
			}
			out.Members = append(out.Members, m)
		}
	}
	for _, r := range d.Rounds {
		i := slices.IndexFunc(earlier.Rounds, func(e Round) bool { return e.Number == r.Number })
		if i < 0 || !earlier.Rounds[i].equal(r) {
			out.Rounds = append(out.Rounds, r)
		}
	}
	if len(out.Members) == 0 && len(out.Rounds) == 0 && out.Trust == nil && out.Windows == nil && out.Head == earlier.Head {
		return nil
	}
	return &out
}

func (r Round) equal(o Round) bool {
	return r.Number == o.Number && r.Epoch == o.Epoch && r.Step == o.Step && r.OpenedMs == o.OpenedMs && r.Batch == o.Batch &&
		r.Seed == o.Seed && r.Agreed == o.Agreed && r.Final == o.Final && r.AcceptedCount == o.AcceptedCount &&
		slices.Equal(r.Witnesses, o.Witnesses) && bytes.Equal(r.Active, o.Active) && bytes.Equal(r.Expected, o.Expected) && bytes.Equal(r.Accepted, o.Accepted) &&
		slices.Equal(r.Sequences, o.Sequences)
}
