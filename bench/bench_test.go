package bench

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
	_ "github.com/entrain-network/entrain/tests/heap"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// least is the smallest effort that measures everything once.
var least = effort{
	rounds: 1, trial: time.Nanosecond, products: 1, product: time.Nanosecond, turns: 1, turn: time.Nanosecond, memory: 1 << 20,
	trainings: []Training{{Model: "nano", Batch: 1, Sequence: 16}}, exchange: "nano",
}

func TestReportHoldsEverything(t *testing.T) {
	var told []string
	r, err := least.run(t.Context(), func(what string) { told = append(told, what) })
	if err != nil {
		t.Fatal(err)
	}
	if len(told) != 5 {
		t.Errorf("progress is %q, want a line for each of 5 parts", told)
	}
	if r.Threads != runtime.GOMAXPROCS(0) || r.Machine.Kernel != exact.Kernels()[0].Name() || r.Machine.Cores < 1 {
		t.Errorf("the report is from %+v with %d threads", r.Machine, r.Threads)
	}
	for name, p := range map[string]Pair{
		"peak": r.Peak, "read": r.Read, "copy": r.Copy, "peak of bytes": r.Peak8, "in 8 bits": r.Gemm8["2048"], "tokens": r.Training[0].Tokens, "share": r.Training[0].Share,
		"encode": r.Exchange.Encode, "check": r.Exchange.Check, "apply": r.Exchange.Apply, "hash": r.Exchange.Hash,
	} {
		for _, x := range []float64{p.One, p.All} {
			if !(x > 0) || math.IsInf(x, 0) {
				t.Errorf("%s is %v", name, p)
			}
		}
	}
	if r.Training[0].Params != 988544 || r.Training[0].Memory == 0 || r.Exchange.Params != 988544 || r.Exchange.PayloadBytes == 0 {
		t.Errorf("training is %+v and exchange %+v", r.Training[0], r.Exchange)
	}
	for _, name := range append([]string{"256", "2048"}, productNames()...) {
		if p := r.Flops[name]; !(p.One > 0 && p.All > 0) {
			t.Errorf("the product %s runs at %v", name, p)
		}
	}
	expectShares(t, r)
}

// Programs read shares of the peak as .sgemm["512"] and .products["head dw"].
func expectShares(t *testing.T, r Report) {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var parsed map[string]map[string]float64
	_ = json.Unmarshal(text, &parsed) // what is no map of numbers is left out
	for key, names := range map[string][]string{
		"sgemm": {"256", "512", "1024", "2048"}, "sgemm_one_thread": {"256", "512", "1024", "2048"},
		"products": productNames(), "products_one_thread": productNames(),
	} {
		for _, name := range names {
			if share := parsed[key][name]; !(share > 0) {
				t.Errorf("%s[%q] is %g in %s", key, name, share, text)
			}
		}
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	for _, parts := range []int{1, 2} {
		ctx, cancel := context.WithCancel(t.Context())
		told := 0
		_, err := least.run(ctx, func(string) {
			if told++; told == parts {
				cancel()
			}
		})
		if !errors.Is(err, context.Canceled) || told != parts {
			t.Errorf("cancelled in part %d, Run ended in part %d with %v", parts, told, err)
		}
		cancel()
	}
}

func TestTrialsTakeTurns(t *testing.T) {
	var order []string
	trialOf := func(name string) *Trial {
		return &Trial{Work: 1, Run: func() error { order = append(order, name); return nil }}
	}
	trials := []*Trial{trialOf("a"), trialOf("b")}
	if err := Alternate(t.Context(), 3, time.Nanosecond, trials); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(order, ""), "aabb"+"ababab"; got != want {
		t.Errorf("trials ran as %q, want %q: twice each to warm up, then in turn", got, want)
	}
	if len(trials[0].Seconds) != 3 || len(trials[1].Seconds) != 3 {
		t.Errorf("%d and %d times, want 3", len(trials[0].Seconds), len(trials[1].Seconds))
	}
}

func TestShortTrialsAreRepeated(t *testing.T) {
	calls := 0
	tr := &Trial{Work: 1, Run: func() error { calls++; return nil }}
	if err := tr.calibrate(t.Context(), time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if tr.repeat < 2 || tr.repeat > 1000 || calls != 2 {
		t.Errorf("%d calls, repeated %d times for a millisecond of calls which are counted as a microsecond at least", calls, tr.repeat)
	}
}

func TestAlternateReportsATrialThatFails(t *testing.T) {
	broken := errors.New("broken")
	err := Alternate(t.Context(), 1, time.Nanosecond, []*Trial{{Run: func() error { return broken }}})
	if !errors.Is(err, broken) {
		t.Errorf("error is %v", err)
	}
}

func TestRates(t *testing.T) {
	tr := Trial{Work: 12, Seconds: []float64{4, 1, 2, 6}}
	if got := tr.rate(); got != 4 {
		t.Errorf("rate %g, want 4: 12 in the 3 seconds between 2 and 4", got)
	}
	if got := tr.rateOf([]float64{4, 2}); got != 4.5 {
		t.Errorf("rate of two rounds %g, want 4.5, the mean of 3 and 6", got)
	}
	if got := Median([]float64{9, 1, 5}); got != 5 {
		t.Errorf("median %g, want 5", got)
	}
}

var tiny = llama.Config{Vocab: 64, Hidden: 32, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 8, FFN: 48, Context: 64, Theta: 10000, Eps: 1e-5}

func TestStepLearnsAndAllocatesNothing(t *testing.T) {
	pool := exact.NewPool(2)
	defer pool.Close()
	for _, tied := range []bool{false, true} {
		cfg := tiny
		cfg.Tied = tied
		s, err := newStep(cfg, 3, 20, pool)
		if err != nil {
			t.Fatal(err)
		}
		first, err := s.Run()
		if err != nil {
			t.Fatal(err)
		}
		var last float32
		if n := testing.AllocsPerRun(20, func() { last, err = s.Run() }); n != 0 || err != nil {
			t.Errorf("%g allocations in a step, error %v", n, err)
		}
		if !(last < first) {
			t.Errorf("the loss of tokens seen 20 times is %g, at first it was %g", last, first)
		}
		if s.Tokens() != 60 || s.Params() != cfg.Layout().Len() {
			t.Errorf("%d tokens, %d parameters", s.Tokens(), s.Params())
		}
	}
}

// Counted one multiply-add at a time: forward is every row with every weight, and every token
// with those before it; backward is twice that.
func TestStepOperationsAreCounted(t *testing.T) {
	for _, sequence := range []int{1, 2, 33} {
		for _, c := range []llama.Config{tiny, {Vocab: 10, Hidden: 6, Layers: 3, Heads: 2, KVHeads: 2, HeadDim: 2, FFN: 5, Context: 40, Theta: 1e4, Eps: 1e-5, Tied: true}} {
			var forward float64
			for _, tensor := range c.Layout().Tensors() {
				head := tensor.Name == "lm_head.weight" || c.Tied
				if len(tensor.Shape) == 2 && (tensor.Name != "model.embed_tokens.weight" || head) {
					forward += 2 * float64(tensor.Len) * float64(sequence)
				}
			}
			for range c.Layers * c.Heads {
				for at := range sequence {
					forward += 2 * 2 * float64(at+1) * float64(c.HeadDim)
				}
			}
			if got, want := StepOperations(c, sequence)*float64(sequence), 3*forward; math.Abs(got-want) > 1e-9*want {
				t.Errorf("%d tokens: %g operations, want %g", sequence, got, want)
			}
		}
	}
}

// What a step is said to take is near what it takes.
func TestStepMemoryIsEstimated(t *testing.T) {
	for _, preset := range []string{"nano", "10m"} {
		cfg, err := llama.Preset(preset)
		if err != nil {
			t.Fatal(err)
		}
		pool := exact.NewPool(1)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s, err := newStep(cfg, 2, 64, pool)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Run(); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		pool.Close()
		took, estimate := float64(after.TotalAlloc-before.TotalAlloc), float64(stepMemory(cfg, 2, 64))
		if estimate < 0.75*took || estimate > 1.5*took {
			t.Errorf("%s: a step is said to take %.1f MB and takes %.1f MB", preset, estimate/1e6, took/1e6)
		}
	}
}

func TestModelsThatDoNotFitAreRefused(t *testing.T) {
	if err := fits(2e9, 1e9); !errors.Is(err, ErrMemory) || !strings.Contains(err.Error(), "about 2.0 GB, and 1.0 GB are free") {
		t.Errorf("error is %v", err)
	}
	for _, free := range []uint64{0, 2e9, 3e9} { // 0 is not known
		if err := fits(2e9, free); err != nil {
			t.Errorf("with %d bytes free: %v", free, err)
		}
	}
}

func TestStepReportsAModelThatCannotBe(t *testing.T) {
	cfg := tiny
	cfg.Heads = 3
	if _, err := newStep(cfg, 1, 8, nil); err == nil || !strings.Contains(err.Error(), "multiple of kv_heads") {
		t.Errorf("error is %v", err)
	}
}

func TestFieldsOfProcFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "meminfo")
	if err := os.WriteFile(path, []byte("MemTotal:       24620228 kB\nMemAvailable:   17 kB\nModel name\t: A: B\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"MemTotal": "24620228 kB", "MemAvailable": "17 kB", "Model name": "A: B", "Mem": ""} {
		if got := field(path, name); got != want {
			t.Errorf("field %q is %q, want %q", name, got, want)
		}
	}
	if got := field(path+"?", "MemTotal"); got != "" {
		t.Errorf("a file that is not there says %q", got)
	}
	for value, want := range map[string]uint64{"17 kB": 17408, "17": 0, "": 0, "-1 kB": 0, "99999999999999999999 kB": 0} {
		if got := kilobytes(value); got != want {
			t.Errorf("%q is %d bytes, want %d", value, got, want)
		}
	}
}

func TestNumericsAreComparedInTurn(t *testing.T) {
	both, err := measurePreset(t.Context(), "nano,exact,exact8", StepOptions{Batch: 1, Sequence: 32, Threads: 1, Steps: 2})
	if err != nil {
		t.Fatal(err)
	}
	if len(both) != 2 || both[0].Numerics != "exact" || both[1].Numerics != "exact8" || len(both[1].Seconds) != 2 || both[0].Loss == both[1].Loss {
		t.Errorf("the results are %+v", both)
	}
	if text := both.String(); !strings.Contains(text, "\nexact8 is ") || !strings.Contains(text, " times as fast as exact; ") {
		t.Errorf("for people: %q", text)
	}
	var list []Measured
	if text, err := json.Marshal(both); err != nil || json.Unmarshal(text, &list) != nil || len(list) != 2 {
		t.Errorf("as JSON: %s, %v", text, err)
	}
	if _, err := measurePreset(t.Context(), "nano,exact,int4", StepOptions{Batch: 1, Sequence: 32, Threads: 1, Steps: 1}); err == nil || !strings.Contains(err.Error(), "int4") {
		t.Errorf("the error is %v", err)
	}
}
