package coordinator

import (
	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/committee"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/wire"
)

// This file ends rounds: it agrees on parameters, accepts, pays and charges the results that the
// round's witnesses reported, and decides what comes next.

const (
	// repeatsMax is how many times an epoch's last round is repeated if no parameters are agreed.
	// Then the epoch is rolled back.
	repeatsMax = 3
	// disagreeMax is how many rounds in a row may pass without agreed parameters before the epoch
	// drains. One bad draw of witnesses leaves two: its own round, and the one that it was to
	// confirm.
	disagreeMax = 3
)

// judgeSilence charges the witnesses of round r that did not report. If fewer than half of them
// were heard, the ledger was out of reach of most, and nobody is charged. A gang that means to stop
// a round for nothing thus needs more than half of its seats.
func (s State) judgeSilence(env Env, r RoundState) {
	heard := 2*uint32(r.b.Reports()) >= r.electedLen()
	for p := range r.electedLen() {
		i := r.electedAt(p)
		switch {
		case s.status(i) != StatusActive:
		case r.reported(p):
			s.place(i).SetIdle(0)
		case heard:
			s.idle(i, env)
		}
	}
}

// next continues or ends the epoch after round r. agreed reports whether the parameters of the
// round before are agreed.
func (s State) next(env Env, r RoundState, agreed bool) {
	drain := s.Draining()
	repeats := s.h().Repeats()
	active := s.tally().active
	switch {
	case active == 0:
		s.endEpoch(env, r, drain == 1 && agreed)
	case drain == 0 && (active < s.h().MinMembers() || s.mustDrain(env, r)):
		s.open(env, s.h().Overlap()+2)
	case drain == 0:
		s.open(env, 0)
	case drain > 1:
		s.open(env, drain-1)
	case agreed:
		s.endEpoch(env, r, true)
	case repeats < repeatsMax:
		s.h().SetRepeats(repeats + 1)
		s.open(env, 1)
	default:
		s.endEpoch(env, r, false)
	}
}

// mustDrain reports whether the epoch must end after the training round r, however many members are
// active.
func (s State) mustDrain(env Env, r RoundState) bool {
	_, agreedIn := s.Params()
	base := max(agreedIn+1, s.h().EpochRound()) + 1 // the epoch began with agreed parameters
	switch {
	case reached(env.NowMs, s.h().EpochSince(), s.h().EpochMs()):
	case s.Step() >= s.h().TotalSteps():
	case s.PausePending(), s.EndPending():
	case uint32(r.b.Reports()) < r.Quorum():
	case r.Number()+1 >= base+disagreeMax:
	default:
		return false
	}
	return true
}

// agree notes which parameters a quorum of r's witnesses named for the start of r. If a quorum also
// names, for the start of the round before, those that a quorum of that round's witnesses named
// then, these are agreed, and agree returns true. So a gang decides on parameters only if it is a
// quorum by luck in two draws in a row.
//
// Witnesses that most others contradict are charged: witnesses of the round before that named
// others than more than half of r's name now, and, if these are not a quorum, witnesses of r that
// name others than these or than were named then. A gang that prevents an agreement thus pays,
// unless it has half of the seats.
func (s State) agree(env Env, r RoundState) bool {
	if hash, n := r.mostNamed(now); n >= r.Quorum() {
		r.b.SetNamed(hash)
		r.b.SetHasNamed(true)
	}
	p, ok := s.At(r.Number() - 1)
	if !ok || p.Epoch() != r.Epoch() {
		return false
	}
	hash, n := r.mostNamed(before)
	most, named, quorum := 2*n > r.electedLen(), p.b.HasNamed(), n >= r.Quorum()
	if most {
		s.judgeNames(env, p, now, hash, quorum)
	}
	switch {
	case quorum:
	case most:
		s.judgeNames(env, r, before, hash, false)
	case named:
		s.judgeNames(env, r, before, p.b.Named(), false)
	}
	if !quorum || !named || p.b.Named() != hash {
		return false
	}
	p.b.SetAgreed(true)
	s.h().SetParams(hash)
	s.h().SetParamsRound(p.Number())
	return true
}

// now and before are the two parameters that a report names.
func now(v record.Report) wire.Hash    { return v.Params() }
func before(v record.Report) wire.Hash { return v.Prev() }

// mostNamed returns the parameters that most of the round's reports name, and how many do. It reads
// each report once, since a gang may name as many as it has seats.
func (r RoundState) mostNamed(of func(record.Report) wire.Hash) (most wire.Hash, n uint32) {
	names := make([]wire.Hash, 0, r.electedLen())
	for p := range r.electedLen() {
		if r.reported(p) {
			names = append(names, of(r.reportAt(p)))
		}
	}
	for p := range names {
		votes := uint32(0)
		for q := p; q < len(names); q++ { // one who named the same before p has more votes
			if names[q] == names[p] {
				votes++
			}
		}
		if votes > n {
			most, n = names[p], votes
		}
		if 2*n > uint32(len(names)) {
			break // no others can be more
		}
	}
	return most, n
}

// judgeNames charges the witnesses of round r that did not name these parameters. One such report
// may be an accident. A witness that does it in three reports in a row is dropped and pays a fee.
// A right one ends the row, if it forgives.
func (s State) judgeNames(env Env, r RoundState, of func(record.Report) wire.Hash, params wire.Hash, forgives bool) {
	for p := range r.electedLen() {
		i := r.electedAt(p)
		if !r.reported(p) || s.status(i) != StatusActive {
			continue
		}
		b := s.place(i)
		switch {
		case of(r.reportAt(p)) == params:
			if forgives {
				b.SetAstray(0)
			}
		case b.Astray()+1 < dispute.AstrayMax:
			b.SetAstray(b.Astray() + 1)
		default:
			b.SetAstray(0)
			s.cases().Convict(env.dispute(nil), dispute.Charge{Member: i, Offence: dispute.Contradiction, Round: r.Number(), By: dispute.NoMember})
			s.leave(i, StatusDropped, env)
		}
	}
}

// judge settles the results of the round that r's witnesses attested. A result that a quorum of
// them holds is accepted, if the parameters that it started from are agreed: without them nobody
// can check it. The sequences of the others enter the redo queue.
//
// With Overlap 0 only the first of the two quorums that agree on parameters is known by then. The
// result is accepted, and it is paid and can be checked once the second has agreed.
//
// A result that was not accepted is not always its author's fault: a network that is cut in two
// leaves no quorum on either side. It counts as missed only if a quorum of the witnesses reported
// that they do not hold it, or if half of them did, and more than two thirds of the other members'
// results were accepted, which shows that the network carried results to a quorum. With half, a
// gang that can keep a result out of the model cannot charge its author too. Silent witnesses
// satisfy neither condition and are charged for their silence alone. Nobody has missed a round
// whose results none could hold (see Severed and orphans).
func (s State) judge(env Env, r, a RoundState, w *record.Meter) bool {
	quorum, reports := r.Quorum(), uint32(r.b.Reports())
	counts, taken := a.counts(), a.accepted()
	carried := a.AcceptedCount() >= committee.Quorum(a.ExpectedCount()-1)
	blames, orphaned, scored := a.checkable(r) && !a.Severed(), a.orphans(), s.l.Validators > 0
	charge, spans := env.dispute(nil), a.Spans()
	lost := dealt{} // shares in a row that were not accepted
	p, n, units, list := s.h().Cursor(), a.ExpectedCount(), a.units(judgeUnits), a.shares()
	for to := w.Chunk(p, n, units); p < to; to = w.Chunk(p, n, units) {
		for ; p < to; p++ {
			d := list.at(p, s.lineAt(p))
			i := d.member
			if bit(taken, i) {
				if b := s.place(i); b.Missed() > 0 && Status(b.Status()) == StatusActive {
					makeUp(b)
				}
				continue
			}
			if scored {
				s.book().Missed(i, a.Number())
			}
			if lost.from+lost.count != d.from {
				s.redo(spans, lost)
				lost = dealt{from: d.from}
			}
			lost.count += d.count
			held := uint32(counts[i])
			refused := held+quorum <= reports || carried && 2*held <= reports
			if blames && refused && !orphaned(i) && s.status(i) == StatusActive {
				s.miss(i, charge)
				w.Spends(missUnits)
			}
		}
	}
	s.redo(spans, lost)
	s.h().SetCursor(p)
	return p >= n
}

// checkable reports whether the parameters that round a's results started from are known, when the
// round r ends that attests it.
func (a RoundState) checkable(r RoundState) bool {
	return a.b.Agreed() || a.Number() == r.Number() && a.b.HasNamed()
}

// accept accepts the results of round a that a quorum of r's witnesses holds. It returns true.
func (s State) accept(r, a RoundState) bool {
	quorum, counts, taken, accepted := r.Quorum(), a.counts(), a.accepted(), uint32(0)
	if a.checkable(r) {
		held := a.held()
		for i, n := range counts[:s.Count()] {
			if i := Member(i); uint32(n) >= quorum && bit(held, i) && !s.place(i).Ejected() {
				setBit(taken, i)
				accepted++
			}
		}
	}
	a.b.SetAcceptedLen(accepted)
	a.b.SetFinal(true)
	return true
}

// redo queues a part of a batch to be trained again.
func (s State) redo(spans []batch.Span, d dealt) {
	for _, v := range batch.Cut(spans, d.from, d.count) {
		s.pushRedo(v)
	}
}

// Severed reports whether the round's results begin from optimizer states that no witness takes.
// With Overlap 1 members train before it is decided which results of the round before are accepted.
// If its parameters were not agreed none were, through no fault of theirs: a gang that is a
// blocking minority of one draw of witnesses suffices. So nobody waits for these results, and
// nobody has missed them.
func (r RoundState) Severed() bool {
	s := r.s
	p, ok := s.At(r.Number() - 1)
	return ok && s.exchange() == Peers && s.h().Overlap() == 1 && p.Epoch() == r.Epoch() && !p.b.Agreed()
}

// orphans returns a function that reports whether a member's result of the round begins, as with
// Overlap 1, from one that was kept out of the model although most held it. Then no witness takes
// this one either.
func (r RoundState) orphans() func(Member) bool {
	p, ok := r.s.At(r.Number() - 1)
	if !ok || r.s.exchange() != Peers || r.Attests() != p.Number() {
		return func(Member) bool { return false }
	}
	expected, taken, counts, reports := p.expected(), p.accepted(), p.counts(), uint32(r.b.Reports())
	return func(i Member) bool {
		return 2*uint32(counts[i]) > reports && bit(expected, i) && !bit(taken, i)
	}
}

// reward pays the accepted results of round a, whose parameters are agreed.
func (s State) reward(a RoundState, w *record.Meter) bool {
	taken, round, scored, total := a.accepted(), a.Number(), s.l.Validators > 0, uint64(0)
	p, n, units, list := s.h().Cursor(), a.ExpectedCount(), a.units(rewardUnits), a.shares()
	for to := w.Chunk(p, n, units); p < to; to = w.Chunk(p, n, units) {
		for ; p < to; p++ {
			d := list.at(p, s.lineAt(p))
			b := s.place(d.member)
			if !bit(taken, d.member) || b.Ejected() {
				continue
			}
			b.SetPoints(b.Points() + uint64(d.count))
			b.SetResults(b.Results() + 1)
			if b.FirstRound() == 0 {
				b.SetFirstRound(round)
			}
			b.SetLastRound(round)
			total += uint64(d.count)
			if scored {
				s.book().Accepted(d.member, round, d.count)
			}
		}
	}
	s.h().SetCursor(p)
	s.h().SetPointsTotal(s.PointsTotal() + total)
	return p >= n
}

// endEpoch enters Cooldown after round r. If the last parameters were not agreed, the members
// return to the last agreed ones. Results of r that no round attested are not accepted; that
// happens only if all members left before the epoch had drained.
func (s State) endEpoch(env Env, r RoundState, agreed bool) {
	if !r.Final() {
		for _, v := range r.Spans() {
			s.pushRedo(v)
		}
		r.b.SetFinal(true)
	}
	if !agreed {
		s.h().SetRollbacks(s.Rollbacks() + 1)
	}
	s.h().SetDrain(0)
	s.h().SetRepeats(0)
	s.settle()
	s.chooseCheckpointers(env, r)
	s.enter(Cooldown, env)
}

// chooseCheckpointers draws up to three members to make the epoch's checkpoint. It draws them from
// the witnesses that named the agreed parameters in the last round, because those certainly hold
// them. If there are none, it draws from all active members.
func (s State) chooseCheckpointers(env Env, r RoundState) {
	var from []Member
	hash, _ := s.Params()
	for p := range r.electedLen() {
		i := r.electedAt(p)
		if r.reported(p) && r.report(p).Params == hash && s.status(i) == StatusActive {
			from = append(from, i)
		}
	}
	if len(from) == 0 {
		from = s.activeMembers()
	}
	roundSeed := r.Seed()
	seed := wire.Sum("entrain/checkpointers", env.Seed[:], roundSeed[:])
	chosen := committee.Seat(seed, committee.Trainers, from, checkpointersMax)
	s.h().SetCheckpointersLen(uint8(len(chosen)))
	for p := range uint32(checkpointersMax) {
		i := Member(0)
		if p < uint32(len(chosen)) {
			i = chosen[p]
		}
		s.h().SetCheckpointer(p, i)
		s.h().SetCheckpointNamed(p, wire.Hash{})
	}
}
