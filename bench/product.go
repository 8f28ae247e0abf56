package bench

import (
	"context"
	"slices"
	"strconv"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/exact8"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/wire"
)

// squareSides are the sides of the squares that are multiplied.
var squareSides = [...]int{256, 512, 1024, 2048}

// A product is a shape of Gemm; ta and tb say that A or B is transposed in memory.
type product struct {
	name    string
	m, n, k int
	ta, tb  bool
}

// trainingProducts are the products of a step of the 10m preset at 2048 tokens: a layer's forward
// pass, and the gradients of its input (dx) and its weight (dw).
var trainingProducts = [...]product{
	{"qkv", 2048, 512, 256, false, true},
	{"gate-up", 2048, 1536, 256, false, true},
	{"gate-up dx", 2048, 256, 1536, false, false},
	{"gate-up dw", 1536, 256, 2048, true, false},
	{"down", 2048, 256, 768, false, true},
	{"head", 2048, 8192, 256, false, true},
	{"head dx", 2048, 256, 8192, false, false},
	{"head dw", 8192, 256, 2048, true, false},
}

// productNames are the names of the products in Report.Products, in their order.
func productNames() []string {
	var names []string
	for _, p := range trainingProducts {
		names = append(names, p.name)
	}
	return names
}

func (p product) operations() float64 { return 2 * float64(p.m) * float64(p.n) * float64(p.k) }

// on returns what computes the product.
func (p product) on(a, b, c []float32) func(pool *exact.Pool) func() error {
	ars, acs, brs, bcs := p.k, 1, p.n, 1
	if p.ta {
		ars, acs = 1, p.m
	}
	if p.tb {
		brs, bcs = 1, p.k
	}
	return func(pool *exact.Pool) func() error {
		return func() error {
			exact.Gemm(pool, p.m, p.n, p.k, a[:p.m*p.k], ars, acs, b[:p.k*p.n], brs, bcs, c[:p.m*p.n], p.n, false)
			return nil
		}
	}
}

// peakRounds is the number of rounds of multiply-adds that a worker does in one call, which takes
// longer than waking the workers.
const peakRounds = 1 << 20

// peak8Rounds is the same for products of bytes.
const peak8Rounds = 1 << 16

// measureProducts measures matrix products and, before and after each, the peak: speed that
// others take from the machine is missing in both.
func (b *bench) measureProducts(ctx context.Context, r *Report) error {
	b.progress("peak and matrix products")
	var all []product
	for _, n := range squareSides {
		all = append(all, product{strconv.Itoa(n), n, n, n, false, false})
	}
	all = append(all, trainingProducts[:]...)
	var sizeA, sizeB, sizeC int
	for _, p := range all {
		sizeA, sizeB, sizeC = max(sizeA, p.m*p.k), max(sizeB, p.k*p.n), max(sizeC, p.m*p.n)
	}
	x, y, z := random("a", sizeA), random("b", sizeB), make([]float32, sizeC)
	peak := b.peak()
	one, err := b.besidePeak(ctx, b.one, peak.one, all, x, y, z)
	if err != nil {
		return err
	}
	both := one
	if b.all != b.one {
		if both, err = b.besidePeak(ctx, b.all, peak.all, all, x, y, z); err != nil {
			return err
		}
	}
	r.Peak = peak.rate()
	r.Sgemm, r.SgemmOne, r.Products, r.ProdOne, r.Flops = Shares{}, Shares{}, Shares{}, Shares{}, map[string]Pair{}
	for i, p := range all {
		r.Flops[p.name] = Pair{one[i].rate, both[i].rate}
		if i < len(squareSides) {
			r.Sgemm[p.name], r.SgemmOne[p.name] = both[i].share, one[i].share
		} else {
			r.Products[p.name], r.ProdOne[p.name] = both[i].share, one[i].share
		}
	}
	return nil
}

// squares8 are the sides of the squares that are multiplied in 8 bits.
var squares8 = []int{1024, 2048}

// measure8 measures products in 8 bits, and the peak of products of bytes.
func (b *bench) measure8(ctx context.Context, r *Report) error {
	b.progress("products in 8 bits")
	side := slices.Max(squares8)
	x, y, z := random("a", side*side), random("b", side*side), make([]float32, side*side)
	peak := b.both(0, func(pool *exact.Pool) func() error {
		return func() error {
			pool.RunOn(pool.Workers(), func(w *exact.Worker, _ int) { exact8.Peak(w, peak8Rounds) })
			return nil
		}
	})
	for pool, t := range map[*exact.Pool]*Trial{b.one: peak.one, b.all: peak.all} {
		t.Work = float64(exact8.Peak(exact.NewWorker(pool.Kernel()), 1)) * peak8Rounds * float64(pool.Workers())
	}
	pairs := []pair{peak}
	for _, n := range squares8 {
		pairs = append(pairs, b.both(2*float64(n)*float64(n)*float64(n), func(pool *exact.Pool) func() error {
			m := exact8.NewMultiplier(pool)
			return func() error {
				m.Gemm(n, n, n, x, n, 1, y, 1, n, z, n, false)
				return nil
			}
		}))
	}
	if err := b.alternate(ctx, pairs...); err != nil {
		return err
	}
	r.Peak8, r.Gemm8 = peak.rate(), map[string]Pair{}
	for i, n := range squares8 {
		r.Gemm8[strconv.Itoa(n)] = pairs[1+i].rate()
	}
	return nil
}

// speed is a product's: operations a second, and the share of the peak, medians both.
type speed struct{ rate, share float64 }

// besidePeak measures products on a pool, and the peak before and after each.
func (b *bench) besidePeak(ctx context.Context, pool *exact.Pool, peak *Trial, all []product, x, y, z []float32) ([]speed, error) {
	trials := []*Trial{peak}
	for _, p := range all {
		trials = append(trials, &Trial{Work: p.operations(), Run: p.on(x, y, z)(pool)}, peak)
	}
	if err := Alternate(ctx, b.products, b.product, trials); err != nil {
		return nil, err
	}
	speeds := make([]speed, len(all))
	for i := range all {
		t := trials[1+2*i]
		shares := make([]float64, b.products)
		for round, seconds := range t.Seconds {
			at := round*(len(all)+1) + i // of the peak before
			shares[round] = t.Work / seconds / peak.rateOf(peak.Seconds[at:at+2])
		}
		speeds[i] = speed{t.rate(), Median(shares)}
	}
	return speeds, nil
}

// peak returns the trials of the peak. Their work is not known before: kernels differ in how much
// they do in a round.
func (b *bench) peak() pair {
	p := b.both(0, func(pool *exact.Pool) func() error {
		return func() error {
			doPeak(pool)
			return nil
		}
	})
	p.one.Work, p.all.Work = peakOperations(b.one), peakOperations(b.all)
	return p
}

// doPeak does as many multiply-adds as there are operations in a peak on each worker.
func doPeak(pool *exact.Pool) {
	pool.RunOn(pool.Workers(), func(w *exact.Worker, _ int) { w.Peak(peakRounds) })
}

// peakOperations returns the number of floating-point operations of doPeak.
func peakOperations(pool *exact.Pool) float64 {
	one := exact.NewWorker(pool.Kernel()).Peak(1)
	return float64(one) * peakRounds * float64(pool.Workers())
}

// random returns n numbers in [-1, 1).
func random(label string, n int) []float32 {
	source := prng.New(wire.Sum("entrain/bench"), label)
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(int32(source.Uint64()>>32)) / (1 << 31)
	}
	return x
}
