package coordinator

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/entrain-network/entrain/bloom"
	"github.com/entrain-network/entrain/committee"
	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/wire"
)

// advance makes the one transition that is due, and reports whether there was one.
func (s State) advance(env Env, w *record.Meter) bool {
	phase := s.Phase()
	switch {
	case s.h().Closing() == settling:
		return false
	case s.Closing() && phase != Warmup:
		return s.endRound(env, w)
	}
	switch phase {
	case WaitingForMembers:
		return s.advanceWaiting(env)
	case Warmup:
		return s.advanceWarmup(env, w)
	case RoundTrain:
		r := s.slot(s.Round())
		complete := uint32(r.b.Completes()) >= r.Quorum() || s.allReported()
		over := s.elapsed(env, s.h().TrainLimitMs())
		if s.exchange() == Buckets {
			over = s.windowOver(env)
			complete = complete && !r.windowed()
		}
		if !complete && !over {
			return false
		}
		if complete && r.Trains() {
			s.h().SetPaceMs(uint32(min(env.NowMs-s.PhaseSince(), 1<<32-1)))
		}
		s.enter(RoundWitness, env)
		return true
	case RoundWitness:
		if !s.allReported() && !s.elapsed(env, s.h().RoundWitnessMs()) {
			return false
		}
		return s.endRound(env, w)
	case Cooldown:
		return s.advanceCooldown(env)
	}
	return false
}

func (s State) advanceWaiting(env Env) bool {
	if !s.elapsed(env, s.h().WaitingMs()) || s.Present() < s.h().StartMembers() {
		return false
	}
	s.h().SetEpoch(s.Epoch() + 1)
	s.enter(Warmup, env)
	return true
}

// advanceWarmup opens the first round once all members that were present when the warmup began are
// ready. A member that joins during the warmup may take part, but the others do not wait for it, so
// newcomers cannot delay a run. When the time is over the epoch starts with the members that are
// ready, if they are enough. A member that is late has missed. In a lost warmup that costs no fee:
// if nobody serves the parameters, those that lack them are not to blame.
func (s State) advanceWarmup(env Env, w *record.Meter) bool {
	t := s.tally()
	least := s.h().MinMembers()
	switch {
	case s.Closing():
	case t.present < least:
		s.standDown()
		s.enter(WaitingForMembers, env)
		return true
	case t.unready == 0 && t.ready >= least:
		w.Takes(s.opening())
		return s.beginEpoch(env, w)
	case !s.elapsed(env, s.h().WarmupMs()):
		return false
	}
	if !s.Closing() && t.ready < least {
		s.countLost(t)
	}
	since, lost, most := s.PhaseSince(), t.ready < least && s.h().LostWarmups() > 0, s.h().MissedMax()
	env = s.begin(env, warming)
	if !s.buffer().Each(w, uint32(s.Count()), clearUnits, func(i uint32) {
		b := s.place(Member(i))
		if Status(b.Status()) == StatusWaiting && b.JoinedMs() <= since {
			if lost && b.Missed() >= most {
				s.leave(Member(i), StatusDropped, env)
			} else {
				s.miss(Member(i), env.dispute(nil))
			}
			w.Spends(missUnits)
		}
	}) || !w.Takes(s.opening()) {
		return false
	}
	s.end()
	if t.ready >= least {
		return s.beginEpoch(env, w)
	}
	if n := s.h().LostWarmups(); n%lostWarmup >= emptyWarmupsMax || n/lostWarmup >= lostWarmupsMax {
		s.loseParams()
	}
	s.standDown()
	s.enter(WaitingForMembers, env)
	return true
}

// A warmup is lost if the epoch cannot begin and fewer than a third of the members that were to be
// ready are. The parameters count as lost after emptyWarmupsMax lost warmups with no member ready,
// or lostWarmupsMax others, with no other warmup between them: a gang of less than a third can
// neither keep them by saying that it is ready, nor lose them by not saying so. Members that are
// gone say nothing either, but with a MissedMax of 5 or less they are dropped before the seventh.
// So a member that waits with the parameters for newcomers keeps them.
const (
	emptyWarmupsMax = 3
	lostWarmupsMax  = 7
)

// lostWarmup is one of the others in Header.LostWarmups.
const lostWarmup = 16

// countLost counts a warmup that ends without an epoch.
func (s State) countLost(t tally) {
	switch n := s.h().LostWarmups(); {
	case t.ready == 0:
		s.h().SetLostWarmups(n + 1)
	case 2*t.ready < t.unready:
		s.h().SetLostWarmups(n + lostWarmup)
	default:
		s.h().SetLostWarmups(0)
	}
}

// loseParams returns the run to the last reported checkpoint, which is durable, or to its initial
// parameters if there is none. Its members may all have crashed in the middle of an epoch.
func (s State) loseParams() {
	s.h().SetLostWarmups(0)
	params, round := s.h().ModelHash(), Round(0)
	if saved, ok := s.LastCheckpoint(); ok {
		params, round = saved.Params, s.Round()
	}
	if params == s.h().Params() {
		return // nothing older is known; a member may still bring them
	}
	s.h().SetParams(params)
	s.h().SetParamsRound(round)
	s.h().SetRollbacks(s.Rollbacks() + 1)
}

// advanceCooldown ends the epoch's last phase once the checkpoint is made or the time is over.
func (s State) advanceCooldown(env Env) bool {
	if !s.checkpointed() && !s.elapsed(env, s.h().CooldownMs()) {
		return false
	}
	s.standDown()
	switch {
	case s.Step() >= s.h().TotalSteps(), s.EndPending():
		s.finish(env)
	case s.PausePending():
		s.h().SetPausePending(false)
		s.enter(Paused, env)
	default:
		s.enter(WaitingForMembers, env)
	}
	return true
}

// beginEpoch makes the ready members active and opens the first round. It reports whether that is
// done: a closing divides the batch by speeds.
func (s State) beginEpoch(env Env, w *record.Meter) bool {
	for i := range s.Count() {
		b := s.place(i)
		if Status(b.Status()) == StatusReady {
			if s.waitsFirst(i) {
				b.SetSince(s.Round()) // its immunity begins now
			}
			putStatus(b, StatusActive)
		}
		b.SetSpeedSet(false)
	}
	s.h().SetLostWarmups(0)
	s.h().SetEpochSince(env.NowMs)
	s.h().SetEpochRound(s.Round() + 1)
	s.h().SetRepeats(0)
	s.open(env, 0)
	if !s.l.Speeds {
		return true
	}
	return s.endRound(s.begin(env, dividing), w)
}

// open opens the next round. If drain is not 0 the round is a drain round, and drain is the number
// of drain rounds left in the epoch, including this one.
func (s State) open(env Env, drain uint8) {
	number := s.Round() + 1
	r := s.slot(number)
	clear(r.bytes(0, s.l.Slot))
	s.h().SetRound(number)
	s.h().SetDrain(drain)
	s.h().SetTrainLimitMs(s.trainLimit())
	s.enter(RoundTrain, env)

	id, n := s.ID(), [4]byte{}
	binary.LittleEndian.PutUint32(n[:], uint32(number))
	seed := wire.Sum("entrain/round", env.Seed[:], id[:], n[:])
	r.b.SetNumber(number)
	r.b.SetEpoch(s.Epoch())
	r.b.SetOpenedMs(env.NowMs)
	r.b.SetSeed(seed)

	members, active := s.activeMembers(), r.active()
	for _, i := range members {
		setBit(active, i)
	}
	r.b.SetActiveLen(uint32(len(members)))
	if drain == 0 {
		s.fill(r, members)
	} else {
		r.b.SetFinal(true)
	}
	s.elect(r, members)
}

// A member that failed in the round before may be dead. Waiting RoundTrainMs for it in each round
// until it is dropped would cost the others dearly. So the round waits a small multiple of the time
// that the others last needed, plus a minimum that suffices for a live member.
const (
	patienceFactor = 4
	patienceMinMs  = 1000
)

// trainLimit returns the longest duration of the next RoundTrain in milliseconds.
func (s State) trainLimit() uint64 {
	limit := s.h().RoundTrainMs()
	pace := uint64(s.h().PaceMs())
	if pace == 0 {
		return limit
	}
	for i := range s.Count() {
		b := s.place(i)
		if Status(b.Status()) == StatusActive && (b.Missed() > 0 || b.Idle() > 0) {
			return min(limit, patienceFactor*pace+patienceMinMs)
		}
	}
	return limit
}

func (s State) activeMembers() []Member {
	list, n := make([]Member, s.Count()), 0
	for i := range s.Count() {
		if Status(s.place(i).Status()) == StatusActive {
			list[n] = i
			n++
		}
	}
	return list[:n]
}

// fill sets the batch of round r.
func (s State) fill(r RoundState, members []Member) {
	step := s.Step() + 1
	s.h().SetStep(step)
	total := s.batchSize()
	spans := s.takeSpans(total)
	r.b.SetStep(step)
	r.b.SetBatch(total)
	r.b.SetSpansLen(uint8(len(spans)))
	for i, v := range spans {
		putSpan(r.b.Span(uint32(i)), v)
	}
	n := uint32(len(members))
	r.b.SetExpectedLen(min(total, n))
	if total >= n {
		copy(r.expected(), r.active())
		return
	}
	// One sequence each.
	for _, i := range committee.Seat(r.Seed(), committee.Trainers, slices.Clone(members), total) {
		setBit(r.expected(), i)
	}
}

// batchSize returns the size of the next batch. It grows linearly with the tokens given out so far,
// from BatchStart to BatchEnd over BatchRampTokens, rounded down.
func (s State) batchSize() uint32 {
	start, end := s.h().BatchStart(), s.h().BatchEnd()
	ramp := s.h().BatchRampTokens()
	hi, tokens := bits.Mul64(s.DataIndex(), uint64(s.h().SequenceTokens()))
	if hi > 0 || tokens >= ramp {
		return end
	}
	hi, lo := bits.Mul64(uint64(end-start), tokens)
	grown, _ := bits.Div64(hi, lo, ramp) // below end - start, since tokens < ramp
	return start + uint32(grown)
}

// elect chooses round r's witnesses and the round that they attest. It changes the order of
// members.
func (s State) elect(r RoundState, members []Member) {
	n := uint32(len(members))
	w := uint32(s.h().Witnesses())
	if w == 0 {
		w = s.l.Witnesses
	}
	w = min(w, n)
	r.b.SetElectedLen(uint8(w))
	for p, i := range committee.Seat(r.Seed(), committee.Witnesses, members, w) {
		s.l.Elect(r.b, uint32(p)).SetMember(i)
	}
	a, ok := s.At(r.Number() - Round(s.h().Overlap()))
	if !ok || a.Final() {
		return // a drain round, or the run's first round
	}
	r.b.SetAttests(a.Number())
	if s.exchange() == Buckets {
		return
	}
	p := bloom.Size(a.ExpectedCount(), w, r.Quorum())
	if w*(p.Bits/8) > s.l.FiltersLen {
		panic("coordinator: filters larger than their space")
	}
	r.b.SetFilterBits(p.Bits)
	r.b.SetFilterHashes(p.Hashes)
}

// allReported reports whether every active witness of the current round has reported.
func (s State) allReported() bool {
	r := s.slot(s.Round())
	for p := range r.electedLen() {
		if !r.reported(p) && s.status(r.electedAt(p)) == StatusActive {
			return false
		}
	}
	return true
}
