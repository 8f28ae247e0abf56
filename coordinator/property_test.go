package coordinator

import (
	"fmt"
	"testing"

	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/wire"
	"pgregory.net/rapid"
)

// TestRandomMessages drives runs of many shapes with random messages of honest, careless and hostile senders, at random
// times. world.apply checks the invariants after each: refused messages leave the bytes unchanged, points are conserved,
// nothing is accepted twice, every sequence is accounted for, and the state opens again. In the end the log is replayed to
// the same hash, and time alone must bring the run to rest.
//
// The shape of a run is drawn by rapid, which shrinks it; the moves come from a seed, since rapid's own draws favour small
// numbers, that is, the first kinds of moves.
func TestRandomMessages(t *testing.T) {
	t.Parallel()
	var saw seen
	for range 5 { // what is rarest happens in nearly all hundreds of runs, not in all
		if randomMessages(t, &saw); saw == (seen{true, true, true, true, true, true, true, true, true, true, true, true, true, true}) {
			return
		}
	}
	t.Errorf("the random runs are too tame: %+v", saw)
}

func randomMessages(t *testing.T, saw *seen) {
	const moves = 250
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		p := &player{src: prng.New(wire.Sum("test/moves", wire.AppendU64(nil, seed)), "moves"), diverged: map[Member]bool{}, crooked: map[key.Public]bool{}, fickle: true}
		l := p.limits()
		p.w = newWorld(rt, l, p.config(l), fmt.Sprint(seed))
		if p.chance(80) {
			p.must(p.w.applyWith(p.anybody(), 10_000, Fund{}))
		}
		for range moves {
			p.move()
		}
		saw.add(p.w.s)
		p.w.replay()
		p.w.settle()
	})
}

// seen is what random runs must have brought about to be worth anything.
type seen struct {
	finished, retired, rollback, redone, dropped, passed, convicted, disputed, claimed bool
	committed, rewarded, penalised, replaced, distrusted                               bool
}

func (v *seen) add(s State) {
	v.finished = v.finished || s.Phase() == Finished
	v.retired = v.retired || s.PointsRetired() > 0
	v.rollback = v.rollback || s.Rollbacks() > 0
	v.redone = v.redone || s.PointsTotal() > 0 && len(s.Redo()) > 0
	_, passed := s.ChecksDrawn()
	v.passed = v.passed || passed > 0
	v.convicted = v.convicted || s.ConvictionsTotal() > 0
	v.disputed = v.disputed || s.DisputesTotal() > 0
	v.addScores(s)
	for i := range s.Count() {
		v.dropped = v.dropped || s.Status(i) == StatusDropped
		v.claimed = v.claimed || s.Member(i).Claimed > 0
	}
}

// limits draws limits, mostly small.
func (p *player) limits() Limits {
	sizes := []uint32{1, 2, 3, 5, 8, 12, 12, 65, 256}
	l := Limits{Members: sizes[p.below(uint32(len(sizes)))], Witnesses: uint16(1 + p.below(8))}
	p.scoreLimits(&l)
	return l
}

// config draws a configuration.
func (p *player) config(l Limits) Config {
	c := testConfig()
	c.MinMembers = 1 + p.below(min(3, l.Members))
	c.StartMembers = c.MinMembers + p.below(min(5, l.Members)-c.MinMembers+1)
	c.Witnesses = uint16(p.below(uint32(l.Witnesses) + 1))
	c.WaitingMs = uint64(p.below(3)) * 10_000
	c.EpochMs = []uint64{30_000, 60_000, 600_000}[p.below(3)]
	c.TotalSteps = 1 + Step(p.below(40))
	c.BatchStart = 1 + p.below(9)
	c.BatchEnd = c.BatchStart + p.below(10)
	c.BatchRampTokens = uint64(p.below(1000))
	c.Overlap = uint8(p.below(2))
	c.MissedMax = uint8(p.below(4))
	p.trustIn(&c)
	p.scoresIn(&c, l)
	return c
}

// player makes moves in a world.
type player struct {
	src      prng.Source
	w        *world
	diverged map[Member]bool // members whose replicas went astray: they name wrong parameters
	crooked  map[key.Public]bool
	traces   map[cased]*trace
	promised map[key.Public]RevealScores // what validators committed to
	fickle   bool                        // what members' work is worth changes all the time
	slow     func(Member) bool           // verifiers that give no verdict in time for the rounds that round plays; nil: none
}

// below draws a number below n.
func (p *player) below(n uint32) uint32 { return uint32(p.src.Uint64n(uint64(n))) }

func (p *player) chance(percent uint32) bool { return p.below(100) < percent }

// anybody draws a key: of a member or of one of a few outsiders.
func (p *player) anybody() key.Public {
	return testKey(fmt.Sprint("player", p.below(min(p.w.limits.Members, 12)+3)))
}

func (p *player) move() {
	w := p.w
	switch n := p.below(100); {
	case n < 40:
		p.honest()
	case n < 58:
		p.trust(false) // who is honest is never late
		w.now += []uint64{0, 1, 999, 5_000, 30_000, 600_000}[p.below(6)]
		w.block += uint64(p.below(30))
		p.must(w.apply(key.Public{}, Tick{}))
	case n < 70:
		_ = w.applyWith(p.anybody(), p.tokens(), Join{Speed: p.speed()})
		_ = w.apply(p.anybody(), SetSpeed{Speed: p.speed()})
	case n < 73:
		_ = w.apply(p.anybody(), Withdraw{})
	case n < 77:
		p.silence()
	case n < 80:
		_ = w.apply(p.anybody(), p.hostile())
	case n < 86:
		p.trust(true)
		p.scores(true)
	case n < 88:
		p.spend()
		p.seats()
	case n < 92:
		p.careless()
	case n < 94:
		_ = w.apply(w.config.Owner, Pause{})
	case n < 97:
		_ = w.apply(w.config.Owner, Resume{})
	default:
		params, _ := w.s.Params()
		_ = w.apply(p.anybody(), Checkpoint{Epoch: w.s.Epoch(), Params: params, Manifest: wire.Sum("test/manifest")})
	}
}

// speed draws how fast a member says it is: mostly something usual, now and then nothing, or all there is.
func (p *player) speed() uint32 {
	return []uint32{0, 1, 1<<32 - 1, 500 + p.below(2000), 500 + p.below(2000), 500 + p.below(2000)}[p.below(6)]
}

func (p *player) must(err error) {
	p.w.t.Helper()
	if err != nil {
		p.w.t.Fatalf("an honest message was refused: %v", err)
	}
}

// silence makes a member silent or its replica go astray, or the contrary.
func (p *player) silence() {
	n := uint32(p.w.s.Count())
	if n == 0 {
		return
	}
	which := p.w.silent
	if p.chance(30) {
		which = p.diverged
	}
	i := p.below(n)
	which[Member(i)] = !which[Member(i)]
}

// honest lets everybody do what the phase asks for. Members that are not silent do it right, and are never refused.
func (p *player) honest() {
	w := p.w
	p.trust(false)
	p.scores(false)
	switch w.s.Phase() {
	case WaitingForMembers:
		_ = w.applyWith(p.anybody(), w.config.Stake+w.config.RegisterCost, Join{})
		p.trust(false)
		w.now += w.config.WaitingMs
		p.must(w.apply(key.Public{}, Tick{}))
	case Warmup:
		params, _ := w.s.Params()
		for i := range w.s.Count() {
			if w.s.Phase() == Warmup && w.s.Status(i) == StatusWaiting && !w.silent[i] {
				p.must(w.apply(w.s.Key(i), Ready{Epoch: w.s.Epoch(), Params: params}))
			}
		}
	case RoundTrain, RoundWitness:
		if w.config.Exchange == Buckets && w.s.Phase() == RoundTrain {
			w.commitAll()
		}
		p.reports(w.s.Round())
		p.blocks()
	case Cooldown:
		params, _ := w.s.Params()
		for _, i := range w.s.Checkpointers() {
			if w.s.Phase() == Cooldown && w.s.Status(i).Present() {
				_ = w.apply(w.s.Key(i), Checkpoint{Epoch: w.s.Epoch(), Params: params, Manifest: wire.Sum("test/manifest")})
			}
		}
	case Paused:
		p.must(w.apply(w.config.Owner, Resume{}))
	}
}

func (p *player) reports(number Round) {
	w := p.w
	r, _ := w.s.At(number)
	for _, i := range r.Witnesses() {
		phase := w.s.Phase()
		if w.s.Round() != number || phase != RoundTrain && phase != RoundWitness {
			return
		}
		if r.Reported(i) || w.silent[i] || w.s.Status(i) != StatusActive {
			continue
		}
		m := w.report(i, w.heard)
		if p.diverged[i] {
			m.Params = wire.Sum("test/diverged", w.s.Bytes()[:4])
		}
		if phase == RoundTrain && !m.Complete {
			continue
		}
		p.must(w.apply(w.s.Key(i), m))
	}
}

// careless sends a well-formed report or ready that lacks something or is wrong about something.
func (p *player) careless() {
	w := p.w
	i, ok := w.s.Find(p.anybody())
	if !ok {
		return
	}
	if w.s.Phase() == Warmup {
		_ = w.apply(w.s.Key(i), Ready{Epoch: w.s.Epoch(), Params: wire.Sum("test/wrong")})
		return
	}
	m := w.report(i, func(Member) bool { return p.chance(70) })
	if p.chance(30) {
		m.Params = wire.Hash{}
	}
	_ = w.apply(w.s.Key(i), m)
}

// hostile makes a message of random content.
func (p *player) hostile() Message {
	some := func(n uint32) []byte {
		b := make([]byte, p.below(n))
		for i := range b {
			b[i] = uint8(p.src.Uint64())
		}
		return b
	}
	switch p.below(6) {
	case 0:
		return nil
	case 4:
		return p.rubbish(some)
	case 5:
		return p.nonsense()
	case 1:
		return Ready{Epoch: p.w.s.Epoch()}
	case 2:
		return Checkpoint{Epoch: p.w.s.Epoch()}
	}
	m := Witness{Round: p.w.s.Round(), Complete: p.chance(50), Held: some(40), Commitments: some(80)}
	if r, ok := p.w.s.At(m.Round); ok && p.chance(50) {
		m.Commitments = make([]byte, r.Filter().Bytes())
	}
	return m
}

// settle lets only time pass, as if everybody were gone. Each tick after the phase's time must move the run, until it waits
// for members, is paused or finished.
func (w *world) settle() {
	w.t.Helper()
	for n := 0; ; n++ {
		s := w.s
		phase, round, epoch, window := s.Phase(), s.Round(), s.Epoch(), s.Window()
		if phase == Finished && !s.book().Due() || phase == Paused || phase == WaitingForMembers && s.Present() < w.config.StartMembers {
			return
		}
		if n > 2000 {
			w.t.Fatalf("run does not come to rest; %v, epoch %d, round %d", phase, epoch, round)
		}
		w.now += DurationMsMax
		w.block += WindowBlocksMax
		settled := s.book().Settled()
		if err := w.apply(key.Public{}, Tick{}); err != nil {
			w.t.Fatal(err)
		}
		if w.s.Phase() == phase && w.s.Round() == round && w.s.Epoch() == epoch && w.s.Window() == window && w.s.book().Settled() == settled {
			w.t.Fatalf("%v sticks in epoch %d, round %d: time is over, and nothing happened", phase, epoch, round)
		}
	}
}

// TestRunFinishes drives honest members through whole runs of many shapes: every one finishes, all that was given out
// is accepted, nobody is ever charged with anything, and the parameters agreed last are those the members hold.
func TestRunFinishes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		p := &player{src: prng.New(wire.Sum("test/honest", wire.AppendU64(nil, seed)), "honest")}
		l := p.limits()
		c := p.config(l)
		w := newWorld(rt, l, c, fmt.Sprint(seed))
		p.w = w
		most := min(l.Members, 12)
		if c.Slots > 0 {
			most = min(most, c.Slots)
		}
		members := c.StartMembers + p.below(most-c.StartMembers+1)
		for i := range members {
			p.must(w.applyWith(testKey(fmt.Sprint("player", i)), c.Stake+c.RegisterCost, Join{}))
		}
		for k := range uint32(c.Validators) {
			p.must(w.applyWith(testKey(fmt.Sprint("validator", k)), max(1, c.Stake)+uint64(k), RegisterValidator{}))
		}
		if c.Emission > 0 {
			p.must(w.applyWith(testKey("player0"), 100*c.Emission, Fund{}))
		}
		for n := 0; w.s.Phase() != Finished; n++ {
			if n > 1000 {
				rt.Fatalf("run does not finish: %v, step %d of %d", w.s.Phase(), w.s.Step(), c.TotalSteps)
			}
			if w.s.Phase() == WaitingForMembers {
				w.now += c.WaitingMs
				p.must(w.apply(key.Public{}, Tick{}))
			}
			p.trust(false)
			w.now += 1000
			p.honest()
		}
		for i := range Member(members) {
			if m := w.s.Member(i); m.Missed+m.Idle+m.Skipped+m.Astray+m.Strikes > 0 || m.Doubt > dispute.DoubtNew || m.Stake != c.Stake || m.Status != StatusWaiting {
				rt.Fatalf("honest member %d ends as %+v", i, m)
			}
		}
		if w.s.PointsTotal()-w.s.PointsVerified() != w.s.DataIndex() || w.s.DisputesTotal() > 0 || w.s.ConvictionsTotal() > 0 || w.s.Rollbacks() > 0 {
			rt.Fatalf("accepted %d of %d sequences, %d rollbacks", w.s.PointsTotal(), w.s.DataIndex(), w.s.Rollbacks())
		}
		if hash, round := w.s.Params(); hash != w.theta[round] || round != w.s.Round()-1 {
			rt.Fatalf("agreed parameters %v of round %d; members hold %v in round %d", hash, round, w.theta[round], w.s.Round())
		}
		p.finishScores(members)
		w.replay()
	})
}

// TestDeadMembersAreDropped has one member in each run fall silent for ever; the run must drop it and finish with the others.
func TestDeadMembersAreDropped(t *testing.T) {
	for _, overlap := range []uint8{0, 1} {
		c := testConfig()
		c.Overlap, c.TotalSteps, c.MissedMax = overlap, 12, 2
		w := newWorld(t, Limits{Members: 8, Witnesses: 8}, c, "dead")
		names := []string{"ann", "bob", "cat", "dan", "eve"}
		for _, name := range names {
			if err := w.apply(testKey(name), Join{}); err != nil {
				t.Fatal(err)
			}
		}
		p := &player{w: w}
		for n := 0; w.s.Phase() != Finished; n++ {
			if n > 300 {
				t.Fatalf("overlap %d: run does not finish: %v step %d", overlap, w.s.Phase(), w.s.Step())
			}
			if w.s.Step() == 3 {
				w.silent[4] = true
			}
			if w.s.Phase() != WaitingForMembers {
				p.honest()
			}
			w.now += 5000
			if err := w.apply(key.Public{}, Tick{}); err != nil {
				t.Fatal(err)
			}
		}
		eve := w.s.Member(4)
		if eve.Status != StatusDropped || eve.Missed != c.MissedMax+1 {
			t.Errorf("overlap %d: the dead member ends as %+v", overlap, eve)
		}
		for i := range Member(4) {
			if m := w.s.Member(i); m.Status != StatusWaiting || m.Missed > 0 {
				t.Errorf("overlap %d: member %d ends as %+v", overlap, i, m)
			}
		}
		w.replay()
	}
}
