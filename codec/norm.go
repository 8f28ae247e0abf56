package codec

import (
	"fmt"
	"math"

	"github.com/entrain-network/entrain/codec/internal/vec"
	"github.com/entrain-network/entrain/exact"
)

// NormSegment is how many elements one task of Norm adds up. It is part of the definition of Norm:
// another number gives other bits.
const NormSegment = 1 << 14

// Squares are the partial sums of the squares of a segment of Norm.
type Squares [vec.Lanes]float64

// Add adds the squares of v, whose first element is number at of the segment.
func (s *Squares) Add(at int, v []float32) {
	for i, x := range v {
		s[(at+i)%len(s)] += float64(float64(x) * float64(x))
	}
}

// Sum folds the partial sums, which it destroys, into that of the segment.
func (s *Squares) Sum() float64 {
	for half := len(s) / 2; half > 0; half /= 2 {
		for i := range half {
			s[i] += s[i+half]
		}
	}
	return s[0]
}

// Norm returns the Euclidean norm of v. It is NaN or an infinity exactly if v holds a NaN or an
// infinity.
//
// The order of the sum is part of the definition: segments of 16384 elements; in each, element i is
// squared and added to partial sum i mod 16; the 16 are folded by halves (0+8, 1+9, ...; then 0+4,
// ...; 0+2, 1+3; 0+1); the segments' sums are added in their order, beginning with +0. All of it in
// binary64, in which the square of a binary32 is exact (so it is no matter whether a compiler fuses
// it into the sum) and no sum of such squares overflows.
func Norm(pool *exact.Pool, v []float32) float64 { return NewClipper(pool).norm(v) }

// Clip returns the factor, at most 1, which brings grad to a Euclidean norm of at most max; a max
// of 0 stands for no limit. The error wraps ErrNotFinite if grad holds a NaN or an infinity; a norm
// above NormMax is an error too. grad is not changed: the factor is to be multiplied into whatever
// else scales the gradient.
func Clip(pool *exact.Pool, grad []float32, max float32) (float32, error) {
	return NewClipper(pool).Clip(grad, max)
}

// A Clipper computes Clip again and again without allocating. It is for one goroutine at a time.
type Clipper struct {
	pool *exact.Pool
	loop vec.Kernel
	v    []float32 // while norm runs
	sums []float64 // of the segments
	work []Squares // of the workers
	add  func(w *exact.Worker, segment int)
}

// NewClipper returns a Clipper that works on a pool.
func NewClipper(pool *exact.Pool) *Clipper {
	c := &Clipper{pool: pool, loop: vec.For(pool.Kernel()), work: make([]Squares, pool.Workers())}
	c.add = func(w *exact.Worker, i int) {
		c.sums[i] = c.sumSquares(&c.work[w.Index()], c.v[i*NormSegment:min((i+1)*NormSegment, len(c.v))])
	}
	return c
}

func (c *Clipper) norm(v []float32) float64 {
	segments := (len(v) + NormSegment - 1) / NormSegment
	if cap(c.sums) < segments {
		c.sums = make([]float64, segments)
	}
	c.v, c.sums = v, c.sums[:segments]
	c.pool.RunOn(segments, c.add)
	c.v = nil // keeps no caller's memory alive
	var sum float64
	for _, s := range c.sums {
		sum += s
	}
	return math.Sqrt(sum)
}

// sumSquares adds up the squares of one segment in 16 interleaved partial sums.
func (c *Clipper) sumSquares(p *Squares, v []float32) float64 {
	*p = Squares{}
	c.loop.SumSquares(v, (*[vec.Lanes]float64)(p))
	return p.Sum()
}

// Clip is the function Clip.
func (c *Clipper) Clip(grad []float32, max float32) (float32, error) {
	norm := c.norm(grad)
	if math.IsNaN(norm) || math.IsInf(norm, 0) {
		return 0, fmt.Errorf("gradient at element %d: %w", exact.Finite(grad), ErrNotFinite)
	}
	return Factor(norm, max)
}

// Factor is Clip for a gradient whose norm is known.
func Factor(norm float64, max float32) (float32, error) {
	if math.IsNaN(norm) || math.IsInf(norm, 0) {
		return 0, fmt.Errorf("gradient of norm %g: %w", norm, ErrNotFinite)
	}
	if norm > NormMax {
		return 0, fmt.Errorf("gradient has norm %g, more than %g: the batch or the model is broken: %w", norm, float64(NormMax), ErrTooLarge)
	}
	if max == 0 || norm <= float64(max) {
		return 1, nil
	}
	return float32(float64(max) / norm), nil
}
