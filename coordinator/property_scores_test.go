package coordinator

import (
	"fmt"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/coordinator/dispute"

	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/coordinator/score"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/wire"
)

// scoreLimits makes room for validators in most of the runs, and for windows in some.
func (p *player) scoreLimits(l *Limits) {
	if p.chance(80) {
		l.Validators = uint16(1 + p.below(5))
	}
	l.Buckets, l.Speeds = p.chance(35), p.chance(50)
}

// scoresIn configures windows, validators and slots, as far as the limits allow.
func (p *player) scoresIn(c *Config, l Limits) {
	if l.Buckets {
		c.Exchange, c.WindowBlocks, c.Overlap = Buckets, 1+p.below(40), 1
	}
	if l.Speeds {
		c.Sharing = SpeedShares
	}
	if p.chance(40) {
		c.RegisterCost = uint64(p.below(20))
	}
	if p.chance(50) {
		c.Slots = min(l.Members, c.StartMembers+p.below(5))
	}
	if c.Validators = uint16(p.below(uint32(l.Validators) + 1)); c.Validators == 0 {
		return
	}
	c.ScoreWindows = 2 + p.below(3)
	c.Emission = uint64(p.below(300))
	c.ValidatorPercent, c.Penalty = uint8(p.below(101)), uint8(p.below(101))
	c.ImmuneWindows = p.below(4)
}

// blocks lets the ledger grow by a window, where rounds are windows.
func (p *player) blocks() {
	if w := p.w; w.config.Exchange == Buckets && w.s.Phase() == RoundTrain {
		w.block += uint64(w.config.WindowBlocks)
		p.must(w.apply(key.Public{}, Tick{}))
	}
}

// truth is what the work of a member is worth: it depends on who it is.
func truth(k key.Public) int16 { return int16(score.One/2) - int16(k[3])*(score.One/256) }

// opinions is what a validator says of the members with accepted results in a period.
func (p *player) opinions(period uint32, of func(key.Public) int16) RevealScores {
	m := RevealScores{Period: period, Salt: wire.Sum("test/salt", wire.AppendU32(nil, period))}
	list, _ := p.w.s.Scores(period)
	for _, v := range list.Members {
		m.Scores = append(m.Scores, score.Score{Member: v.Member, Value: of(p.w.s.Key(v.Member))})
	}
	return m
}

// scores lets validators commit and reveal. The honest say the truth, commit when nothing more can come to the period, and are
// never refused; crooks do as they like.
func (p *player) scores(crooks bool) {
	w := p.w
	period, stage := w.s.Scoring()
	if stage == score.StageNone {
		return
	}
	if p.promised == nil {
		p.promised = map[key.Public]RevealScores{}
	}
	honest := truth
	if p.fickle && period%2 == 0 {
		honest = func(k key.Public) int16 { return -truth(k) }
	}
	list, _ := w.s.Scores(period)
	for _, v := range w.s.Validators() {
		k := slices.IndexFunc(list.Validators, func(said score.ValidatorScores) bool { return said.Key == v.Key })
		committed, revealed := k >= 0, k >= 0 && list.Validators[k].Revealed
		of := honest
		if p.crook(v.Key) {
			if !crooks || p.chance(30) {
				continue
			}
			of = func(key.Public) int16 { return int16(p.below(2*score.One+1)) - score.One }
		}
		switch {
		case stage == score.StageCommit && !committed && w.s.MayScore(v.Key, period):
			m := p.opinions(period, of)
			p.must(w.apply(v.Key, CommitScores{Period: period, Hash: ScoresHash(w.s.ID(), v.Key, m)}))
			p.promised[v.Key] = m
		case stage == score.StageReveal && committed && !revealed && p.promised[v.Key].Period == period:
			m := p.promised[v.Key]
			if p.crook(v.Key) && p.chance(20) {
				m.Salt = wire.Hash{}
				_ = w.apply(v.Key, m)
				continue
			}
			p.must(w.apply(v.Key, m))
		}
	}
}

// seats lets somebody take, raise or leave a seat of a validator.
func (p *player) seats() {
	if p.chance(80) {
		_ = p.w.applyWith(p.anybody(), p.tokens()*uint64(1+p.below(3)), RegisterValidator{Payee: []key.Public{{}, p.anybody()}[p.below(2)]})
		return
	}
	_ = p.w.apply(p.anybody(), RetireValidator{})
}

// nonsense makes a message about windows or scores that hardly fits.
func (p *player) nonsense() Message {
	s := p.w.s
	switch p.below(5) {
	case 0:
		c := dispute.Commitment{Run: s.ID(), Epoch: s.Epoch(), Round: s.Round(), Member: Member(p.below(uint32(s.Count()) + 1))}
		m := Commit{Signed: dispute.Signed{Commitment: c}}
		if k, ok := known(p.anybody()); ok {
			m.Signed = c.Sign(k)
		}
		return m
	case 1:
		return RegisterValidator{}
	case 2:
		return RetireValidator{}
	case 3:
		period, _ := s.Scoring()
		return CommitScores{Period: period - p.below(2), Hash: wire.Hash{uint8(p.below(2))}}
	}
	period, _ := s.Scoring()
	m := RevealScores{Period: period}
	for range p.below(4) {
		m.Scores = append(m.Scores, score.Score{Member: Member(p.below(9)), Value: int16(p.below(1 << 16))})
	}
	return m
}

func (v *seen) addScores(s State) {
	given, taken := s.Emitted()
	v.rewarded, v.penalised = v.rewarded || given > 0, v.penalised || taken > 0
	for i := range s.Count() {
		v.replaced = v.replaced || s.Status(i) == StatusReplaced
	}
	for _, w := range s.Validators() {
		v.distrusted = v.distrusted || w.Trust < score.TrustNew/2
	}
	for k := range Round(record.RingRounds) {
		v.committed = v.committed || s.slot(k).CommittedCount() > 0
	}
}

// finishScores lets the periods that are left be scored, and checks what honest members and validators have at the end of a run
// in which all were honest: their scores are the truth, all that was emitted is theirs, and nobody lost trust.
func (p *player) finishScores(members uint32) {
	w := p.w
	for n := 0; w.s.book().Due(); n++ {
		if n > 100 {
			w.t.Fatalf("period %d is never settled", w.s.book().Settled()+1)
		}
		p.scores(false)
		w.now += w.config.RoundTrainMs
		w.block += uint64(w.config.WindowBlocks)
		p.must(w.apply(key.Public{}, Tick{}))
	}
	if w.config.Validators == 0 {
		return
	}
	given, taken := w.s.Emitted()
	earned, good := uint64(0), false
	for i := range Member(members) {
		m := w.s.Member(i)
		earned += m.Earned
		good = good || truth(m.Key) > 0 && m.Points > 0
		// The moving average rounds, by less than half a unit a period.
		if d := int(m.Score) - int(truth(m.Key)); m.Scored && (d < -4 || d > 4) || m.Unvested > 0 {
			w.t.Fatalf("member %d is worth %d and ends as %+v", i, truth(m.Key), m)
		}
		if truth(m.Key) <= 0 && m.Earned > 0 {
			w.t.Fatalf("member %d earned %d for a score of %d", i, m.Earned, truth(m.Key))
		}
	}
	for _, v := range w.s.Validators() {
		earned += v.Earned
		if v.Trust < score.TrustNew {
			w.t.Fatalf("honest validator ends as %+v", v)
		}
	}
	periods := uint64(w.s.book().Settled())
	if given != earned || taken > given || given > periods*w.config.Emission {
		w.t.Fatalf("%d were emitted in %d periods of %d, %d taken back, and %d earned", given, periods, w.config.Emission, taken, earned)
	}
	if good && w.config.ValidatorPercent < 100 && w.config.Emission > uint64(members) && given == 0 {
		w.t.Fatalf("nothing was emitted in %d periods", periods)
	}
}

// TestLyingMinorityEarnsNothing has validators of less than half of the stake lie together about one member, in all ways, period
// for period: the member's reward is what it would be without them, and their trust is less than if they had been honest.
func TestLyingMinorityEarnsNothing(t *testing.T) {
	rewards := func(lies func(period uint32, honest int16) int16) ([]uint64, uint8) {
		c := testConfig()
		c.Validators, c.ScoreWindows, c.Emission, c.Overlap, c.TotalSteps, c.MissedMax = 5, 2, 10_000, 0, 1000, 9
		w := newWorld(t, Limits{Members: 4, Witnesses: 4, Validators: 5}, c, "minority")
		p := &player{w: w, src: prng.New(wire.Sum("test/minority"), "minority")}
		for i := range 4 {
			p.must(w.apply(testKey(fmt.Sprint("player", i)), Join{}))
		}
		for k, stake := range []uint64{101, 100, 100, 100, 200} { // the last two lie: 300 of 601
			p.must(w.applyWith(testKey(fmt.Sprint("validator", k)), stake, RegisterValidator{}))
		}
		p.must(w.applyWith(testKey("player0"), 1<<40, Fund{}))
		for range 4 {
			p.honest()
		}
		said := map[key.Public]RevealScores{}
		for w.s.book().Settled() < 12 {
			period, stage := w.s.Scoring()
			for k, v := range w.s.Validators() {
				switch {
				case stage == score.StageCommit:
					said[v.Key] = p.opinions(period, func(of key.Public) int16 {
						if value := truth(of); k < 3 || of != w.s.Key(1) {
							return value
						}
						return lies(period, truth(of))
					})
					p.must(w.apply(v.Key, CommitScores{Period: period, Hash: ScoresHash(w.s.ID(), v.Key, said[v.Key])}))
				case stage == score.StageReveal:
					p.must(w.apply(v.Key, said[v.Key]))
				}
			}
			w.now += 1000
			w.window()
		}
		var list []uint64
		for i := range Member(4) {
			list = append(list, w.s.Member(i).Earned)
		}
		return list, w.s.Validators()[4].Trust
	}
	want, trust := rewards(func(_ uint32, honest int16) int16 { return honest })
	if trust <= score.TrustNew {
		t.Errorf("honest, the validators end with trust %d", trust)
	}
	for name, lies := range map[string]func(uint32, int16) int16{
		"praise":  func(uint32, int16) int16 { return score.One },
		"slander": func(uint32, int16) int16 { return -score.One },
		"in turn": func(p uint32, _ int16) int16 { return int16(p%2*2*score.One) - score.One },
		"a little": func(_ uint32, honest int16) int16 {
			return honest + 3000
		},
	} {
		got, less := rewards(lies)
		if !slices.Equal(got, want) {
			t.Errorf("%s: members earn %d, without %d", name, got, want)
		}
		if less >= trust {
			t.Errorf("%s: a liar ends with trust %d, the honest with %d", name, less, trust)
		}
	}
}
