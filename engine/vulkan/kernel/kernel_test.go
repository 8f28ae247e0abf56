package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/entrain-network/entrain/engine/vulkan/gpu"
	"github.com/entrain-network/entrain/exact"
)

// opened is the kernels of the first device, in the mode that it takes.
var opened = sync.OnceValues(func() (*Kernels, error) {
	i, err := gpu.Open()
	if err != nil {
		return nil, err
	}
	d, err := i.Device(0)
	if err != nil {
		return nil, err
	}
	least, err := Least(d)
	if err != nil {
		return nil, err
	}
	return New(d, least)
})

func kernels(t testing.TB) *Kernels {
	t.Helper()
	k, err := opened()
	if err != nil {
		t.Skipf("%v (Debian's package mesa-vulkan-drivers has a device that needs no GPU)", err)
	}
	t.Logf("%s, %s, %v", k.Device.Name, k.Device.DriverInfo, k.Mode)
	return k
}

// put makes a buffer of x, and get reads one.
func put[T float32 | uint32](t testing.TB, k *Kernels, x []T) gpu.Words {
	t.Helper()
	w, err := k.Device.New(len(x))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Free)
	if err := gpu.Write(w, x); err != nil {
		t.Fatal(err)
	}
	return w
}

func get(t testing.TB, w gpu.Words) []float32 {
	t.Helper()
	x := make([]float32, w.Len)
	if err := gpu.Read(x, w); err != nil {
		t.Fatal(err)
	}
	return x
}

func run(t testing.TB, k *Kernels, f func(c *gpu.Commands)) {
	t.Helper()
	if err := k.Device.Run(f); err != nil {
		t.Fatal(err)
	}
}

func compare(t *testing.T, what string, got, want []float32) {
	t.Helper()
	f := Finding{Operation: what, Class: "test", Compared: len(want)}
	for i := range want {
		f.Compare(got[i], want[i], func() string { return fmt.Sprintf("element %d", i) })
	}
	if f.Wrong > 0 {
		t.Error(f)
	}
}

// numbers returns random numbers, hostile ones with subnormals and zeros of both signs.
func numbers(r *rand.Rand, n int, hostile bool) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64() * math.Exp(2*r.NormFloat64()))
		if hostile {
			switch r.IntN(64) {
			case 0, 1, 2, 3:
				x[i] = float32(math.Copysign(0, r.NormFloat64()))
			case 4, 5, 6, 7:
				x[i] = math.Float32frombits(r.Uint32() & 0x80ffffff)
			case 8, 9:
				x[i] *= 0x1p-100
			}
		}
	}
	return x
}

func TestTheDeviceIsProven(t *testing.T) {
	k := kernels(t)
	findings, err := Prove(k)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		if f.Wrong > 0 {
			t.Error(f)
		}
	}
	if len(findings) < 40 {
		t.Errorf("only %d findings", len(findings))
	}
}

// A device in a mode that leaves out what it needs is found out.
func TestAWrongModeIsNotProven(t *testing.T) {
	k := kernels(t)
	if k.Mode == 0 {
		t.Skip("this device is right in the plainest mode")
	}
	plain, err := New(k.Device, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	findings, err := Prove(plain)
	if err != nil {
		t.Fatal(err)
	}
	if Proven(findings) {
		t.Errorf("%v is right too", plain.Mode)
	}
}

func TestRowsAreThoseOfTheProcessor(t *testing.T) {
	k := kernels(t)
	r := rand.New(rand.NewPCG(6, 6))
	for _, hostile := range []bool{false, true} {
		for _, c := range []struct{ batch, seq, n int }{{1, 5, 7}, {2, 70, 100}} {
			name := fmt.Sprintf("%v, hostile %v: ", c, hostile)
			make := func(n int) []float32 { return numbers(r, n, hostile) }
			testNorm(t, k, name, c.batch, c.seq, c.n, make)
			testGate(t, k, name, c.batch*c.seq, c.n, make)
			testHeads(t, k, name, c.batch, c.seq, make)
			testSoftmax(t, k, name, c.seq, 0, make)
			testSoftmax(t, k, name+"window, ", c.seq, 19, make)
			testCrossEntropy(t, k, name, c.batch, c.seq, c.n, make, r)
		}
	}
}

var worker = exact.NewWorker(exact.Kernels()[0])

func testNorm(t *testing.T, k *Kernels, name string, batch, seq, n int, make_ func(n int) []float32) {
	rows := batch * seq
	x, g, dy, dx, dg := make_(rows*n), make_(n), make_(rows*n), make_(rows*n), make_(n)
	y, inv, partial := make([]float32, rows*n), make([]float32, rows), make([]float32, batch*up(seq, 64)*n)
	bx, bg, bdy, bdx, bdg := put(t, k, x), put(t, k, g), put(t, k, dy), put(t, k, dx), put(t, k, dg)
	by, binv, again := put(t, k, y), put(t, k, inv), put(t, k, y)
	bpartial, kept := put(t, k, partial), put(t, k, y)
	run(t, k, func(c *gpu.Commands) {
		k.RMSNorm(c, by, bx, bg, binv, kept, rows, n, 1e-5)
		k.Normalize(c, again, bx, bg, binv, rows, n)
		k.RMSNormBackward(c, bdx, bdg, bdy, bx, bg, binv, bpartial, batch, seq, n)
	})
	for s := range batch {
		for low := 0; low < seq; low += 64 {
			partial := make([]float32, n)
			for i := s*seq + low; i < s*seq+min(low+64, seq); i++ {
				inv[i] = worker.RMSNorm(y[i*n:(i+1)*n], x[i*n:(i+1)*n], g, 1e-5)
				worker.RMSNormBackward(dx[i*n:(i+1)*n], partial, dy[i*n:(i+1)*n], x[i*n:(i+1)*n], g, inv[i])
			}
			worker.Add(dg, partial)
		}
	}
	compare(t, name+"norm", get(t, by), y)
	compare(t, name+"norm's input", get(t, kept), x)
	compare(t, name+"norm again", get(t, again), y)
	compare(t, name+"1/rms", get(t, binv), inv)
	compare(t, name+"norm's dx", get(t, bdx), dx)
	compare(t, name+"norm's dg", get(t, bdg), dg)
}

func testGate(t *testing.T, k *Kernels, name string, rows, n int, make_ func(n int) []float32) {
	gu, dh := make_(2*rows*n), make_(rows*n)
	bgu, bdh, bh := put(t, k, gu), put(t, k, dh), put(t, k, make([]float32, rows*n))
	run(t, k, func(c *gpu.Commands) {
		k.SwiGLU(c, bh, bgu, rows, n)
		k.SwiGLUBackward(c, bdh, bgu, rows, n)
	})
	h := make([]float32, rows*n)
	for i := range rows {
		gate, u := gu[2*i*n:(2*i+1)*n], gu[(2*i+1)*n:2*(i+1)*n]
		worker.SwiGLU(h[i*n:(i+1)*n], gate, u)
		worker.SwiGLUBackward(dh[i*n:(i+1)*n], gate, u)
	}
	compare(t, name+"SwiGLU", get(t, bh), h)
	compare(t, name+"SwiGLU's gradient", get(t, bgu), gu)
	compare(t, name+"SwiGLU's dh", get(t, bdh), dh)
}

// testHeads compares norms of heads, and biases, with what package llama does.
func testHeads(t *testing.T, k *Kernels, name string, batch, seq int, make_ func(n int) []float32) {
	h := Heads{Queries: 3, Keys: 2, Width: 9, Row: 70}
	rows, all, d := batch*seq, h.all(), h.Width
	x, gains, bias := make_(rows*h.Row), make_(2*d), make_(h.Row)
	dy, dgains, dbias := make_(rows*h.Row), make_(2*d), make_(h.Row)
	bx, bgains, bbias := put(t, k, x), put(t, k, gains), put(t, k, bias)
	bdy, bdgains, bdbias := put(t, k, dy), put(t, k, dgains), put(t, k, dbias)
	inv, kept := put(t, k, make([]float32, rows*all)), put(t, k, make([]float32, rows*all*d))
	partial := put(t, k, make([]float32, batch*up(seq, 64)*h.Row))
	run(t, k, func(c *gpu.Commands) {
		k.AddBias(c, bx, bbias, rows, h.Row)
		k.NormHeads(c, bx, bgains, inv, kept, h, rows, 1e-5)
		k.NormHeadsBackward(c, bdy, bdgains, kept, bgains, inv, partial, h, batch, seq)
		k.AddBiasBackward(c, bdbias, bdy, partial, batch, seq, h.Row)
	})
	for s := range batch {
		for low := 0; low < seq; low += 64 {
			from, to := s*seq+low, s*seq+min(low+64, seq)
			for i := from; i < to; i++ {
				worker.Add(x[i*h.Row:(i+1)*h.Row], bias)
			}
			for n := range all {
				sums, at := make([]float32, d), n/h.Queries*d // of keys behind those of queries
				for i := from; i < to; i++ {
					y, dx := x[i*h.Row+n*d:][:d], dy[i*h.Row+n*d:][:d]
					was, dwas := slices.Clone(y), slices.Clone(dx)
					k := worker.RMSNorm(y, was, gains[at:at+d], 1e-5)
					clear(dx)
					worker.RMSNormBackward(dx, sums, dwas, was, gains[at:at+d], k)
				}
				worker.Add(dgains[at:at+d], sums)
			}
			sums := make([]float32, h.Row)
			for i := from; i < to; i++ {
				worker.Add(sums, dy[i*h.Row:(i+1)*h.Row])
			}
			worker.Add(dbias, sums)
		}
	}
	compare(t, name+"norm of heads", get(t, bx), x)
	compare(t, name+"norm of heads' dx", get(t, bdy), dy)
	compare(t, name+"norm of heads' dg", get(t, bdgains), dgains)
	compare(t, name+"bias", get(t, bdbias), dbias)
}

func testSoftmax(t *testing.T, k *Kernels, name string, seq, window int, make_ func(n int) []float32) {
	scores, dp := make_(seq*seq), make_(seq*seq)
	bs, bdp := put(t, k, scores), put(t, k, dp)
	of := Scores{Rows: seq, Width: seq, Each: seq, Window: window, Scale: 0.125}
	run(t, k, func(c *gpu.Commands) {
		k.Softmax(c, bs, of)
		k.SoftmaxBackward(c, bdp, bs, of)
	})
	for i := range seq {
		row, drow := scores[i*seq:(i+1)*seq], dp[i*seq:(i+1)*seq]
		first := 0
		if window > 0 {
			first = max(0, i+1-window)
		}
		for j := range first { // as package llama does
			row[j], drow[j] = float32(math.Inf(-1)), 0
		}
		worker.Softmax(row[:i+1], 0.125)
		worker.SoftmaxBackward(drow[:i+1], row[:i+1], 0.125)
		clear(drow[:first])
		clear(row[i+1 : min(seq, i/64*64+64)])
		clear(drow[i+1 : min(seq, i/64*64+64)])
	}
	compare(t, name+"softmax", get(t, bs), scores)
	compare(t, name+"softmax's gradient", get(t, bdp), dp)
}

func testCrossEntropy(t *testing.T, k *Kernels, name string, batch, seq, n int, make_ func(n int) []float32, r *rand.Rand) {
	rows := batch * seq
	tokens := make([]uint32, batch*(seq+1))
	for i := range tokens {
		tokens[i] = uint32(r.IntN(n))
	}
	logits := make_(rows * n)
	bl, out := put(t, k, logits), put(t, k, make([]float32, 2*rows))
	bt, weight := put(t, k, tokens), put(t, k, []float32{0.01})
	run(t, k, func(c *gpu.Commands) { k.CrossEntropy(c, bl, bt, out, weight, rows, 0, n, seq, false) })
	pairs, losses, want := get(t, out), make([]float32, rows), make([]float32, rows)
	for i := range rows {
		want[i] = worker.CrossEntropy(logits[i*n:(i+1)*n], int(tokens[i+i/seq+1]), 0.01)
		losses[i] = exact.Log(pairs[2*i]) - pairs[2*i+1]
	}
	compare(t, name+"cross-entropy", losses, want)
	compare(t, name+"cross-entropy's gradient", get(t, bl), logits)
}

// More workgroups than one dimension may hold are spread over two.
func TestLongRowsOfWorkgroupsAreSpread(t *testing.T) {
	k := kernels(t)
	const n, rows = 1, 5 << 20
	table, tokens := put(t, k, []float32{1, 2, 3}), make([]uint32, rows+1)
	for i := range tokens {
		tokens[i] = uint32(i % 3)
	}
	x := put(t, k, make([]float32, rows))
	bt := put(t, k, tokens)
	run(t, k, func(c *gpu.Commands) { k.Embed(c, x, table, bt, rows, n, rows) })
	for i, y := range get(t, x) {
		if y != float32(i%3+1) {
			t.Fatalf("row %d is %v", i, y)
		}
	}
}

// The root that AdamW takes is correctly rounded: near each square of a float's neighbours,
// where the device's own root is most likely to be wrong, and for subnormals.
func TestRoots(t *testing.T) {
	k := kernels(t)
	r := rand.New(rand.NewPCG(7, 7))
	const n = 1 << 14
	v := make([]float32, n)
	for i := range v {
		q := 1 + r.Float64()
		v[i] = math.Float32frombits(math.Float32bits(float32(math.Ldexp(q*q, r.IntN(250)-125))) + r.Uint32N(3) - 1)
		if i%8 == 0 {
			v[i] = math.Float32frombits(r.Uint32N(1 << 23))
		}
	}
	zeros := make([]float32, n)
	ones := slices.Repeat([]float32{1}, n)
	// 0 - 1/(sqrt(v)·1 + 2^-60), of which the last term is lost where the root is a normal one.
	step := exact.AdamWStep{Beta1: 1, Beta2: 1, Keep: 1, Rate: 1, Scale: 1, Eps: 0x1p-60}
	x, m, square, g := put(t, k, zeros), put(t, k, ones), put(t, k, v), put(t, k, zeros)
	run(t, k, func(c *gpu.Commands) { k.AdamW(c, x, m, square, g, n, 1, step) })
	want := slices.Clone(zeros)
	exact.NewWorker(exact.Kernels()[0]).AdamW(want, slices.Clone(ones), slices.Clone(v), slices.Clone(zeros), step)
	compare(t, "roots", get(t, x), want)
}
