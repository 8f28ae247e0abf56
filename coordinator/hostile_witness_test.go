package coordinator

import (
	"fmt"
	"testing"

	"github.com/entrain-network/entrain/bloom"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// committees is a run of n members whose w witnesses a round are drawn among them, in round 1. All results are checked. The
// last gang members collude.
func committees(t *testing.T, n uint32, w uint16, overlap uint8, mod func(*Config)) *player {
	t.Helper()
	c := trusting()
	c.Overlap, c.BatchStart, c.BatchEnd, c.StartMembers, c.MinMembers = overlap, n, n, n, 1
	c.EpochMs, c.TotalSteps = 20_000_000, 1000
	if mod != nil {
		mod(&c)
	}
	p := &player{w: newWorld(t, Limits{Members: n, Witnesses: w}, c, "committees")}
	for i := range n {
		p.must(p.w.applyWith(testKey(fmt.Sprint("player", i)), c.Stake, Join{}))
	}
	p.must(p.w.applyWith(key.Public{}, 100_000_000, Fund{}))
	p.resume()
	return p
}

// beginEpoch makes everybody ready, in Warmup.
func (p *player) beginEpoch() {
	p.w.t.Helper()
	params, _ := p.w.s.Params()
	for i := range p.w.s.Count() {
		if p.w.s.Status(i) == StatusWaiting && p.w.s.Phase() == Warmup {
			p.must(p.w.apply(p.w.s.Key(i), Ready{Epoch: p.w.s.Epoch(), Params: params}))
		}
	}
}

// resume brings the run to the next round that is open.
func (p *player) resume() {
	p.w.t.Helper()
	for p.w.s.Phase() != RoundTrain {
		p.w.now += p.w.config.WarmupMs
		p.must(p.w.apply(key.Public{}, Tick{}))
		p.beginEpoch()
	}
}

// round lets the elected witnesses report, each what twist makes of its honest report, or nothing if twist is false. Then the
// round's time passes. Open checks pass unseen, but for those that slow verifiers keep: these tests are about what is drawn.
func (p *player) round(twist func(i Member, m *Witness) bool) {
	p.w.t.Helper()
	w := p.w
	number := w.s.Round()
	r, _ := w.s.At(number)
	for range 2 { // complete reports at once, the others in RoundWitness
		for _, i := range r.Witnesses() {
			if w.s.Round() != number || w.s.Status(i) != StatusActive || r.Reported(i) {
				continue
			}
			m := w.report(i, w.heard)
			if twist == nil || twist(i, &m) {
				_ = w.apply(w.s.Key(i), m)
			}
		}
		if w.s.Round() == number && (w.s.Phase() == RoundTrain || w.s.Phase() == RoundWitness) {
			w.now = max(w.now, w.s.PhaseSince()+max(w.s.h().TrainLimitMs(), w.config.RoundWitnessMs))
			p.must(w.apply(key.Public{}, Tick{}))
		}
	}
	for k := range w.s.l.ChecksMax {
		if c := w.s.buffer().Check(k); p.slow == nil || c.Round() != 0 && !p.slow(c.Verifier()) {
			clear(c)
		}
	}
}

// A gang that keeps parameters from being agreed gains nothing by it: no result is accepted or paid that could not be checked.
func TestBlindWitnessesBlindNobody(t *testing.T) {
	ways := map[string]func(m *Witness){
		"none":    func(m *Witness) { m.Params = wire.Hash{} },
		"foreign": func(m *Witness) { m.Params = wire.Sum("nobody has these") },
	}
	for name, blind := range ways {
		for _, c := range []struct {
			n, w    uint32
			gang    Member
			overlap uint8
		}{{16, 16, 6, 0}, {16, 16, 6, 1}, {12, 3, 2, 0}, {30, 30, 11, 1}} {
			t.Run(fmt.Sprint(name, c), func(t *testing.T) {
				p := committees(t, c.n, uint16(c.w), c.overlap, nil)
				blinded := 0
				for range 40 {
					p.resume()
					r, _ := p.w.s.At(p.w.s.Round())
					k := uint32(0)
					for _, i := range r.Witnesses() {
						if i >= Member(c.n-uint32(c.gang)) {
							k++
						}
					}
					able := uint32(len(r.Witnesses()))-k < r.Quorum() && r.Number()%4 == 0
					if able {
						blinded++
					}
					p.round(func(i Member, m *Witness) bool {
						if able && i >= Member(c.n)-c.gang {
							blind(m)
						}
						return true
					})
				}
				drawn, _ := p.w.s.ChecksDrawn()
				if paid := p.w.s.PointsTotal(); blinded == 0 || paid == 0 || uint64(drawn) != paid {
					t.Errorf("of %d results that were paid %d were checked, all should be; %d rounds were to be blind", paid, drawn, blinded)
				}
			})
		}
	}
}

// Witnesses that name no parameters have not reported: in the end they are dropped, for a fee.
func TestNamingNoParametersIsSilence(t *testing.T) {
	p := committees(t, 16, 16, 1, nil)
	for range p.w.config.MissedMax + 1 {
		p.round(func(i Member, m *Witness) bool {
			if i >= 13 {
				m.Params = wire.Hash{}
			}
			return true
		})
	}
	for i := range p.w.s.Count() {
		if m := p.w.s.Member(i); (m.Status == StatusDropped) != (i >= 13) || (m.Stake < p.w.config.Stake) != (i >= 13) {
			t.Errorf("member %d is %v and has a stake of %d", i, m.Status, m.Stake)
		}
	}
}

// When hardly any witness is heard, nobody pays and nobody loses its place, however long it lasts. When at least half of them
// are heard, the silent ones are charged, although without a quorum: a gang cannot stop rounds for nothing.
func TestCutOffNobodyPays(t *testing.T) {
	for _, heard := range []Member{0, 7, 8, 10} {
		p := committees(t, 16, 16, 1, nil)
		p.round(nil)
		for p.w.s.Phase() == RoundTrain {
			p.round(func(i Member, _ *Witness) bool { return i < heard })
		}
		charged := 0
		for i := range p.w.s.Count() {
			if m := p.w.s.Member(i); m.Status != StatusActive || m.Stake != p.w.config.Stake || m.Idle+m.Missed+m.Skipped > 0 {
				charged++
			}
		}
		want := 0
		if heard >= 8 {
			want = int(16 - heard)
		}
		if charged != want {
			t.Errorf("with %d of 16 witnesses heard %d members were charged, not %d", heard, charged, want)
		}
	}
}

// A gang that is a quorum of a round's witnesses by luck names parameters that nobody has. It does not decide: nothing is
// agreed, no honest commitment is wrong on its face, and the round is not paid.
func TestAQuorumByLuckDecidesNothing(t *testing.T) {
	t.Parallel()
	const n, gang = 9, 3
	for overlap := range uint8(2) {
		p := committees(t, n, 3, overlap, nil)
		bogus := wire.Sum("nobody has these")
		captured, last := 0, Round(0)
		for p.w.s.Round() < 1000 {
			p.resume()
			r, _ := p.w.s.At(p.w.s.Round())
			all := r.Trains() && r.Number() > last+3
			for _, i := range r.Witnesses() {
				all = all && i >= n-gang
			}
			if all {
				captured, last = captured+1, r.Number()
			}
			drawn, _ := p.w.s.ChecksDrawn()
			p.round(func(_ Member, m *Witness) bool {
				if all {
					m.Params = bogus
				}
				return true
			})
			if after, _ := p.w.s.ChecksDrawn(); last > 0 && r.Number() == last+1 && after != drawn {
				t.Errorf("%d checks of a captured round were drawn", after-drawn)
			}
			if params, _ := p.w.s.Params(); params == bogus {
				t.Fatalf("bogus parameters are agreed in round %d", r.Number())
			}
		}
		if captured == 0 {
			t.Fatal("the gang never had all seats")
		}
		for i := range p.w.s.Count() {
			if m := p.w.s.Member(i); m.Stake != p.w.config.Stake || m.Status == StatusDropped || m.Status == StatusEjected {
				t.Errorf("after %d captured rounds member %d is %v with a stake of %d", captured, i, m.Status, m.Stake)
			}
		}
	}
}

// A witness that names other parameters than it held in the round before is charged, even when it prevents an agreement: most
// of its fellows contradict it. This holds for Params and Prev alike.
func TestWhoPreventsAgreementPays(t *testing.T) {
	for name, lie := range map[string]func(m *Witness){
		"params": func(m *Witness) { m.Params = wire.Sum("nobody has these") },
		"prev":   func(m *Witness) { m.Prev = wire.Sum("nobody had these") },
		"both":   func(m *Witness) { m.Params, m.Prev = wire.Sum("nobody has these"), wire.Sum("nobody had these") },
	} {
		p := committees(t, 16, 16, 1, nil)
		for range 5 {
			p.resume()
			p.round(func(i Member, m *Witness) bool {
				if i >= 10 {
					lie(m)
				}
				return true
			})
		}
		for i := range p.w.s.Count() {
			if m := p.w.s.Member(i); (m.Stake < p.w.config.Stake) != (i >= 10) {
				t.Errorf("%s: member %d is %v with a stake of %d and %d astray", name, i, m.Status, m.Stake, m.Astray)
			}
		}
	}
}

// With Overlap 1, what is trained after a round without agreed parameters begins from states that were not accepted, and no witness
// holds it. Nobody pays for that; but for results that nobody holds after an agreed round everybody does.
func TestNobodyMissesASeveredRound(t *testing.T) {
	for _, blinded := range []bool{true, false} {
		p := committees(t, 12, 5, 1, nil)
		for number := Round(1); number <= 5; number++ {
			p.round(func(_ Member, m *Witness) bool {
				switch {
				case number == 3 && blinded:
					m.Params = wire.Sum("nobody has these", []byte{byte(len(p.w.log))})
				case number == 5: // about round 4
					m.Held, m.Commitments, m.Complete = nil, bloom.New(mustRound(p.w.s, number).Filter()), blinded
				}
				return true
			})
		}
		missed := 0
		for i := range p.w.s.Count() {
			missed += int(p.w.s.Member(i).Missed)
		}
		if (missed == 0) != blinded || mustRound(p.w.s, 4).AcceptedCount() > 0 {
			t.Errorf("blinded %v: %d members missed round 4", blinded, missed)
		}
	}
}

func mustRound(s State, number Round) RoundState {
	r, ok := s.At(number)
	if !ok {
		panic("the round is gone")
	}
	return r
}

// Leaving and joining again wipes no count: a member that is about to be dropped for a fee still is.
func TestLeavingWipesNoCounts(t *testing.T) {
	p := committees(t, 4, 4, 1, func(c *Config) { c.EpochMs = c.RoundTrainMs })
	b := p.w.s.place(3)
	b.SetMissed(3)
	b.SetIdle(2)
	b.SetSkipped(1)
	b.SetAstray(1)
	p.must(p.w.apply(p.w.s.Key(3), Withdraw{}))
	p.must(p.w.apply(p.w.s.Key(3), Join{}))
	if m := p.w.s.Member(3); m.Missed != 3 || m.Idle != 2 || m.Skipped != 1 || m.Astray != 1 {
		t.Errorf("after it came back the member has %+v", m)
	}
}

// A member that is silent three rounds of four is soon dropped for a fee, though it works in between.
func TestAStuttererIsDropped(t *testing.T) {
	p := committees(t, 16, 16, 1, nil)
	for range 8 {
		number := p.w.s.Round()
		p.w.silent[15] = (number-1)%4 != 0 // the results of the round before are reported
		p.round(func(i Member, _ *Witness) bool { return i != 15 || number%4 == 0 })
	}
	if m := p.w.s.Member(15); m.Status != StatusDropped || m.Stake == p.w.config.Stake {
		t.Errorf("it is %v with %d missed and a stake of %d", m.Status, m.Missed, m.Stake)
	}
}

// False reports of withholding, which cost a skip each, leave half of the places for accusations.
func TestFalseUnservedLeavesPlacesForAccusations(t *testing.T) {
	w := arena(t, 64, 64, trusting())
	checks := w.s.Checks()
	if len(checks) < 24 {
		t.Fatalf("%d checks are drawn", len(checks))
	}
	opened, busy := 0, 0
	for _, c := range checks[:20] {
		switch err := w.apply(w.s.Key(c.Verifier), Unserved{Round: c.Round, Member: c.Member}); err {
		case nil:
			opened++
		case ErrBusy:
			busy++
		default:
			t.Fatal(err)
		}
	}
	c := checks[20]
	honest := compute(w.caseOf(c), nil)
	liar := compute(w.caseOf(c), func(_, _, _ uint32, words []uint32) []uint32 { words[0] ^= 1; return words })
	liar.result.Payload = wire.Sum("junk")
	liar.end(dispute.Outcome(liar.result))
	if err := w.apply(w.s.Key(c.Verifier), Accuse{Round: c.Round, Member: c.Member, Commitment: w.sign(liar.result), Trace: honest.blind(w.s.Key(c.Verifier))}); err != nil {
		t.Errorf("with %d false reports open and %d refused, an accusation: %v", opened, busy, err)
	}
}

// A member that withholds what a check needs pays a fee for it, and one check that passes does not make up for it.
func TestAStrikeCostsAndLasts(t *testing.T) {
	w := arena(t, 6, 2, trusting())
	p := &player{w: w}
	c := w.s.Checks()[0]
	p.must(w.apply(w.s.Key(c.Verifier), Unserved{Round: c.Round, Member: c.Member}))
	d, _ := w.s.Dispute(w.s.DisputesTotal())
	for _, v := range d.TieBreakers {
		p.must(w.apply(w.s.Key(v.Member), TieBreak{Dispute: d.ID, Vote: dispute.VoteUnserved}))
	}
	m := w.s.Member(c.Member)
	if m.Strikes != 1 || m.Status != StatusDropped || m.Stake >= w.config.Stake {
		t.Errorf("after a strike: %+v", m)
	}
}

// Verifiers that give their verdicts at the last moment, as they may, do not take the places of the checks to come.
func TestSlowVerifiersLeavePlacesForChecks(t *testing.T) {
	const n, rounds = 128, 60
	p := committees(t, n, 4, 1, func(c *Config) {
		c.VerificationPercent, c.VerifyMs, c.UnbondMs = 10, 10_000_000, 10_000_000
	})
	p.slow = func(i Member) bool { return i >= n-n/4 }
	middle := uint32(0)
	for r := range rounds {
		if p.round(nil); r == rounds/2-1 {
			middle, _ = p.w.s.ChecksDrawn()
		}
	}
	all, _ := p.w.s.ChecksDrawn()
	if want := uint32(rounds / 2 * n / 10); all-middle < want*3/4 {
		t.Errorf("%d checks are drawn in the first %d rounds, and %d in as many later ones, of some %d", middle, rounds/2, all-middle, want)
	}
}
