package sim

import (
	"maps"
	"sort"
	"time"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/wire"
)

// invariants holds what was observed and must remain true.
type invariants struct {
	seen     uint64 // height that was looked at last
	height   uint64 // of the last change
	judged   uint64 // likewise, for inspectRun
	finished bool   // the run is
	holders  int    // since it is, honest participants with the agreed parameters
	// params holds the hash of the parameters at the start of each round, from the first
	// participant that computed it.
	params map[coordinator.Round]wire.Hash
	// claims holds instead those of each honest participant, by client, where some may be misled.
	claims map[coordinator.Round]map[int]wire.Hash
	// settled holds the rounds whose accepted sets were inspected, paid those whose parameters were.
	settled, paid map[coordinator.Round]bool
	// accepted holds the accepted sequences as disjoint spans, in order.
	accepted []batch.Span
	points   uint64 // sequences of accepted results in rounds with agreed parameters,
	ejected  uint64 // and those of members that were ejected when the agreement was seen
	rollback uint32
	agreed   coordinator.Round // of the parameters agreed on last
	movedAt  time.Time         // of that agreement, or of a fault since
}

// inspect checks all invariants after an event, in a crowd after those of a window.
func (n *network) inspect() {
	c, seen := &n.check, n.chain.Host().Height()
	if seen == c.seen && n.untouched() {
		return
	}
	c.seen = seen
	v, ok := n.chain.Host().View(runName)
	if !ok {
		return
	}
	if !n.cfg.crowded() {
		n.inspectRun()
	}
	members := n.takeTouched()
	if v.Changed != c.height {
		c.height, c.finished = v.Changed, v.State.Phase() == coordinator.Finished
		if c.finished || v.State.Rollbacks() > 0 {
			members = n.members // as they were seen before, they count otherwise now
		}
	}
	n.inspectParams(v.State, members)
	if agreed, _ := v.State.Params(); c.finished {
		for _, p := range members {
			if holds := p.holds(agreed); holds != p.counted {
				p.counted = holds
				if c.holders--; holds {
					c.holders += 2
				}
			}
		}
	}
}

// inspectRun checks what must hold of the run if it has changed: in a crowd, after the ledger's
// blocks and beside the parts.
func (n *network) inspectRun() {
	c := &n.check
	v, ok := n.chain.Host().View(runName)
	if !ok || v.Changed == c.judged {
		return
	}
	c.judged = v.Changed
	c.forget(v.State.Round())
	var sum totals
	for i := range v.State.Count() {
		m := v.State.Member(i)
		sum.points, sum.tokens = sum.points+m.Points, sum.tokens+m.Stake+m.Balance
	}
	if _, agreed := v.State.Params(); agreed != c.agreed {
		c.agreed, c.movedAt = agreed, n.clock.Now()
	}
	n.inspectState(v.State, sum)
	n.inspectTrust(v.State, sum)
	if !n.cfg.crowded() {
		n.inspectConduct(v.State) // in a crowd machines run beside this
	}
}

// patience is the longest time without an agreement and without a fault: of three rounds, after
// which the epoch drains, ends three rounds later than it should, and returns to older parameters;
// of three warmups, after which these count as lost; and of the first two rounds of the next epoch.
func (n *network) patience() time.Duration {
	t := n.spec.Times
	return time.Duration(t.RoundTrain+t.RoundWitness)*time.Duration(n.cfg.Overlap+10) + time.Duration(t.Cooldown+3*(t.Waiting+t.Warmup))
}

// totals is what all members have together.
type totals struct {
	points uint64
	tokens uint64 // stakes and balances
}

// inspectParams compares the parameters of participants in the same round. A rollback clears
// earlier rounds.
func (n *network) inspectParams(s coordinator.State, members []*participant) {
	c := &n.check
	if s.Rollbacks() != c.rollback {
		c.rollback = s.Rollbacks()
		clear(c.params)
		clear(c.claims)
	}
	if c.rollback > 0 && s.Phase() != coordinator.RoundTrain && s.Phase() != coordinator.RoundWitness {
		return // only some have rolled back
	}
	for _, p := range members {
		round, hash, ok := p.unseen()
		if !ok {
			continue
		}
		p.seenRound, p.seenHash, p.seenRollback = round, hash, c.rollback
		if r, ok := s.At(round); !ok || c.rollback > 0 && r.Epoch() != s.Epoch() {
			continue
		}
		if n.misled {
			if c.claims[round] == nil {
				c.claims[round] = map[int]wire.Hash{}
			}
			c.claims[round][p.index] = hash
			continue
		}
		first, seen := c.params[round]
		if !seen {
			c.params[round] = hash
		} else if first != hash {
			n.fail("client %d holds %s at round %d, the others %s", p.index, hash, round, first)
		}
	}
}

// unseen returns an honest participant's parameters, if they have changed since inspectParams
// looked at them.
func (p *participant) unseen() (round coordinator.Round, hash wire.Hash, ok bool) {
	if p.node == nil || p.network.cfg.kind(p.index) != "" {
		return 0, hash, false
	}
	round, hash, ok = p.node.Params()
	seen := round == p.seenRound && hash == p.seenHash && p.network.check.rollback == p.seenRollback
	return round, hash, ok && round != 0 && !seen
}

// forget drops what is known of rounds long over.
func (c *invariants) forget(now coordinator.Round) {
	maps.DeleteFunc(c.params, func(round coordinator.Round, _ wire.Hash) bool { return round+8 < now })
	maps.DeleteFunc(c.claims, func(round coordinator.Round, _ map[int]wire.Hash) bool { return round+8 < now })
}

// inspectState checks the rounds that became final.
func (n *network) inspectState(s coordinator.State, sum totals) {
	c := &n.check
	for number := s.Round() - min(s.Round(), 4) + 1; number <= s.Round(); number++ {
		r, ok := s.At(number)
		if !ok || !r.Final() {
			continue
		}
		if agreed, ok := r.Agreed(); ok && !c.paid[number] {
			c.paid[number] = true
			for _, hash := range c.claims[number] {
				if hash != agreed {
					n.report.Misled++
				}
			}
			if first, seen := c.params[number]; seen && first != agreed && s.Rollbacks() == c.rollback {
				n.fail("round %d: agreed on %s, computed was %s", number, agreed, first)
			}
			r.Shares(func(i coordinator.Member, spans []batch.Span) {
				switch total := uint64(batch.Total(spans)); {
				case !r.Accepted(i):
				case s.Status(i) == coordinator.StatusEjected: // before the agreement, or since
					c.ejected += total
				default:
					c.points += total
				}
			})
		}
		if c.settled[number] {
			continue
		}
		c.settled[number] = true
		r.Shares(func(i coordinator.Member, spans []batch.Span) {
			if !r.Accepted(i) {
				return
			}
			for _, span := range spans {
				if !c.add(span) {
					n.fail("round %d: sequences %d to %d are accepted twice", number, span.Start, span.End()-1)
				}
			}
		})
	}
	if least := c.points + s.PointsVerified(); s.PointsTotal() < least || s.PointsTotal() > least+c.ejected {
		n.fail("round %d: %d points were given for %d accepted sequences and %d recomputed ones", s.Round(), s.PointsTotal(), c.points, s.PointsVerified())
	}
	if sum.points+s.PointsRetired() != s.PointsTotal() {
		n.fail("round %d: members hold %d points and %d are retired, of %d", s.Round(), sum.points, s.PointsRetired(), s.PointsTotal())
	}
}

// add adds a span to the accepted ones. It reports false if they overlap.
func (c *invariants) add(s batch.Span) bool {
	at := sort.Search(len(c.accepted), func(i int) bool { return c.accepted[i].End() > s.Start })
	if at < len(c.accepted) && c.accepted[at].Start < s.End() {
		return false
	}
	if at > 0 && c.accepted[at-1].End() == s.Start {
		c.accepted[at-1].Count += s.Count
		if at < len(c.accepted) && c.accepted[at-1].End() == c.accepted[at].Start {
			c.accepted[at-1].Count += c.accepted[at].Count
			c.accepted = append(c.accepted[:at], c.accepted[at+1:]...)
		}
		return true
	}
	c.accepted = append(c.accepted, batch.Span{})
	copy(c.accepted[at+1:], c.accepted[at:])
	c.accepted[at] = s
	return true
}
