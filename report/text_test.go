package report_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/coordinator/score"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/report"
	"github.com/entrain-network/entrain/view"
	"github.com/entrain-network/entrain/wire"
)

// scoredRun is a run by buckets of one miner and one validator, in its third period of scores.
type scoredRun struct {
	t                *testing.T
	s                coordinator.State
	env              coordinator.Env
	miner, validator key.Private
}

func newScoredRun(t *testing.T, clock uint8) *scoredRun {
	t.Helper()
	config := coordinator.Config{
		Name: "scored", MinMembers: 1, StartMembers: 1, WarmupMs: 1000, RoundTrainMs: 1000, RoundWitnessMs: 1000, CooldownMs: 1000,
		EpochMs: 1 << 30, TotalSteps: 100, BatchStart: 4, BatchEnd: 4, SequenceTokens: 16, Overlap: 1, MissedMax: 3,
		Exchange: coordinator.Buckets, WindowBlocks: 10, Clock: clock, Validators: 2, ScoreWindows: 2, Emission: 100, ValidatorPercent: 20, ImmuneWindows: 50,
		ModelHash: wire.Hash{1}, SpecHash: wire.Hash{2}, Owner: key.Public{3},
	}
	limits := coordinator.Limits{Members: 4, Witnesses: 2, Validators: 2, Buckets: true}
	r := &scoredRun{t: t, miner: key.FromSeed([32]byte{1}), validator: key.FromSeed([32]byte{2}), env: coordinator.Env{NowMs: 1000}}
	var err error
	if r.s, err = coordinator.New(limits, config, r.env); err != nil {
		t.Fatal(err, config.Check(limits))
	}
	r.send(r.miner, 0, coordinator.Join{})
	r.send(r.validator, 1000, coordinator.RegisterValidator{})
	r.send(r.validator, 5000, coordinator.Fund{})
	r.send(r.miner, 0, coordinator.Ready{Epoch: 1, Params: config.ModelHash})
	for r.s.Window() < 5 {
		r.window()
	}
	return r
}

func (r *scoredRun) send(from key.Private, value uint64, m coordinator.Message) {
	r.t.Helper()
	r.env.Sender, r.env.Value = from.Public(), value
	if err := r.s.Apply(r.env, m); err != nil {
		r.t.Fatalf("%T: %v", m, err)
	}
}

// window passes a window in which everybody does what it asks for.
func (r *scoredRun) window() {
	round, _ := r.s.At(r.s.Round())
	share := batch.Hash(round.Share(0))
	c := dispute.Commitment{Run: r.s.ID(), Epoch: 1, Round: round.Number(), Share: share}
	r.send(r.miner, 0, coordinator.Commit{Signed: c.Sign(r.miner)})
	period, stage := r.s.Scoring()
	said := coordinator.RevealScores{Period: period, Scores: []score.Score{{Member: 0, Value: score.One / 2}}}
	switch stage {
	case score.StageCommit:
		hash := coordinator.ScoresHash(r.s.ID(), r.validator.Public(), said)
		r.send(r.validator, 0, coordinator.CommitScores{Period: period, Hash: hash})
	case score.StageReveal:
		r.send(r.validator, 0, said)
	}
	r.env.Height += 10
	params, _ := r.s.Params()
	report := coordinator.Witness{Round: round.Number(), Complete: true, Params: params, Prev: params}
	if round.Attests() > 0 {
		report.Held = []byte{1}
	}
	r.send(r.miner, 0, coordinator.Tick{})
	r.send(r.miner, 0, report)
}

func TestStatusShowsScores(t *testing.T) {
	r := newScoredRun(t, 0)
	run := view.Look("chain", ledger.Snapshot{State: r.s, Height: r.env.Height, TimeMs: r.env.NowMs}, r.env.NowMs)
	var out bytes.Buffer
	if err := report.Status(&out, run); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"window      5, of 10 blocks; 0 of 1 commitments are on the chain; it ends with block 50",
		"scores      period 3, of 2 windows; validators are committing scores of period 2; 100 tokens a period, 100 so far",
		"nothing  1.00       20      20",
		"active, immune  3        0       +0.500  +0.500  1.000   80      80",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("status lacks %q:\n%s", want, out.String())
		}
	}
	r = newScoredRun(t, 1)
	clocked := view.Look("chain", ledger.Snapshot{State: r.s, Height: r.env.Height, TimeMs: r.env.NowMs}, r.env.NowMs)
	if err := report.Status(&out, clocked); err != nil || !strings.Contains(out.String(), "5, of 10 of Bittensor's blocks; 0 of 1 commitments are on the chain; it ends with Bittensor's block 50") {
		t.Errorf("status does not say whose blocks: %v\n%s", err, out.String())
	}
	run.Trust.Treasury = 99
	run.Windows.Validators = nil
	out.Reset()
	if err := report.Status(&out, run); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"99 tokens, less than a period takes: entrain wallet send", "validators  none has a seat"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("status lacks %q:\n%s", want, out.String())
		}
	}
	run = view.Look("chain", ledger.Snapshot{State: r.s, Height: r.env.Height, TimeMs: r.env.NowMs}, r.env.NowMs)
	b, err := json.Marshal(run)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"window":5`, `"on_chain":0`, `"slice_seed":"`, `"scoring":2`, `"stage":"committing"`, `"settled":true`, `"trust":76`,
		`"weight":1`, `"reward":80`, `"unvested":80`, `"said":"nothing"`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("JSON lacks %s:\n%s", want, b)
		}
	}
}
