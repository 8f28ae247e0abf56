package sim

import (
	"fmt"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
)

// A fee has a reason. The run counts what a member fails to do, and charges it when a count exceeds
// what the run bears. A count is the member's own fault only if its machine was down, cut off, slow
// or without its disk when that was due, or shortly before. An honest member is charged wrongly if
// its own faults alone do not suffice for it.

// recovery is the time that a machine has after a fault before anything is due: it loads its state,
// fetches a model, and gets through a round. For what it owes to a round, the fault lasts until the
// run has agreed on parameters of a later one.
const recovery = 10 * time.Second

// What the run counts of each member.
const (
	missed = iota
	idle
	skipped
	astray
	struck
	faultKinds
)

type faults [faultKinds]uint8

var faultNames = [faultKinds]string{"missed results or warmups", "elections without a report", "skipped checks", "reports of wrong parameters", "results that it did not serve"}

func counted(m coordinator.MemberState) faults {
	return faults{m.Missed, m.Idle, m.Skipped, m.Astray, m.Strikes}
}

// conduct is how much of the run's counts of a member was not its fault, and why the last was not.
type conduct struct {
	blameless faults
	why       [faultKinds]string
}

// impaired notes that a machine is down, cut off or cannot write, or was until now.
func (p *participant) impaired() {
	p.impairedAt = p.network.clock.Now()
	if s := p.network.before; s != nil {
		p.impairedIn = s.Round()
	}
}

// wellSince returns since when a machine has been well.
func (p *participant) wellSince() time.Time {
	if p.node == nil || p.cut || p.disk.Full {
		p.impaired()
	}
	return p.impairedAt
}

// inspectConduct looks for honest members that are charged for what is not their fault.
func (n *network) inspectConduct(s coordinator.State) {
	before := n.before
	n.before = &s
	if before == nil {
		return
	}
	most := faults{struck: 0, astray: dispute.AstrayMax - 1}
	for _, kind := range []int{missed, idle, skipped} {
		most[kind] = s.Config().MissedMax
	}
	for i := range before.Count() {
		was, is := before.Member(i), s.Member(i)
		p := n.members[n.clientOf(was.Key)]
		if was.Key != is.Key || n.cfg.kind(p.index) != "" {
			continue
		}
		well := p.wellSince()
		if _, agreed := s.Params(); agreed > p.impairedIn && !p.agreedAt.After(well) {
			p.agreedAt = n.clock.Now()
		}
		c, now := &p.conduct, counted(is)
		if is.Status == coordinator.StatusDropped && was.Astray == dispute.AstrayMax-1 && is.Astray == 0 {
			now[astray] = dispute.AstrayMax
		}
		for kind, count := range now {
			c.blameless[kind] = min(c.blameless[kind], count)
			if count <= counted(was)[kind] {
				continue
			}
			if why, blameless := n.blameless(*before, s, i, kind); blameless {
				c.blameless[kind]++
				c.why[kind] = why
				n.report.Blameless++
			}
			if count > most[kind] && count-c.blameless[kind] <= most[kind] {
				n.fail("client %d is charged in round %d for %d %s, of which %d are not its fault: %s", p.index, s.Round(), count, faultNames[kind], c.blameless[kind], c.why[kind])
			}
		}
	}
}

// blameless reports whether what the run has just counted is not the fault of member i, and why.
func (n *network) blameless(before, s coordinator.State, i coordinator.Member, kind int) (why string, ok bool) {
	p, now, verify := n.members[n.clientOf(s.Key(i))], n.chain.Host().TimeMs(), s.Config().VerifyMs
	closed, _ := before.At(before.Round())
	attested, _ := before.At(closed.Attests())
	due := uint64(0) // in the ledger's milliseconds, which are those of the clock
	switch kind {
	case missed:
		due, why = attested.OpenedMs(), fmt.Sprintf("round %d opened", attested.Number())
		if before.Phase() == coordinator.Warmup {
			due, why = before.PhaseSince(), "the warmup began"
		}
	case idle, astray:
		due, why = closed.OpenedMs(), fmt.Sprintf("round %d opened", closed.Number())
	case skipped:
		due, why = now-verify/2, "it had half of its time for a check left"
		for _, d := range before.Disputes() {
			if _, open := s.Dispute(d.ID); d.Unserved && d.Accuser == i && !open {
				due, why = d.DeadlineMs-verify, fmt.Sprintf("it said that round %d of member %d is not served, which was", d.Round, d.Member)
			}
		}
	case struck:
		for _, d := range before.Disputes() {
			if _, open := s.Dispute(d.ID); d.Unserved && d.Accused == i && !open {
				due, why = min(now, d.DeadlineMs-verify/2), fmt.Sprintf("tie-breakers gave up to ask it for round %d", d.Round)
			}
		}
	}
	slow := p.slowness > 1 && (kind == missed || kind == idle || kind == skipped)
	mayBe := kind == struck && (p.emptied || n.cfg.denied())
	well, at := p.wellSince(), time.UnixMilli(int64(due))
	if kind == missed || kind == idle || kind == astray {
		// A machine that was down or cut off has missed results, and disks keep no accepted sets
		// here. So it takes part again with parameters of a later round that the run agrees on.
		if well = p.agreedAt; !well.After(p.impairedAt) {
			return "", false
		}
	}
	if slow || mayBe || at.Sub(well) < recovery {
		return "", false
	}
	return fmt.Sprintf("it had been well for %v when %s", at.Sub(well), why), true
}
