package llama

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/tests/campaign"
	"github.com/entrain-network/entrain/wire"
)

// goldenConfig has sizes that no kernel's tile and no block of rows divides.
var goldenConfig = Config{Vocab: 53, Hidden: 28, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 10, FFN: 41, Context: 100, Theta: 10000, Eps: 1e-5}

// smallConfig is for plain Go in an emulator, where every multiply-add takes a microsecond.
var smallConfig = Config{Vocab: 19, Hidden: 12, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 6, FFN: 13, Context: 100, Theta: 10000, Eps: 1e-5}

// goldenConfig8 and smallConfig8 are like them as far as Exact8 allows: their sequences end within a
// block.
var (
	goldenConfig8 = Config{Vocab: 53, Hidden: 28, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 32, FFN: 96, Context: 100, Theta: 10000, Eps: 1e-5, Numerics: Exact8}
	smallConfig8  = Config{Vocab: 19, Hidden: 12, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 32, FFN: 32, Context: 100, Theta: 10000, Eps: 1e-5, Numerics: Exact8}
)

// What other architectures add, in models whose sequences outgrow a window and a block of rows.
var (
	biasConfig   = with(smallConfig, func(c *Config) { c.Bias, c.Tied = true, true })
	headsConfig  = with(smallConfig, func(c *Config) { c.QKNorm = true })
	windowConfig = with(smallConfig, func(c *Config) { c.Window, c.Rope = 17, Rope{8, 1, 4, 32} })
)

func with(c Config, change func(c *Config)) Config {
	change(&c)
	return c
}

// goldenCases are the runs whose hashes testdata has. seq is beyond a block of rows in all but the
// small one.
var goldenCases = []struct {
	name string
	cfg  Config
	seq  int
}{
	{"untied", goldenConfig, 70}, {"tied", withTiedHead(goldenConfig), 70}, {"small", smallConfig, 20},
	{"exact8-untied", goldenConfig8, 70}, {"exact8-tied", withTiedHead(goldenConfig8), 70}, {"exact8-small", smallConfig8, 40},
	{"bias-small", biasConfig, 40}, {"heads-small", headsConfig, 40}, {"window-small", windowConfig, 40},
}

func withTiedHead(c Config) Config { return with(c, func(c *Config) { c.Tied = true }) }

// goldenRun trains for 20 steps of plain gradient descent and returns the hash of parameters and
// losses.
func goldenRun(t testing.TB, cfg Config, seq int, pool *exact.Pool) string {
	const batch, steps = 2, 20
	m := newModel(t, cfg, pool, batch, seq)
	params := Init(cfg, wire.Sum("golden"))
	grad := make([]float32, len(params))
	r := rand.New(rand.NewPCG(20, 20))
	h := sha256.New()
	for range steps {
		tokens := randomTokens(cfg, batch, seq, r)
		clear(grad)
		loss, err := m.Grad(params, grad, tokens, batch, seq, batch)
		if err != nil {
			t.Fatal(err)
		}
		for i, g := range grad {
			params[i] = params[i] - float32(0.5*g)
		}
		fmt.Fprintf(h, "%08x", math.Float32bits(loss))
	}
	h.Write(tensor.Bytes(params))
	return hex.EncodeToString(h.Sum(nil))
}

// The hashes in testdata are part of the definition of the arithmetic. Every machine, kernel and
// number of threads must reach them; they change only when the definition does, which is a new
// numerics class.
func TestTwentyStepsReachTheGoldenHash(t *testing.T) {
	for _, c := range goldenCases {
		want := golden(t, c.name)
		for _, kernel := range exact.Kernels() {
			for _, threads := range []int{1, 2, 4} {
				if kernel.Name() == "plain" && (threads != 2 || !strings.HasSuffix(c.name, "small") && (c.name != "tied" || !campaign.Whole())) {
					continue // plain Go takes seconds for these; package exact divides its products otherwise, too
				}
				t.Run(fmt.Sprintf("%s/%s/%d", c.name, kernel.Name(), threads), func(t *testing.T) {
					defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(threads))
					pool := exact.NewPoolOf(threads, kernel)
					defer pool.Close()
					if got := goldenRun(t, c.cfg, c.seq, pool); got != want {
						t.Errorf("hash %s, want %s", got, want)
					}
				})
			}
		}
	}
}

// golden returns the hash of that name in testdata.
func golden(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "golden.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && key == name {
			return value
		}
	}
	t.Fatalf("testdata/golden.txt has no hash %q", name)
	return ""
}

func TestOneBatchIsLearntByHeart(t *testing.T) {
	cfg := Config{Vocab: 64, Hidden: 32, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 8, FFN: 64, Context: 32, Theta: 10000, Eps: 1e-5}
	const batch, seq, steps = 4, 32, 300
	r := rand.New(rand.NewPCG(3, 3))
	pool := exact.NewPool(2)
	defer pool.Close()
	m := newModel(t, cfg, pool, batch, seq)
	params, tokens := Init(cfg, wire.Sum("overfit")), randomTokens(cfg, batch, seq, r)
	for b := range batch {
		tokens[b*(seq+1)] = uint32(b) // what follows the first token can be told only if it differs from sequence to sequence
	}
	grad, moment, square := make([]float32, len(params)), make([]float64, len(params)), make([]float64, len(params))
	var first, last float32
	for step := range steps {
		clear(grad)
		loss, err := m.Grad(params, grad, tokens, batch, seq, batch)
		if err != nil {
			t.Fatal(err)
		}
		if step == 0 {
			first = loss
		}
		last = loss
		for i, g := range grad { // Adam
			g := float64(g)
			moment[i] += 0.1 * (g - moment[i])
			square[i] += 0.05 * (g*g - square[i])
			params[i] -= float32(3e-3 * moment[i] / (math.Sqrt(square[i]) + 1e-8))
		}
	}
	if math.Abs(float64(first)-math.Log(float64(cfg.Vocab))) > 0.3 {
		t.Errorf("the first loss is %g, far from that of a model that knows nothing, %g", first, math.Log(float64(cfg.Vocab)))
	}
	if last > 0.002 {
		t.Errorf("after %d steps on one batch the loss is %g, want near zero", steps, last)
	}
}

// The gradient of a batch has the same bits in one call and in several, whatever memory the model
// was made with.
func TestTheGradientDoesNotDependOnHowABatchIsDivided(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for _, cfg := range []Config{goldenConfig, withTiedHead(goldenConfig), goldenConfig8, withTiedHead(goldenConfig8), biasConfig, headsConfig, windowConfig} {
		const batch, seq = 5, 70
		params, tokens := randomParams(cfg, r), randomTokens(cfg, batch, seq, r)
		whole := make([]float32, len(params))
		if _, err := newModel(t, cfg, nil, batch, seq).Grad(params, whole, tokens, batch, seq, batch); err != nil {
			t.Fatal(err)
		}
		for _, parts := range [][]int{{1, 1, 1, 1, 1}, {2, 3}, {4, 1}} {
			m := newModel(t, cfg, nil, 4, seq+3)
			grad := make([]float32, len(params))
			rest := tokens
			for _, n := range parts {
				if _, err := m.Grad(params, grad, rest[:n*(seq+1)], n, seq, batch); err != nil {
					t.Fatal(err)
				}
				rest = rest[n*(seq+1):]
			}
			if !bytes.Equal(tensor.Bytes(grad), tensor.Bytes(whole)) {
				t.Errorf("%v, tied=%v: in parts of %v the gradient has other bits", cfg.Numerics, cfg.Tied, parts)
			}
		}
	}
}

// Activations that are computed again have the bits they had.
func TestTheGradientDoesNotDependOnWhatIsRecomputed(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	pool := exact.NewPool(2)
	defer pool.Close()
	const batch, seq = 2, 30
	for _, cfg := range []Config{goldenConfig, withTiedHead(goldenConfig), goldenConfig8, biasConfig, headsConfig, windowConfig} {
		cfg.Layers = 5
		params, tokens := randomParams(cfg, r), randomTokens(cfg, batch, seq, r)
		want := make([]float32, len(params))
		whole := newModel(t, cfg, pool, batch, seq)
		wantLoss, err := whole.Grad(params, want, tokens, batch, seq, batch)
		if err != nil {
			t.Fatal(err)
		}
		for every := 1; every <= cfg.Layers; every++ {
			m, err := NewRecomputing(cfg, pool, batch, seq, every)
			if err != nil {
				t.Fatal(err)
			}
			for pass := range 2 { // the second time on memory that has been used
				grad := make([]float32, len(params))
				if loss, err := m.Grad(params, grad, tokens, batch, seq, batch); err != nil || loss != wantLoss {
					t.Fatalf("%v, tied=%v, %d layers at a time: loss %g, %v, want %g", cfg.Numerics, cfg.Tied, every, loss, err, wantLoss)
				}
				if !bytes.Equal(tensor.Bytes(grad), tensor.Bytes(want)) {
					t.Errorf("%v, tied=%v, %d layers at a time, pass %d: the gradient has other bits", cfg.Numerics, cfg.Tied, every, pass)
				}
				if loss, err := m.Loss(params, tokens, batch, seq); err != nil || loss != wantLoss {
					t.Errorf("%v, tied=%v, %d layers at a time: loss %g, %v, want %g", cfg.Numerics, cfg.Tied, every, loss, err, wantLoss)
				}
			}
			if every < 4 && m.Memory() >= whole.Memory() {
				t.Errorf("%v, tied=%v, %d layers at a time take %d bytes, all of them %d", cfg.Numerics, cfg.Tied, every, m.Memory(), whole.Memory())
			}
		}
	}
	for _, every := range []int{0, 6, -1} {
		if _, err := NewRecomputing(withTiedHead(goldenConfig), pool, 1, 1, every); err == nil {
			t.Errorf("activations of %d layers at a time are accepted for a model of %d", every, goldenConfig.Layers)
		}
	}
}

// What Memory says is what a Model allocates.
func TestMemoryIsWhatAModelAllocates(t *testing.T) {
	cfg := goldenConfig
	cfg.Hidden, cfg.FFN = 256, 1024
	r := rand.New(rand.NewPCG(10, 10))
	params, tokens := randomParams(cfg, r), randomTokens(cfg, 4, 90, r)
	grad := make([]float32, len(params))
	pool := exact.NewPool(1)
	defer pool.Close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	m := newModel(t, cfg, pool, 4, 90)
	if _, err := m.Grad(params, grad, tokens, 4, 90, 4); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	got, want := m.Memory()+pool.Memory(), int(after.TotalAlloc-before.TotalAlloc)
	// Memory that grew was allocated more than once; everything else is some kilobytes.
	if got > want || float64(got) < 0.9*float64(want) {
		t.Errorf("Memory says %d bytes, %d were allocated", got, want)
	}
}

func TestASequenceIsBlindToTheOthersAndToTheFuture(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	cfg := goldenConfig
	params, tokens := randomParams(cfg, r), randomTokens(cfg, 2, 40, r)
	m := newModel(t, cfg, nil, 2, 40)
	a, err := m.Loss(params, tokens[:41], 1, 40)
	if err != nil {
		t.Fatal(err)
	}
	b, err := m.Loss(params, tokens[41:], 1, 40)
	if err != nil {
		t.Fatal(err)
	}
	both, err := m.Loss(params, tokens, 2, 40)
	if err != nil || math.Abs(float64(both-(a+b)/2)) > 1e-6 {
		t.Errorf("loss of two sequences %g, %v; of each %g and %g", both, err, a, b)
	}
	short, err := m.Loss(params, tokens[:21], 1, 20)
	if err != nil {
		t.Fatal(err)
	}
	tokens[40] ^= 1 // beyond what the first 20 see
	tokens[30] ^= 1
	again, err := m.Loss(params, tokens[:21], 1, 20)
	if err != nil || again != short {
		t.Errorf("loss of the first 20 tokens %g, then %g, %v", short, again, err)
	}
}

func TestAWarmStepAllocatesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	pool := exact.NewPool(2)
	defer pool.Close()
	for _, cfg := range []Config{goldenConfig, goldenConfig8, biasConfig, headsConfig, windowConfig} {
		m := newModel(t, cfg, pool, 3, 60)
		params, tokens := randomParams(cfg, r), randomTokens(cfg, 3, 60, r)
		grad := make([]float32, len(params))
		step := func() {
			if _, err := m.Grad(params, grad, tokens, 3, 60, 3); err != nil {
				t.Fatal(err)
			}
		}
		for range 5 {
			step()
		}
		// Workers take pieces as they come, so one may meet its largest piece late; but not in every
		// run.
		if n := testing.AllocsPerRun(10, step); n >= 1 {
			t.Errorf("%v: %g allocations a step", cfg.Numerics, n)
		}
	}
}

func TestBadInputIsAnError(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	cfg := goldenConfig
	m := newModel(t, cfg, nil, 2, 10)
	params := randomParams(cfg, r)
	grad := make([]float32, len(params))
	good := randomTokens(cfg, 2, 10, r)
	bad := append([]uint32(nil), good...)
	bad[13] = uint32(cfg.Vocab)
	huge := append([]uint32(nil), good...)
	huge[0] = math.MaxUint32
	for _, c := range []struct {
		tokens     []uint32
		batch, seq int
		want       string
	}{
		{bad, 2, 10, "token 53 at position 2 of sequence 1 is beyond the vocabulary of 53"},
		{huge, 2, 10, "token 4294967295 at position 0 of sequence 0"},
		{good[:21], 2, 10, "21 tokens, want 2 sequences of 10 and one more"},
		{good, 3, 10, "a batch of 3 sequences"},
		{good, 0, 10, "a batch of 0 sequences"},
		{good, 1, 21, "of 21 tokens"},
		{good, 22, 0, "of 0 tokens"},
	} {
		if _, err := m.Loss(params, c.tokens, c.batch, c.seq); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Loss: %v, want an error with %q", err, c.want)
		}
		if _, err := m.Grad(params, grad, c.tokens, c.batch, c.seq, c.batch); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Grad: %v, want an error with %q", err, c.want)
		}
	}
	if _, err := m.Grad(params, grad, good, 2, 10, 1); err == nil {
		t.Error("Grad of 2 sequences as part of 1: no error")
	}
}

func TestWhatIsNotFiniteIsReported(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	cfg := goldenConfig
	m := newModel(t, cfg, nil, 1, 10)
	tokens := randomTokens(cfg, 1, 10, r)
	for _, broken := range []float32{float32(math.NaN()), float32(math.Inf(1)), math.MaxFloat32} {
		params := randomParams(cfg, r)
		down, _ := m.layout.Find("model.layers.1.mlp.down_proj.weight")
		for i := range down.Len {
			params[down.Offset+i] = broken
		}
		if _, err := m.Loss(params, tokens, 1, 10); !errors.Is(err, ErrNotFinite) {
			t.Errorf("Loss with weights of %g: %v", broken, err)
		}
		if _, err := m.Grad(params, make([]float32, len(params)), tokens, 1, 10, 1); !errors.Is(err, ErrNotFinite) {
			t.Errorf("Grad with weights of %g: %v", broken, err)
		}
	}
	// A gradient that overflows while the loss does not: it is added to one that is nearly
	// infinite.
	params := randomParams(cfg, r)
	grad := make([]float32, len(params))
	gain, _ := m.layout.Find("model.norm.weight")
	grad[gain.Offset+3] = float32(math.Inf(1))
	_, err := m.Grad(params, grad, tokens, 1, 10, 1)
	if !errors.Is(err, ErrNotFinite) || !strings.Contains(err.Error(), `element 3 of the gradient of "model.norm.weight"`) {
		t.Errorf("Grad onto an infinity: %v", err)
	}
}
