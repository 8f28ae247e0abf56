package coordinator

import (
	"encoding/binary"
	"math/bits"

	"github.com/entrain-network/entrain/bloom"
	"github.com/entrain-network/entrain/committee"
	"github.com/entrain-network/entrain/wire"
)

// advance makes the one transition that is due, and tells whether there was one.
func (s State) advance(env Env) bool {
	switch s.Phase() {
	case WaitingForMembers:
		return s.advanceWaiting(env)
	case Warmup:
		return s.advanceWarmup(env)
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
		s.endRound(env)
		return true
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

// advanceWarmup opens the first round when everybody who was there at the warmup's begin is ready. Who joins during the
// warmup may take part but is not waited for, so newcomers cannot hold up the others. When the time is over it goes on with
// those who are ready, if they are enough; being late counts as a miss.
func (s State) advanceWarmup(env Env) bool {
	t := s.tally()
	least := s.h().MinMembers()
	switch {
	case t.present < least:
		s.standDown()
		s.enter(WaitingForMembers, env)
		return true
	case t.unready == 0 && t.ready >= least:
		s.beginEpoch(env)
		return true
	case !s.elapsed(env, s.h().WarmupMs()):
		return false
	}
	since := s.PhaseSince()
	for i := range s.Count() {
		b := s.place(i)
		if Status(b.Status()) == StatusWaiting && b.JoinedMs() <= since {
			s.miss(i, env)
		}
	}
	if t.ready >= least {
		s.beginEpoch(env)
		return true
	}
	if t.ready == 0 {
		s.loseWarmup()
	} else {
		s.h().SetLostWarmups(0)
	}
	s.standDown()
	s.enter(WaitingForMembers, env)
	return true
}

// lostWarmupsMax is how many warmups in a row may end with nobody ready before the run goes back to its last checkpoint.
const lostWarmupsMax = 3

// loseWarmup counts a warmup at whose end nobody held the agreed parameters. After a few in a row they are taken to be lost, as
// when all members crash at once in the middle of an epoch: the run goes back to the checkpoint reported last, which was
// written to last, or to its initial parameters if there never was one.
func (s State) loseWarmup() {
	lost := s.h().LostWarmups() + 1
	if lost < lostWarmupsMax {
		s.h().SetLostWarmups(lost)
		return
	}
	s.h().SetLostWarmups(0)
	params, round := s.h().ModelHash(), uint32(0)
	if saved, ok := s.LastCheckpoint(); ok {
		params, round = saved.Params, s.Round()
	}
	if params == s.h().Params() {
		return // nothing older is known; somebody may still bring them
	}
	s.h().SetParams(params)
	s.h().SetParamsRound(round)
	s.h().SetRollbacks(s.Rollbacks() + 1)
}

// advanceCooldown ends the epoch's last phase once its checkpoint was reported.
func (s State) advanceCooldown(env Env) bool {
	saved := s.h().HasCheckpoint() && s.h().CheckpointEpoch() == s.Epoch()
	if !saved && !s.elapsed(env, s.h().CooldownMs()) {
		return false
	}
	s.standDown()
	switch {
	case s.Step() >= s.h().TotalSteps():
		s.h().SetPausePending(false)
		s.enter(Finished, env)
	case s.PausePending():
		s.h().SetPausePending(false)
		s.enter(Paused, env)
	default:
		s.enter(WaitingForMembers, env)
	}
	return true
}

// beginEpoch makes those who are ready active and opens the first round.
func (s State) beginEpoch(env Env) {
	for i := range s.Count() {
		b := s.place(i)
		if Status(b.Status()) == StatusReady {
			if s.waitsFirst(i) {
				b.SetSince(s.Round()) // its time begins now
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
}

// open opens the next round: a drain round if drain, the number of drain rounds from this one to the epoch's end, is not 0.
func (s State) open(env Env, drain uint8) {
	number := s.Round() + 1
	r := s.slot(number)
	clear(r.bytes(0, s.l.Slot))
	s.h().SetRound(number)
	s.h().SetDrain(drain)
	s.h().SetTrainLimitMs(s.trainLimit())
	s.enter(RoundTrain, env)

	id, n := s.ID(), [4]byte{}
	binary.LittleEndian.PutUint32(n[:], number)
	seed := wire.Sum("entrain/round", env.Seed[:], id[:], n[:])
	r.b.SetNumber(number)
	r.b.SetEpoch(s.Epoch())
	r.b.SetOpenedMs(env.NowMs)
	r.b.SetSeed(seed)

	members := s.activeMembers()
	for _, i := range members {
		setBit(r.active(), i)
	}
	r.b.SetActiveLen(uint32(len(members)))
	if drain == 0 {
		s.fill(r, members)
	} else {
		r.b.SetFinal(true)
	}
	s.elect(r, members)
}

// A member that failed in the round before may be dead, and waiting RoundTrainMs for it again and again until it is dropped
// would cost the others dearly. It is waited for a few times as long as the others needed last, and at least a moment, which
// is enough for one that lives.
const (
	patienceFactor = 4
	patienceMinMs  = 1000
)

// trainLimit returns how long the next RoundTrain may last.
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

func (s State) activeMembers() []uint32 {
	list := make([]uint32, 0, s.Count())
	for i := range s.Count() {
		if s.status(i) == StatusActive {
			list = append(list, i)
		}
	}
	return list
}

// fill gives round r its batch.
func (s State) fill(r Round, members []uint32) {
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
	r.setSpeeds(members)
	n := uint32(len(members))
	r.b.SetExpectedLen(min(total, n))
	if total >= n {
		copy(r.expected(), r.active())
		return
	}
	for rank, p := range committee.Positions(r.Seed(), committee.Trainers, n) {
		if p < total { // shares of one sequence, then none
			setBit(r.expected(), members[rank])
		}
	}
}

// batchSize returns the size of the next batch: on the straight line from BatchStart to BatchEnd over BatchRampTokens,
// rounded down, by the tokens given out so far.
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

// elect chooses round r's witnesses, and what they report about.
func (s State) elect(r Round, members []uint32) {
	n := uint32(len(members))
	w := uint32(s.h().Witnesses())
	if w == 0 {
		w = s.l.Witnesses
	}
	w = min(w, n)
	r.b.SetElectedLen(uint8(w))
	for p := range w {
		rank := committee.Member(r.Seed(), committee.Witnesses, n, p)
		s.l.Elect(r.b, p).SetMember(members[rank])
	}
	a, ok := s.At(r.Number() - uint32(s.h().Overlap()))
	if !ok || a.Final() {
		return // a drain round, or the first round of all
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

// allReported tells whether every witness of the current round that is still active has reported, so that there is nobody
// to wait for.
func (s State) allReported() bool {
	r := s.slot(s.Round())
	for p := range r.electedLen() {
		if !r.reported(p) && s.status(r.electedAt(p)) == StatusActive {
			return false
		}
	}
	return true
}
