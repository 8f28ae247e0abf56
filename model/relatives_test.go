package model

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/tokenizer"
)

// python starts a program of testdata with pipes, or skips the test if a package is missing.
func python(t *testing.T, packages string, args ...string) (io.WriteCloser, *bufio.Scanner) {
	t.Helper()
	// To find packages takes less time than to import them.
	find := fmt.Sprintf("import importlib.util as u; assert all(u.find_spec(p) for p in %q.split())", packages)
	if err := exec.Command("python3", "-c", find).Run(); err != nil {
		t.Skipf("no python3 with %s in PATH: .ci/run installs one", packages)
	}
	cmd := exec.Command("python3", args...)
	cmd.Stderr = os.Stderr
	cmd.Env = append(os.Environ(), "HF_HUB_OFFLINE=1", "TRANSFORMERS_VERBOSITY=error", "HF_HUB_DISABLE_PROGRESS_BARS=1", "TQDM_DISABLE=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil && !t.Failed() {
			t.Errorf("%v: %v", args, err)
		}
	})
	return in, bufio.NewScanner(out)
}

// Models of every class that is imported compute what transformers computes: logits, loss and
// gradient, of all tokens and under a mask; and what is written of them is the same model to
// transformers.
func TestRelativesOfLlamaComputeWhatTransformersComputes(t *testing.T) {
	dir := t.TempDir()
	words := filepath.Join(dir, "tokenizer.json")
	if err := os.WriteFile(words, tokenizer.Bytes{}.JSON(), 0o600); err != nil {
		t.Fatal(err)
	}
	in, out := python(t, "torch transformers safetensors peft", "testdata/relatives.py", dir, words)
	if !out.Scan() || !strings.HasPrefix(out.Text(), "made ") {
		t.Fatalf("no models were made: %q", out.Text())
	}
	for _, name := range strings.Fields(out.Text())[1:] {
		t.Run(name, func(t *testing.T) {
			m, err := Import(filepath.Join(dir, name), "")
			if err != nil {
				t.Fatal(err)
			}
			for _, kind := range []string{"", "-masked"} {
				compareWithTransformers(t, m, filepath.Join(dir, name+kind))
			}
			folded := map[string]float64{"granite": 0.5, "granite-tied": 0.5, "ernie": 1e-4, "seed": 0} // in BF16
			_, other := folded[name]
			other = other || name == "mistral-no-window" || name == "phi"
			for _, typ := range []checkpoint.DType{checkpoint.F32, checkpoint.BF16} {
				most := folded[name]
				if typ == checkpoint.F32 {
					most = min(most, 1e-4)
				}
				back := filepath.Join(dir, fmt.Sprint(name, "-", typ))
				if _, err := Write(t.Context(), back, m, checkpoint.Options{DType: typ, ShardBytesMax: 100_000}); err != nil {
					t.Fatal(err)
				}
				fmt.Fprintln(in, name, back)
				var worst float64
				var is string
				var same string
				if !out.Scan() {
					t.Fatal("transformers did not load what was written")
				}
				if _, err := fmt.Sscan(out.Text(), &worst, &is, &same); err != nil || worst > most || same != "True" && !other {
					t.Errorf("as %v transformers says %q, %v", typ, out.Text(), err)
				}
				if want := map[checkpoint.DType]string{checkpoint.F32: "float32", checkpoint.BF16: "bfloat16"}[typ]; is != want {
					t.Errorf("written as %v it is %s", typ, is)
				}
			}
		})
	}
	t.Run("adapters", func(t *testing.T) { testAdapters(t, in, out) })
}

// compareWithTransformers compares m with what relatives.py says in path.
func compareWithTransformers(t *testing.T, m checkpoint.Model, path string) {
	t.Helper()
	grad := compareAnswers(t, LlamaConfig(m.Config), m.Params, path)
	if far, where := gradientsApart(t, path+".grad", m.Layout, grad); !(far <= 1e-4) {
		t.Errorf("the gradient of %s differs by %g of its norm", where, far)
	}
}

// compareAnswers compares logits and loss with those in path.json, and returns the gradient of the mean over the tokens that have labels.
func compareAnswers(t *testing.T, cfg llama.Config, params []float32, path string) []float32 {
	t.Helper()
	text, err := os.ReadFile(path + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var theirs struct {
		Tokens []uint32
		Labels []int64 // -100: none; empty: the tokens
		Logits []float32
		Loss   float64
	}
	if err := json.Unmarshal(text, &theirs); err != nil {
		t.Fatal(err)
	}
	const batch, seq = 2, 96
	reader, err := llama.NewGenerator(cfg, params, exact.NewPool(1))
	if err != nil {
		t.Fatal(err)
	}
	worst := 0.0
	for i, token := range theirs.Tokens[:seq] {
		logits, err := reader.Read(token)
		if err != nil {
			t.Fatal(err)
		}
		for j, v := range logits {
			worst = max(worst, math.Abs(float64(v-theirs.Logits[i*cfg.Vocab+j])))
		}
	}
	pool := exact.NewPool(2)
	defer pool.Close()
	trainer, err := llama.New(cfg, pool, batch, seq)
	if err != nil {
		t.Fatal(err)
	}
	for i, label := range theirs.Labels {
		if label < 0 {
			theirs.Tokens[i] |= llama.Masked
		}
	}
	grad := make([]float32, len(params))
	loss, err := trainer.Grad(params, grad, theirs.Tokens, batch, seq, batch)
	if err != nil {
		t.Fatal(err)
	}
	for i := range grad { // Grad's is over all tokens
		grad[i] *= float32(batch*seq) / float32(llama.Learnt(theirs.Tokens, seq))
	}
	t.Logf("logits differ by %.1e, the loss of %.4f by %.1e", worst, theirs.Loss, math.Abs(float64(loss)-theirs.Loss))
	if worst > 1e-4 || math.Abs(float64(loss)-theirs.Loss) > 1e-5 {
		t.Error("that is too much")
	}
	return grad
}

// gradientsApart returns the greatest distance between a tensor's gradient and that in a file, as a part of its norm, and the tensor.
func gradientsApart(t *testing.T, path string, layout tensor.Layout, grad []float32) (far float64, where string) {
	t.Helper()
	want := make([]float32, layout.Len())
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if err := checkpoint.ReadSafetensors(file, uint64(info.Size()), layout, want, func(checkpoint.Entry) error { return nil }); err != nil {
		t.Fatal(err)
	}
	for _, x := range layout.Tensors() {
		var apart, size float64
		for i, v := range x.Of(want) {
			apart += math.Pow(float64(x.Of(grad)[i]-v), 2)
			size += float64(v) * float64(v)
		}
		if d := math.Sqrt(apart / size); d > far || size == 0 {
			far, where = d, x.Name
		}
	}
	t.Logf("gradients differ by %.1e of their norm (%s)", far, where)
	return far, where
}
