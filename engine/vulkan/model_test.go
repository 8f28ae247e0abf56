package vulkan

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/engine/vulkan/gpu"
	"github.com/entrain-network/entrain/engine/vulkan/vk"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/tests/campaign"
	"github.com/entrain-network/entrain/wire"
)

// The configurations are those of llama's golden test.
var (
	small  = llama.Config{Vocab: 19, Hidden: 12, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 6, FFN: 13, Context: 100, Theta: 10000, Eps: 1e-5}
	untied = llama.Config{Vocab: 53, Hidden: 28, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 10, FFN: 41, Context: 100, Theta: 10000, Eps: 1e-5}
)

func with(c llama.Config, change func(c *llama.Config)) llama.Config {
	change(&c)
	return c
}

func tied(c llama.Config) llama.Config {
	return with(c, func(c *llama.Config) { c.Tied = true })
}

// eight is a configuration in 8 bits.
func eight(c llama.Config, ffn int) llama.Config {
	return with(c, func(c *llama.Config) { c.Numerics, c.HeadDim, c.FFN = llama.Exact8, 32, ffn })
}

func random(cfg llama.Config, n int, r *rand.Rand) []uint32 {
	tokens := make([]uint32, n)
	for i := range tokens {
		tokens[i] = uint32(r.IntN(cfg.Vocab))
	}
	return tokens
}

// golden reads llama's golden hashes by name.
func golden(t *testing.T) map[string]string {
	t.Helper()
	b, err := os.ReadFile("../../llama/testdata/golden.txt")
	if err != nil {
		t.Fatal(err)
	}
	hashes := map[string]string{}
	for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
		if f := strings.Fields(s.Text()); len(f) == 2 {
			hashes[f[0]] = f[1]
		}
	}
	return hashes
}

// Twenty steps of gradient descent reach the hashes that package llama reaches.
func TestTwentyStepsReachTheGoldenHashes(t *testing.T) {
	d := device(t)
	want := golden(t)
	for _, c := range []struct {
		name string
		cfg  llama.Config
		seq  int
	}{{"small", small, 20},
		{"bias-small", with(small, func(c *llama.Config) { c.Bias, c.Tied = true, true }), 40},
		{"heads-small", with(small, func(c *llama.Config) { c.QKNorm = true }), 40},
		{"window-small", with(small, func(c *llama.Config) { c.Window, c.Rope = 17, llama.Rope{Factor: 8, Low: 1, High: 4, Original: 32} }), 40},
		{"exact8-small", eight(small, 32), 40},
	} {
		if strings.TrimPrefix(c.name, "exact8-") == "small" && !campaign.Whole() {
			continue // TestEngine has models without more
		}
		t.Run(c.name, func(t *testing.T) {
			const batch, steps = 2, 20
			m, err := d.NewModel(c.cfg, c.seq, batch, false, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			params := llama.Init(c.cfg, wire.Sum("golden"))
			r := rand.New(rand.NewPCG(20, 20))
			h := sha256.New()
			for range steps {
				grad, loss := gradient(t, m, params, random(c.cfg, batch*(c.seq+1), r), batch, batch)
				for i := range params {
					params[i] -= float32(0.5 * grad[i])
				}
				fmt.Fprintf(h, "%08x", math.Float32bits(loss))
			}
			h.Write(tensor.Bytes(params))
			if got := hex.EncodeToString(h.Sum(nil)); got != want[c.name] {
				t.Errorf("hash %s, want %q", got, want[c.name])
			}
		})
	}
}

// gradient computes a share of n sequences, at most each at once.
func gradient(t *testing.T, m *Model, params []float32, tokens []uint32, n, each int) (grad []float32, loss float32) {
	t.Helper()
	if err := m.Start(params, 0, true); err != nil {
		t.Fatal(err)
	}
	for from := 0; from < n; from += each {
		k := min(each, n-from)
		l, err := m.Grad(tokens[from*(m.seq+1):(from+k)*(m.seq+1)], k, n)
		if err != nil {
			t.Fatal(err)
		}
		loss = l
	}
	grad = make([]float32, len(params))
	if err := m.Gradient(grad); err != nil {
		t.Fatal(err)
	}
	return grad, loss
}

// However logits, attention and sequences are cut, the bits are those of package llama.
func TestPartsAddUpToTheSameBits(t *testing.T) {
	d := device(t)
	defer func(a, b, c int) { logitsFloats, scoresFloats, rowsTied = a, b, c }(logitsFloats, scoresFloats, rowsTied)
	const n, seq = 3, 70
	for _, cfg := range []llama.Config{
		with(untied, func(c *llama.Config) { c.Rope, c.Window = llama.Rope{Factor: 8, Low: 1, High: 4, Original: 20}, 23 }),
		with(tied(untied), func(c *llama.Config) { c.Bias = true }),
		with(tied(eight(untied, 64)), func(c *llama.Config) { c.QKNorm = true }),
	} {
		pool := exact.NewPool(1)
		defer pool.Close()
		host, err := llama.New(cfg, pool, n, seq)
		if err != nil {
			t.Fatal(err)
		}
		params := llama.Init(cfg, wire.Sum("parts"))
		tokens, want := random(cfg, n*(seq+1), rand.New(rand.NewPCG(3, 3))), make([]float32, len(params))
		for i := range tokens { // of the second sequence nothing is learnt
			if i%3 == 0 || i/(seq+1) == 1 {
				tokens[i] |= llama.Masked
			}
		}
		wantLoss, err := host.Grad(params, want, tokens, n, seq, n)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range []struct{ logits, scores, rows, most, each int }{
			{37 * cfg.Vocab, 2 * seq * seq, 1, 3, 3}, // rows of logits by 37, attention by one group of heads; of a tied model one sequence
			{1, 8 * seq * seq, 2 * seq, 2, 3},        // by 1, by two sequences; sequences by two
			{1 << 20, 64 * seq, 9 * seq, 3, 3},       // attention by 64 queries of a head
		} {
			logitsFloats, scoresFloats, rowsTied = v.logits, v.scores, v.rows
			m, err := d.NewModel(cfg, seq, v.most, false, nil)
			if err != nil {
				t.Fatal(err)
			}
			var taken uint64
			for _, x := range m.all {
				taken += 4 * uint64(x.Len)
			}
			if taken != m.Memory() {
				t.Errorf("%+v: %d bytes are taken, %d were estimated", v, taken, m.Memory())
			}
			if got, loss := gradient(t, m, params, tokens, n, v.each); !slices.Equal(got, want) || loss != wantLoss {
				t.Errorf("%+v, tied %v: another gradient, or loss %v instead of %v", v, cfg.Tied, loss, wantLoss)
			}
			if loss, err := m.Loss(tokens[seq+1:2*(seq+1)], 1); loss != 0 || err != nil {
				t.Errorf("the loss of a sequence of which nothing is learnt is %v, %v", loss, err)
			}
			m.Close()
		}
	}
}

// Fewer sequences are computed at once if the device's memory is too small for all, to the same bits,
// and a model that cannot fit is refused before any of it is allocated.
func TestModelsFitTheDevicesMemory(t *testing.T) {
	d := device(t)
	const seq = 20
	defer func(n uint64) { d.k.Device.MemoryBytes = n }(d.k.Device.MemoryBytes)
	params, tokens := llama.Init(small, wire.Sum("fit")), random(small, 4*(seq+1), rand.New(rand.NewPCG(6, 6)))
	var want []float32
	for _, c := range []struct {
		limit uint64
		most  int
	}{{Memory(small, seq, 4, false, nil) * 2, 4}, {Memory(small, seq, 3, false, nil), 2}, {Memory(small, seq, 1, false, nil), 1}} {
		d.k.Device.MemoryBytes = c.limit
		m, err := d.NewModel(small, seq, 4, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := gradient(t, m, params, tokens, 4, 4)
		if want == nil {
			want = got
		}
		if m.sequences != c.most || !slices.Equal(got, want) {
			t.Errorf("%d bytes: %d sequences at once, want %d, same gradient %v", c.limit, m.sequences, c.most, slices.Equal(got, want))
		}
		m.Close()
	}
	d.k.Device.MemoryBytes = Memory(small, seq, 1, false, nil) - 1
	if _, err := d.NewModel(small, seq, 4, false, nil); !errors.Is(err, vk.OutOfDeviceMemory) || !strings.Contains(err.Error(), "one sequence of the model takes") {
		t.Errorf("the error is %v", err)
	}
}

// Whatever the device has wrong, in the end one of the random tiles shows it.
func TestTheAuditFindsOtherBits(t *testing.T) {
	d := device(t)
	const seq = 20
	m, err := d.NewModel(small, seq, 2, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	params := llama.Init(small, wire.Sum("audit"))
	tokens := random(small, 2*(seq+1), rand.New(rand.NewPCG(4, 4)))
	for _, c := range []struct {
		name string
		at   gpu.Words
	}{
		{"attention's output", m.m.layers[1].x2}, {"attention's output", m.m.layers[0].att}, {"the gradient of an input", m.m.dh},
		{"the gradient of a weight", m.m.grad.layers[0].qkv}, {"attention's probabilities", m.m.p},
	} {
		gradient(t, m, params, tokens, 2, 2)
		m.fresh = true
		if err := m.audit(2); err != nil {
			t.Fatalf("before anything is wrong: %v", err)
		}
		values := make([]float32, c.at.Len)
		if err := gpu.Read(values, c.at); err != nil {
			t.Fatal(err)
		}
		for i := range values {
			values[i] += 1
		}
		if err := gpu.Write(c.at, values); err != nil {
			t.Fatal(err)
		}
		err := error(nil)
		for range 100 {
			if err = m.audit(2); err != nil {
				break
			}
		}
		if !errors.As(err, new(differs)) || !strings.Contains(err.Error(), c.name) {
			t.Errorf("%s is wrong, and the audit says %v", c.name, err)
		}
	}
}

// What is no model, and what no share has, is refused before the device sees it.
func TestTokensAndModelsAreChecked(t *testing.T) {
	d := device(t)
	m, err := d.NewModel(small, 20, 2, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	other := small
	other.Heads = 0
	if _, err := d.NewModel(other, 20, 2, false, nil); err == nil {
		t.Error("a model without heads")
	}
	if _, err := d.NewModel(with(small, func(c *llama.Config) { c.Vocab = 400_000 }), 20, 1, false, nil); err == nil || !strings.Contains(err.Error(), "75000 iterations") {
		t.Errorf("loops that a driver may end: %v", err)
	}
	params := llama.Init(small, wire.Sum("tokens"))
	if err := m.Start(params, 0, true); err != nil {
		t.Fatal(err)
	}
	beyond := make([]uint32, 21)
	beyond[7] = uint32(small.Vocab)
	for name, tokens := range map[string][]uint32{"beyond": beyond, "short": make([]uint32, 20)} {
		if _, err := m.Grad(tokens, 1, 1); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	params[3] = float32(math.Inf(1))
	if err := m.Start(params, 0, false); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Loss(make([]uint32, 21), 1); err == nil {
		t.Error("a loss of infinite parameters is finite")
	}
}
