package view

import (
	"cmp"
	"slices"
	"strings"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/runlog"
)

// Limits of what is kept.
const (
	transfersKept = 64 // shown
	pendingMax    = 4  // rounds heard of before they opened; a participant hears of the next one only
)

// event takes what a participant reported.
func (f *Fold) event(ms uint64, who string, got event.Event) {
	own := who == ""
	if own {
		f.ownEvent(got)
	}
	switch ev := got.(type) {
	case event.Trained:
		if i, ok := f.index(who); ok {
			f.committed(ev.Round, i, ev.Loss, ev.Bytes)
			f.arrived(ev.Round, i)
		} else {
			f.loss.add(ev.Step, f.run.Tokens, float64(ev.Loss))
		}
		if own || f.own == "" {
			f.gradNorm.add(ev.Step, f.run.Tokens, ev.GradNorm)
			f.lr.add(ev.Step, f.run.Tokens, float64(ev.LR))
		}
	case event.Committed:
		f.committed(ev.Round, ev.Member, ev.Loss, ev.Bytes)
		if own {
			f.commitment(ev.Round, ev.Member, ev.Commitment.String())
		}
	case event.Signed:
		if own {
			f.commitment(ev.Round, ev.Member, ev.Commitment.String())
		}
	case event.Fetched:
		if ev.Update {
			if own {
				f.transfer(Transfer{TimeMs: ms, What: "update", Member: -1, Round: ev.Round, Bytes: ev.Bytes, Seconds: ev.Seconds})
			}
			break
		}
		f.arrived(ev.Round, ev.Member)
		if ev.Member < coordinator.Member(len(f.members)) {
			m := &f.members[ev.Member]
			m.Bytes += ev.Bytes
			if ev.Seconds > 0 {
				m.Rate = float64(ev.Bytes) / ev.Seconds
			}
		}
		if own {
			f.transfer(Transfer{TimeMs: ms, What: "payload", Member: int(ev.Member), Round: ev.Round, Bytes: ev.Bytes, Seconds: ev.Seconds})
		}
	case event.Healed:
		if own {
			f.transfer(Transfer{TimeMs: ms, What: "model", Member: -1, Round: ev.Round, Bytes: ev.Bytes})
		}
	case event.Evaluated:
		f.heldOut.add(ev.Step, f.run.Tokens, float64(ev.HeldOut))
	case event.Sample:
		f.sample(Sample{Step: ev.Step, TimeMs: ms, Who: who, Prompt: ev.Prompt, Text: ev.Text})
	case event.Scored:
		f.scored(ev)
	}
	f.tell(ms, who, got)
}

// ownEvent keeps where the participant that watches stands.
func (f *Fold) ownEvent(got event.Event) {
	o := f.self()
	switch ev := got.(type) {
	case event.State:
		if ev.Status != "" {
			o.Status, o.Points = ev.Status, ev.Points
		}
	case event.Peers:
		o.Peers, f.run.Network.Peers, f.run.Network.Known = ev.Connected, ev.Connected, max(ev.Known, uint64(ev.Connected))
	case event.Trained:
		o.Loss, o.PayloadBytes, o.PeakShare = ev.Loss, ev.Bytes, ev.PeakShare
		o.TokensPerSecond = cmp.Or(ev.TokensPerSecond(), o.TokensPerSecond)
		f.run.Network.SentBytes += ev.Bytes
	case event.Healing:
		if ev.Total > 0 {
			o.Healing = float64(ev.Bytes) / float64(ev.Total)
		}
	case event.Loaded:
		o.Params, o.Healing = ev.Params.String(), 0
	case event.Applied:
		o.Params, o.Healing = ev.Params.String(), 0
	case event.Healed:
		o.Params, o.Healing = ev.Params.String(), 0
	case event.Finished:
		o.Params, o.Healing = ev.Params.String(), 0
	}
}

// self returns the participant that watches.
func (f *Fold) self() *Own {
	if f.run.Own == nil {
		f.run.Own = &Own{Key: f.own, Index: -1}
	}
	return f.run.Own
}

// index finds the member that a record's Who names: by key or the beginning of one. "" is the
// participant that watches.
func (f *Fold) index(who string) (coordinator.Member, bool) {
	if who == "" {
		who = f.own
	}
	if key, ok := f.keys[who]; ok {
		who = key
	}
	if len(who) < whoBytesMin {
		return 0, false
	}
	i := slices.IndexFunc(f.members, func(m Member) bool { return strings.HasPrefix(m.Key, who) })
	return coordinator.Member(i), i >= 0
}

// whoBytesMin is how much of a key must be given to name a member.
const whoBytesMin = 8

// heard returns a round to note something of, also one that the state has not told of yet; nil if
// it is too old.
func (f *Fold) heard(number coordinator.Round) *round {
	if r := f.find(number); r != nil {
		return r
	}
	if number <= f.run.Round && f.seen {
		return nil
	}
	for _, r := range f.pending {
		if r.Number == number {
			return r
		}
	}
	if len(f.pending) == pendingMax {
		return nil
	}
	r := f.newRound(number)
	f.pending = append(f.pending, r)
	return r
}

// heardOf takes the sum of what came from others.
func (f *Fold) heardOf(ms uint64, h *runlog.Heard) {
	if h.Fetched > 0 {
		f.transfer(Transfer{TimeMs: ms, What: "payloads", Member: -1, Round: h.Round, Bytes: h.Came, Seconds: h.Seconds / float64(h.Fetched)})
		f.run.Network.Fetches += uint64(h.Fetched) - 1
	}
	r := f.heard(h.Round)
	if r == nil || h.Committed == 0 || uint64(r.Committed)+uint64(h.Committed) > membersMax {
		return
	}
	r.Bytes += h.Bytes
	r.Committed += h.Committed
	for i := range h.Committed { // as if a quarter had stated each quartile, and half the median
		loss := float32(h.LossSum / float64(h.Committed))
		switch i % 4 {
		case 0:
			loss = h.LossMin
		case 3:
			loss = h.LossMax
		}
		r.losses = append(r.losses, loss)
	}
}

// committed notes a member's commitment, once.
func (f *Fold) committed(number coordinator.Round, member coordinator.Member, loss float32, bytes uint64) {
	r := f.heard(number)
	if r == nil || member >= membersMax {
		return
	}
	if int(member) < len(f.members) {
		f.members[member].Loss = loss
	}
	m := r.mark(member)
	if r.heard[member] {
		return
	}
	r.heard[member] = true
	if *m == None || *m == Expected {
		*m = Committed
	}
	r.Bytes += bytes
	if r.Committed++; !r.inLine {
		r.losses = append(r.losses, loss)
	}
}

// membersMax is coordinator.MembersMax: what a log says of members beyond is not true.
const membersMax = 10_000

// arrived notes that a member's payload is here.
func (f *Fold) arrived(number coordinator.Round, member coordinator.Member) {
	if r := f.heard(number); r != nil && member < membersMax {
		if m := r.mark(member); *m == None || *m == Expected || *m == Committed {
			*m = Fetched
		}
	}
}

func (f *Fold) transfer(t Transfer) {
	n := &f.run.Network
	n.FetchedBytes += t.Bytes
	n.Fetches++
	now := t.TimeMs / 1000
	s := &f.fetched[now%paceSeconds]
	if s.at != now {
		*s = second{at: now}
	}
	s.bytes += t.Bytes
	if f.recent = append(f.recent, t); len(f.recent) > transfersKept {
		f.recent = slices.Delete(f.recent, 0, 1)
	}
}

// tell writes an event to the log, but for those that the windows show in other places.
func (f *Fold) tell(ms uint64, who string, ev event.Event) {
	switch ev.(type) {
	case event.State, event.Healing, event.Committed, event.Fetched, event.Applied, event.Peers, event.Dispute, event.Convicted, event.Signed:
		return // a state is told of by standings, with more; so are disputes
	case event.Trained:
		if who != "" {
			return // curves show the training of others
		}
	}
	t := f.tellers[who]
	if t == nil {
		if len(f.tellers) == membersMax {
			return
		}
		t = &Teller{}
		f.tellers[who] = t
	}
	t.steps, t.points = f.run.Steps, f.run.pointsOf(who)
	if text := t.Words(ev); text != "" {
		level := "info"
		v, _ := ev.(event.Verdict)
		if _, refused := ev.(event.Refused); refused || v.Status == event.Wrong || v.Status == event.Unserved {
			level = "warn"
		}
		f.say(ms, level, who, text)
	}
}

func (r *Run) pointsOf(who string) uint64 {
	if who == "" && r.Own != nil {
		return r.Own.Points
	}
	return 0
}
