package bench

import (
	"context"
	"strconv"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/wire"
)

// SquareSides are the sides of the squares that are multiplied.
var SquareSides = [...]int{256, 512, 1024, 2048}

// A product is a shape of Gemm; ta and tb say that A or B is transposed in memory.
type product struct {
	name    string
	m, n, k int
	ta, tb  bool
}

// trainingProducts are those of a step of the 10m preset at 2048 tokens: a layer's forward, its input's gradient (dx) and its weight's (dw).
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

// ProductNames are the names of the products in Report.Products, in their order.
func ProductNames() []string {
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

// peakRounds is how many rounds of multiply-adds a worker does in one call.
const peakRounds = 1 << 16

// measureProducts measures the peak and, beside it, matrix products.
func (b *bench) measureProducts(ctx context.Context, r *Report) error {
	b.progress("peak and matrix products")
	var all []product
	for _, n := range SquareSides {
		all = append(all, product{strconv.Itoa(n), n, n, n, false, false})
	}
	all = append(all, trainingProducts[:]...)
	var sizeA, sizeB, sizeC int
	for _, p := range all {
		sizeA, sizeB, sizeC = max(sizeA, p.m*p.k), max(sizeB, p.k*p.n), max(sizeC, p.m*p.n)
	}
	x, y, z := random("a", sizeA), random("b", sizeB), make([]float32, sizeC)
	pairs := []pair{b.peak()}
	for _, p := range all {
		pairs = append(pairs, b.both(p.operations(), p.on(x, y, z)))
	}
	if err := b.alternate(ctx, pairs...); err != nil {
		return err
	}
	r.Peak = pairs[0].best()
	r.Sgemm, r.SgemmOne, r.Products, r.ProdOne = Shares{}, Shares{}, Shares{}, Shares{}
	for i, p := range all {
		share := pairs[1+i].rate().over(r.Peak)
		if i < len(SquareSides) {
			r.Sgemm[p.name], r.SgemmOne[p.name] = share.All, share.One
		} else {
			r.Products[p.name], r.ProdOne[p.name] = share.All, share.One
		}
	}
	return nil
}

// peak returns the trials of the peak. Their work is not known before: kernels differ in how much they do in a round.
func (b *bench) peak() pair {
	p := b.both(0, func(pool *exact.Pool) func() error {
		return func() error {
			pool.RunOn(pool.Workers(), func(w *exact.Worker, _ int) { w.Peak(peakRounds) })
			return nil
		}
	})
	operations := float64(exact.NewWorker(b.one.Kernel()).Peak(peakRounds))
	p.one.work, p.all.work = operations, operations*float64(b.all.Workers())
	return p
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
