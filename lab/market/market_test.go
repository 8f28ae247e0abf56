package market

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/entrain-network/entrain/bucket"
	scores "github.com/entrain-network/entrain/coordinator/score"
	"github.com/entrain-network/entrain/lab/adversary"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/score"
	"github.com/entrain-network/entrain/tests/campaign"
	_ "github.com/entrain-network/entrain/tests/heap"
)

// small has a quarter of the weights of Model, which is as good where what is looked at does not
// depend on how much a model learns.
var small = llama.Config{Vocab: 64, Hidden: 16, Layers: 1, Heads: 1, KVHeads: 1, HeadDim: 16, FFN: 32, Context: 24, Theta: 10000, Eps: 1e-5}

func begin(t *testing.T, cfg Config) *Market {
	t.Helper()
	if cfg.Model == (llama.Config{}) {
		cfg.Model = small
	}
	m, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	closed := m
	t.Cleanup(func() {
		closed.Close()
		closed = nil // package testing keeps what a parallel test cleans up with until all have ended
	})
	return m
}

func finish(t *testing.T, m *Market) Result {
	t.Helper()
	r, err := m.Run()
	if err != nil {
		t.Fatal(err)
	}
	for i := range m.validators {
		for _, note := range m.validators[i].notes {
			if strings.Contains(note, "applying") || strings.Contains(note, "is not the one") {
				t.Errorf("validator %d: %s", i, note)
			}
		}
	}
	return r
}

func honest(n int) []Miner { return make([]Miner, n) }

// TestCheatsEarnNothing is free riding in each of its kinds, copies and mosaics among them, all
// at once.
func TestCheatsEarnNothing(t *testing.T) {
	t.Parallel()
	miners := honest(5)
	for _, k := range adversary.Miners() {
		switch k.Name {
		case "gradient", "blend", "earlier", "long", "vanish", "hide", "lazy-verifier", "false-accuser": // these work; they have tests of their own
		default:
			miners = append(miners, Miner{Kind: k.Name})
		}
	}
	m := begin(t, Config{Miners: miners, Validators: []Judge{{}, {}}, Steps: 24})
	r := finish(t, m)
	for i, e := range r.Earners {
		if e.Kind == "" {
			if e.Share < 0.1 || e.Accepted != 24 || e.Evidence.Verdicts[score.Fair] != e.Evidence.Count {
				t.Errorf("honest miner %d: %+v", i, e)
			}
			continue
		}
		if e.Reward != 0 {
			t.Errorf("%s earned %d, %.4f of all: %+v", e.Kind, e.Reward, e.Share, e.Evidence)
		}
		if e.Evidence.Count == 0 {
			t.Errorf("%s was never evaluated", e.Kind)
		}
		proven := e.Evidence.Verdicts[score.WrongWork] == e.Evidence.Count
		if computes := e.Kind == "sign-flip" || e.Kind == "scale"; proven == computes {
			t.Errorf("%s: proven by its work: %v, %+v", e.Kind, proven, e.Evidence)
		}
	}
	if paid := r.Paid[0] + r.Paid[1]; paid == 0 || r.Paid[0] == 0 || r.Paid[1] == 0 {
		t.Errorf("validators were paid %v", r.Paid)
	}
	if r.Bytes == 0 || r.Bytes >= r.Dense {
		t.Errorf("a window took %d bytes of a miner, %d are the whole update", r.Bytes, r.Dense)
	}
}

// TestWithoutProofsCheatsEarnLittle is the same where arithmetic is not exact, so that works say
// nothing: cosines and losses are all there is. Scores are moving averages, so a share falls with
// the windows: the stale one begins as an honest one would.
func TestWithoutProofsCheatsEarnLittle(t *testing.T) {
	t.Parallel()
	campaign.Only(t)
	miners := honest(5)
	for _, k := range []string{"noise", "stale", "sign-flip", "scale", "wrong-data"} {
		miners = append(miners, Miner{Kind: k})
	}
	r := finish(t, begin(t, Config{Miners: miners, Validators: []Judge{{Sample: 10}, {Sample: 10}}, Steps: 36, Inexact: true}))
	share := 0.0
	for _, e := range r.Earners {
		if e.Kind != "" {
			share += e.Share
			if e.Share > 0.03 {
				t.Errorf("%s earned %.4f of all: %+v", e.Kind, e.Share, e.Evidence)
			}
			if e.Evidence.Verdicts[score.WrongWork] > 0 {
				t.Errorf("%s: works were compared", e.Kind)
			}
		}
	}
	if share > 0.06 {
		t.Errorf("the cheats earned %.4f of all", share)
	}
}

// TestValidatorsSurviveACrashBetweenCommitAndReveal ends one with kill -9 when its commitment is
// on the chain, and starts it again later.
func TestValidatorsSurviveACrashBetweenCommitAndReveal(t *testing.T) {
	m := begin(t, Config{Miners: honest(3), Validators: []Judge{{}, {}}, Steps: 26})
	said := func() (scores.ValidatorScores, uint32, bool) {
		s := m.State()
		period, _ := s.Scoring()
		got, ok := s.Scores(period)
		if !ok {
			return scores.ValidatorScores{}, 0, false
		}
		i := slices.IndexFunc(got.Validators, func(v scores.ValidatorScores) bool { return v.Key == judgeKey(1).Public() })
		if i < 0 {
			return scores.ValidatorScores{}, period, false
		}
		return got.Validators[i], period, true
	}
	if !m.Until(time.Hour, func() bool { v, p, ok := said(); return ok && p == 1 && v.Committed && !v.Revealed }) {
		t.Fatal("it committed to nothing")
	}
	m.Crash(1)
	before := m.validators[1].store.record
	if !m.Until(time.Hour, func() bool { _, stage := m.State().Scoring(); return stage == scores.StageReveal }) {
		t.Fatal("there was nothing to reveal in")
	}
	if err := m.Revive(1); err != nil {
		t.Fatal(err)
	}
	if !m.Until(time.Hour, func() bool { v, p, ok := said(); return ok && p == 1 && v.Revealed }) {
		t.Fatalf("after a crash it reveals nothing: %q", m.validators[1].notes)
	}
	if len(before) == 0 {
		t.Error("nothing was on its disk when it committed")
	}
	r := finish(t, m)
	if m.validators[1].healed == 0 {
		t.Error("it did not fetch the model")
	}
	for i, v := range r.Validators {
		if v.Trust < 64 || v.Earned == 0 {
			t.Errorf("validator %d: %+v", i, v)
		}
	}
}

// TestAValidatorComesLate has one start in the middle of a run, from nothing but the chain and
// the buckets.
func TestAValidatorComesLate(t *testing.T) {
	m := begin(t, Config{Miners: honest(3), Validators: []Judge{{}, {Late: true}}, Steps: 32})
	if !m.Until(time.Hour, func() bool { return m.State().Round() >= 12 }) {
		t.Fatal("the run does not go on")
	}
	if err := m.Enter(); err != nil {
		t.Fatal(err)
	}
	r := finish(t, m)
	if m.validators[1].healed == 0 || len(m.Scored(1)) == 0 || r.Paid[1] == 0 {
		t.Errorf("it healed %d times, evaluated %d results, was paid %d: %q", m.validators[1].healed, len(m.Scored(1)), r.Paid[1], m.validators[1].notes)
	}
	for _, e := range m.Scored(1) {
		if e.Verdict != score.Fair {
			t.Errorf("it found an honest miner %+v", e)
		}
	}
}

// TestAValidatorThatHoldsTheModelFetchesNothing has one start in a run whose miners have gone, with
// their reveals, before they agreed on what these make of the model. It fetches the model before
// them once, however long they stay away.
func TestAValidatorThatHoldsTheModelFetchesNothing(t *testing.T) {
	m := begin(t, Config{Miners: honest(3), Validators: []Judge{{}, {Late: true}}, Steps: 32})
	if !m.Until(time.Hour, func() bool { _, agreed := m.State().Params(); return agreed >= 12 && m.State().Round() > agreed }) {
		t.Fatal("no window began")
	}
	for i := range 3 {
		m.CrashMiner(i)
		store, err := m.Buckets.Open(Place(i))
		if err != nil {
			t.Fatal(err)
		}
		all, err := store.List(t.Context(), bucket.RunPrefix(m.State().ID()), "", 10_000)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range all {
			if name, err := bucket.ParseName(o.Key); err == nil && name.Kind == bucket.KindReveal {
				if err := store.Delete(t.Context(), o.Key); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if err := m.Enter(); err != nil {
		t.Fatal(err)
	}
	m.Until(10*time.Minute, func() bool { return m.validators[1].healed > 1 })
	if n := m.validators[1].healed; n != 1 {
		t.Errorf("it fetched the model %d times: %q", n, m.validators[1].notes)
	}
	for _, note := range m.validators[1].notes {
		if strings.Contains(note, "announced no bucket") {
			t.Errorf("it says of a miner with a bucket: %s", note)
		}
	}
}

// A validator gives up its seat at the run's end, and has its stake and what it earned.
func TestValidatorsArePaidAtTheEnd(t *testing.T) {
	m := begin(t, Config{Miners: honest(3), Validators: []Judge{{}, {Stake: 2000}}, Steps: 10, Period: 4})
	r := finish(t, m)
	if !m.Until(2*time.Minute, func() bool { return len(m.State().Validators()) == 0 }) {
		t.Fatalf("seats are still held: %+v; notes %v", m.State().Validators(), m.validators[0].notes)
	}
	for i, stake := range []uint64{1000, 2000} {
		if got := m.Chain.Host().Balance(judgeKey(i).Public()); r.Paid[i] == 0 || got != stake+r.Paid[i] {
			t.Errorf("validator %d has %d tokens; its stake was %d, and it earned %d", i, got, stake, r.Paid[i])
		}
	}
}

// Miners that crash go on from their disks, and one of them has its stake from a pool.
func TestMinersSurviveCrashes(t *testing.T) {
	m := begin(t, Config{Miners: honest(4), Validators: []Judge{{}}, Steps: 16, Period: 4, Verification: 100, Disks: true, Pooled: true})
	for i, at := range []time.Duration{20 * time.Second, 47 * time.Second} {
		m.Clock.After(at, func() { m.CrashMiner(i) })
		m.Clock.After(at+3*time.Second, func() {
			if err := m.ReviveMiner(i); err != nil {
				t.Error(err)
			}
		})
	}
	r := finish(t, m)
	for _, v := range m.State().Convictions() {
		if !v.Offence.Lesser() {
			t.Errorf("convicted of %v: %+v", v.Offence, v)
		}
	}
	for i, e := range r.Earners {
		if e.Accepted < 11 {
			t.Errorf("miner %d: %d results were accepted, notes %v", i, e.Accepted, m.miners[i].notes)
		}
	}
	if p, ok := m.Chain.Host().Pool(poolName); !ok || p.Stage != "working" || p.Idle != 3*stake {
		t.Errorf("the pool is %+v", p)
	}
}
