package market

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/bucket"
	bucketmem "github.com/entrain-network/entrain/bucket/mem"
	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/coordinator"
	scores "github.com/entrain-network/entrain/coordinator/score"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/lab/adversary"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/node"
	"github.com/entrain-network/entrain/score"
	"github.com/entrain-network/entrain/tests/campaign"
	"github.com/entrain-network/entrain/validator/live"
	"github.com/entrain-network/entrain/wire"
)

// The attacks of docs/security.md on runs of buckets. Those on what is sealed are in
// TestCheatsEarnNothing; what buckets and names alone withstand is tested in package bucket, what
// the chain refuses in package coordinator.

// unpaid checks that the last miner earned nothing, and that the others did all their work
// undisturbed.
func unpaid(t *testing.T, m *Market, r Result) {
	t.Helper()
	last := len(r.Earners) - 1
	if e := r.Earners[last]; e.Reward != 0 || e.Accepted > r.Windows/4 {
		t.Errorf("it earned %d, and %d of its results were accepted: %+v", e.Reward, e.Accepted, e.Evidence)
	}
	for i, e := range r.Earners[:last] {
		if e.Accepted != m.cfg.Steps || e.Reward == 0 {
			t.Errorf("honest miner %d: %d results accepted, earned %d; notes %q", i, e.Accepted, e.Reward, tail(m.miners[i].notes))
		}
	}
}

// TestLateUploads has a miner commit in time and show what it committed to when the window in
// which it should is over.
func TestLateUploads(t *testing.T) {
	m := begin(t, Config{Miners: honest(4), Validators: []Judge{{}, {}}, Steps: 16})
	m.Buckets.Break(Place(3), bucketmem.Faults{Appear: 15 * time.Second})
	unpaid(t, m, finish(t, m))
}

// TestVanishingReveals has a miner delete what it revealed of noise once it is accepted. Validators
// saw it, or miss it: they go on with the others.
func TestVanishingReveals(t *testing.T) {
	t.Parallel()
	m := begin(t, Config{Miners: append(honest(5), Miner{Kind: "vanish"}), Validators: []Judge{{}, {}}, Steps: 48})
	r := finish(t, m)
	if e := r.Earners[5]; e.Accepted < 40 || e.Reward != 0 {
		t.Errorf("it earned %d with %d results accepted: %+v", e.Reward, e.Accepted, e.Evidence)
	}
	evaluated := uint64(0)
	for i, e := range r.Earners[:5] {
		evaluated += uint64(e.Evidence.Count)
		if e.Share < 0.15 || e.Evidence.Count == 0 || e.Evidence.Verdicts[score.Fair] != e.Evidence.Count {
			t.Errorf("honest miner %d: %+v", i, e)
		}
	}
	if evaluated < 48 {
		t.Errorf("%d results of honest miners were evaluated in 48 windows", evaluated)
	}
}

// TestSealingTheGradientPaysNoMore has a miner compute its share and seal the gradient itself, which
// a validator's gradient resembles far more than an honest update: it is paid as the honest are,
// for as many sequences.
func TestSealingTheGradientPaysNoMore(t *testing.T) {
	t.Parallel()
	campaign.Only(t)
	r := finish(t, begin(t, Config{Miners: append(honest(5), Miner{Kind: "gradient"}), Validators: []Judge{{Sample: 6}, {Sample: 6}}, Steps: 40}))
	most := uint64(0)
	for _, e := range r.Earners[:5] {
		most = max(most, e.Reward)
	}
	if e := r.Earners[5]; e.Evidence.Whole < 0.9 || e.Reward*20 > most*21 {
		t.Errorf("it earned %d, the best of the honest %d: %+v", e.Reward, most, e.Evidence)
	}
}

// TestTwoValidatorsOneOfWhichLies has one of two equal validators call every miner worthless, or
// only one of them: miners are paid for what they did before, and the honest validator loses nothing.
func TestTwoValidatorsOneOfWhichLies(t *testing.T) {
	t.Parallel()
	lie := func(s coordinator.State, period uint32, honest []scores.Score) []scores.Score {
		for i := range honest {
			if period > 2 {
				honest[i].Value = -scores.One
			}
		}
		return honest
	}
	m := begin(t, Config{Miners: honest(3), Validators: []Judge{{Sample: 3}, {Sample: 3, Say: lie}}, Steps: 48})
	r := finish(t, m)
	for i, e := range r.Earners {
		if e.Share < 0.25 || r.Periods[5].Members[i].Reward == 0 {
			t.Errorf("miner %d: %+v", i, e)
		}
	}
	if v, _ := m.State().Validator(judgeKey(0).Public()); v.Trust <= 64 {
		t.Errorf("the honest validator ends with trust %d", v.Trust)
	}
}

// hidden is a bucket as validators see it whose owner hides the reveals of every so many windows
// from them.
type hidden struct {
	bucket.Store
	every coordinator.Round
}

func (h hidden) Get(ctx context.Context, key string, offset, n int64) ([]byte, bucket.Object, error) {
	if name, err := bucket.ParseName(key); err == nil && name.Kind == bucket.KindReveal && name.Window%h.every == 0 {
		return nil, bucket.Object{}, bucket.ErrMissing
	}
	return h.Store.Get(ctx, key, offset, n)
}

// TestRevealsThatValidatorsDoNotGet has a bucket answer witnesses, and validators in every second
// window only. What a validator without a bucket of its own did not get scores 0, and it goes on with
// the others.
func TestRevealsThatValidatorsDoNotGet(t *testing.T) {
	t.Parallel()
	var m *Market
	bend := blinded(&m, 5, 2)
	m = begin(t, Config{Miners: honest(6), Validators: []Judge{{Configure: bend}, {Configure: bend}}, Steps: 32})
	r := finish(t, m)
	e := r.Earners[5]
	if e.Evidence.Verdicts[score.Absent] < 8 || e.Reward*4 >= r.Earners[0].Reward*3 {
		t.Errorf("it earned %d, an honest one %d: %+v", e.Reward, r.Earners[0].Reward, e.Evidence)
	}
	for i, e := range r.Earners[:5] {
		if e.Reward == 0 || e.Evidence.Count < 6 || e.Evidence.Verdicts[score.Fair] != e.Evidence.Count {
			t.Errorf("honest miner %d: %+v", i, e)
		}
	}
}

// blinded has a validator not get a miner's reveals of every so many windows.
func blinded(m **Market, miner int, every coordinator.Round) func(*live.Config) {
	return func(cfg *live.Config) {
		open := func(at bucket.Location) (bucket.Store, error) {
			s, err := (*m).Buckets.Open(at)
			if at.Bucket == Place(miner).Bucket {
				s = hidden{s, every}
			}
			return s, err
		}
		cfg.Exchange = bucket.NewExchange(cfg.Loop, cfg.Exchange.Writer(), bucket.NewReader(open, bucket.Options{}), bucket.ExchangeOptions{Simulated: true})
	}
}

// TestCopiesForValidators has a miner hide all its reveals from one validator of three, to harm it.
// With a bucket in which it says what it lacks, the validator scores the miner as the others do, from
// witnesses' copies, and loses nothing; without one it disagrees with them.
func TestCopiesForValidators(t *testing.T) {
	t.Parallel()
	campaign.Only(t)
	for _, writes := range []bool{false, true} {
		var m *Market
		m = begin(t, Config{Miners: honest(5), Validators: []Judge{{Writes: writes, Configure: blinded(&m, 4, 1)}, {}, {}}, Steps: 24})
		r := finish(t, m)
		verdicts := map[score.Verdict]int{}
		for _, s := range m.Scored(0) {
			if s.Key == MinerKey(4).Public() {
				verdicts[s.Verdict]++
			}
		}
		if fair := verdicts[score.Fair] >= 5 && verdicts[score.Absent] == 0; fair != writes {
			t.Errorf("bucket %v: of the hidden results it found %v", writes, verdicts)
		}
		if equal := r.Paid[0]*20 > r.Paid[1]*19; equal != writes {
			t.Errorf("bucket %v: it was paid %d, another %d", writes, r.Paid[0], r.Paid[1])
		}
	}
}

// TestABucketThatIsDownForAMoment has an honest miner's bucket answer nobody for some seconds of
// each window: what is there before the window's end counts as ever.
func TestABucketThatIsDownForAMoment(t *testing.T) {
	m := begin(t, Config{Miners: honest(4), Validators: []Judge{{}, {}}, Steps: 16})
	start := m.Clock.Now()
	m.Buckets.Break(Place(3), bucketmem.Faults{Serve: func(_ string, object []byte) []byte {
		if m.Clock.Now().Sub(start)%(6*time.Second) < 1500*time.Millisecond {
			return nil
		}
		return object
	}})
	r := finish(t, m)
	for i, e := range r.Earners {
		if e.Accepted != 16 || e.Share < 0.2 || e.Evidence.Verdicts[score.Fair] != e.Evidence.Count {
			t.Errorf("miner %d: %+v", i, e)
		}
	}
}

// TestOthersObjectsUnderOnesOwnName has a bucket answer every request for its owner's objects
// with those of another miner.
func TestOthersObjectsUnderOnesOwnName(t *testing.T) {
	m := begin(t, Config{Miners: honest(4), Validators: []Judge{{}, {}}, Steps: 16})
	type what struct {
		window uint32
		kind   bucket.Kind
	}
	victims, stolen := map[what][]byte{}, 0
	m.Buckets.Break(Place(0), bucketmem.Faults{Serve: func(path string, object []byte) []byte {
		if n, err := bucket.ParseName(path); err == nil && object != nil {
			victims[what{uint32(n.Window), n.Kind}] = bytes.Clone(object)
		}
		return object
	}})
	m.Buckets.Break(Place(3), bucketmem.Faults{Serve: func(path string, object []byte) []byte {
		n, err := bucket.ParseName(path)
		if err != nil || object == nil {
			return object
		}
		other := victims[what{uint32(n.Window), n.Kind}]
		if other != nil {
			stolen++
		}
		return other
	}})
	unpaid(t, m, finish(t, m))
	if stolen == 0 {
		t.Error("nothing was stolen: the test shows nothing")
	}
}

// TestReplays has a bucket answer with its owner's objects of an earlier window.
func TestReplays(t *testing.T) {
	m := begin(t, Config{Miners: honest(4), Validators: []Judge{{}, {}}, Steps: 16})
	first := map[bucket.Kind][]byte{}
	replayed := 0
	m.Buckets.Break(Place(3), bucketmem.Faults{Serve: func(path string, object []byte) []byte {
		name, err := bucket.ParseName(path)
		if err != nil || object == nil {
			return object
		}
		if first[name.Kind] == nil {
			first[name.Kind] = bytes.Clone(object)
		}
		if !bytes.Equal(first[name.Kind], object) {
			replayed++
		}
		return first[name.Kind]
	}})
	r := finish(t, m)
	unpaid(t, m, r)
	if replayed == 0 {
		t.Error("nothing was replayed: the test shows nothing")
	}
}

// bettor computes all and seals only what one slice would show: it bets on knowing which will be
// asked for. If it saves the rest of the gradient, its work is wrong.
type bettor struct {
	bent
	saves bool
}

// bent is an engine that a test bends.
type bent struct{ engine.Engine }

func (b *bettor) Step(ctx context.Context, params, state engine.Vector, spans []batch.Span, step uint32) (engine.Result, error) {
	r, err := b.Engine.Step(ctx, params, state, spans, step)
	if err != nil {
		return r, err
	}
	kept := make([]byte, len(r.Payload))
	copy(kept, r.Payload[:codec.HeaderLen])
	slicer, _ := b.Slicer()
	for _, at := range slicer.Ranges(wire.Sum("a guess", wire.AppendU32(nil, step))) {
		copy(kept[codec.HeaderLen+at.From:codec.HeaderLen+at.To], r.Payload[codec.HeaderLen+at.From:codec.HeaderLen+at.To])
	}
	r.Payload = kept
	if b.saves {
		r.Gradient = wire.Sum("of a part")
	}
	return r, nil
}

// TestSlicesCannotBeForeseen bets on a slice, and looks whether anybody could know it while
// commitments are taken.
func TestSlicesCannotBeForeseen(t *testing.T) {
	t.Parallel()
	t.Run("works compared", func(t *testing.T) {
		if e := bet(t, Config{}, true); e.Reward != 0 {
			t.Errorf("who bets earned %d: %+v", e.Reward, e.Evidence)
		}
	})
	// By luck a bet shows enough in one window of four: the mean over seeds tells luck from knowledge.
	t.Run("works not compared", func(t *testing.T) {
		const seeds = 4
		var sum float64
		for seed := range seeds {
			sum += bet(t, Config{Seed: wire.Hash{byte(seed)}, Inexact: true}, false).Share
		}
		if mean := sum / seeds; mean > 0.03 {
			t.Errorf("who bets has %.4f of all, and the honest 0.2 and more", mean)
		}
	})
}

// bet has a fifth miner bet on the slices of a market, and returns what it earned.
func bet(t *testing.T, c Config, saves bool) Earner {
	c.Miners = append(honest(4), Miner{Configure: func(cfg *node.Config) { cfg.Engine = &bettor{bent{cfg.Engine}, saves} }})
	c.Validators, c.Steps, c.Compression, c.Leaf = []Judge{{}, {}}, 16, 32, 16
	m := begin(t, c)
	seeds := map[wire.Hash]bool{}
	m.Chain.Client().Watch(t.Context(), runName, func(snapshot ledger.Snapshot) {
		s := snapshot.State
		r, ok := s.At(s.Round())
		if !ok {
			return
		}
		if _, known := r.SliceSeed(); known {
			t.Errorf("the slice of window %d is known while it is open", s.Round())
		}
		if before, ok := s.At(s.Round() - 1); ok {
			if seed, known := before.SliceSeed(); known {
				seeds[seed] = true
			}
		}
	})
	r := finish(t, m)
	if len(seeds) < 15 {
		t.Errorf("%d seeds of slices in 16 windows", len(seeds))
	}
	t.Logf("who bets has %.4f of all", r.Earners[4].Share)
	return r.Earners[4]
}

// TestALyingMinorityMovesNothing has a validator with 43 % of the stake lie in each of its ways.
func TestALyingMinorityMovesNothing(t *testing.T) {
	t.Parallel()
	miners := append(honest(4), Miner{Kind: "noise"})
	for _, kind := range []string{"inverse", "favour", "silent"} {
		if kind != "inverse" && !campaign.Whole() {
			continue
		}
		j, ok := adversary.FindJudge(kind)
		if !ok {
			t.Fatal(kind)
		}
		m := begin(t, Config{Miners: miners, Validators: []Judge{{Sample: 5}, {Sample: 5}, {Sample: 5, Stake: 1500, Say: j.Say}}, Steps: 24})
		r := finish(t, m)
		if e := r.Earners[4]; e.Reward != 0 {
			t.Errorf("%s: the cheat earned %d", kind, e.Reward)
		}
		for i, e := range r.Earners[:4] {
			if e.Share < 0.2 || e.Share > 0.3 {
				t.Errorf("%s: honest miner %d has %.3f of all", kind, i, e.Share)
			}
		}
		if honest := min(r.Paid[0], r.Paid[1]); r.Paid[2]*2 > honest*3/2 {
			t.Errorf("%s: who lies was paid %d with 1.5 times the stake, the honest %d and %d", kind, r.Paid[2], r.Paid[0], r.Paid[1])
		}
		if s := m.State(); kind != "silent" {
			liar, _ := s.Validator(judgeKey(2).Public())
			honest, _ := s.Validator(judgeKey(0).Public())
			if liar.Trust >= 60 || liar.Trust >= honest.Trust {
				t.Errorf("%s: its trust is %d, that of an honest one %d", kind, liar.Trust, honest.Trust)
			}
		}
	}
}

// TestValidatorsThatCopy has one that repeats what was agreed on before, and one that says the
// same of all: without looking neither knows of a cheat that has just come, nor of an honest
// member that has begun to cheat.
func TestValidatorsThatCopy(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"copy", "same"} {
		j, _ := adversary.FindJudge(kind)
		miners := append(honest(3), Miner{Kind: "sign-flip"}, Miner{Kind: "noise"})
		m := begin(t, Config{Miners: miners, Validators: []Judge{{Sample: 5}, {Sample: 5}, {Say: j.Say}}, Steps: 24})
		r := finish(t, m)
		if lazy, honest := r.Paid[2], min(r.Paid[0], r.Paid[1]); lazy >= honest {
			t.Errorf("%s: without looking a validator was paid %d, the honest %d and %d", kind, lazy, r.Paid[0], r.Paid[1])
		}
		if r.Earners[3].Reward+r.Earners[4].Reward != 0 {
			t.Errorf("%s: the cheats earned %d and %d", kind, r.Earners[3].Reward, r.Earners[4].Reward)
		}
	}
}

// TestOthersScoresCannotBeCommittedTo has a validator take over the hash of another's scores, and
// show them when they are shown.
func TestOthersScoresCannotBeCommittedTo(t *testing.T) {
	run, a, b := wire.Sum("run"), judgeKey(0).Public(), judgeKey(1).Public()
	said := coordinator.RevealScores{Period: 3, Salt: wire.Sum("salt"), Scores: []scores.Score{{Member: 1, Value: 100}}}
	hash := coordinator.ScoresHash(run, a, said)
	if coordinator.ScoresHash(run, b, said) == hash {
		t.Error("the hash of one's scores opens as another's")
	}
	other := said
	other.Salt = wire.Sum("another salt")
	if coordinator.ScoresHash(run, a, other) == hash {
		t.Error("whoever guesses the scores knows the hash")
	}
}

// TestAMinerThatBeginsToCheat works for two periods and sends noise then: its average falls, and
// what it is paid ends with the period.
func TestAMinerThatBeginsToCheat(t *testing.T) {
	t.Parallel()
	turn := func(cfg *node.Config) { cfg.Engine = &turncoat{bent{cfg.Engine}, 16} }
	m := begin(t, Config{Miners: append(honest(4), Miner{Configure: turn}), Validators: []Judge{{}, {}}, Steps: 40})
	r := finish(t, m)
	var paid []uint64
	for _, p := range r.Periods {
		for _, s := range p.Members {
			if at, _ := m.State().Find(MinerKey(4).Public()); s.Member == at {
				paid = append(paid, s.Reward)
			}
		}
	}
	if len(paid) < 5 || paid[0] == 0 || paid[1] == 0 || paid[3] != 0 || paid[4] != 0 {
		t.Errorf("by periods it was paid %v", paid)
	}
	if v := r.Earners[4].Evidence.Verdicts; v[score.WrongWork] == 0 || v[score.Fair] == 0 {
		t.Errorf("it was found %v", v)
	}
}

// turncoat computes nothing any more after some steps.
type turncoat struct {
	bent
	after uint32
}

func (e *turncoat) Step(ctx context.Context, params, state engine.Vector, spans []batch.Span, step uint32) (engine.Result, error) {
	r, err := e.Engine.Step(ctx, params, state, spans, step)
	if err == nil && step > e.after {
		random := wire.Sum("noise", wire.AppendU32(nil, step))
		at := 0
		adversary.Noise(r.Payload, 24, func() uint64 {
			at = (at + 1) % len(random)
			return uint64(random[at]) + uint64(at)<<8
		})
		r.Gradient = random
	}
	return r, err
}
