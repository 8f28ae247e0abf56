package codec

import (
	"fmt"
	"math"

	"github.com/entrain-network/entrain/codec/internal/vec"
	"github.com/entrain-network/entrain/exact"
)

// NormSegment is the number of elements that one task of Norm sums. It is part of the definition of
// Norm: another number gives other bits.
const NormSegment = 1 << 14

// Squares are the partial sums of squares of a segment.
type Squares [vec.Lanes]float64

// Add adds the squares of v, whose first element is number at of the segment.
func (s *Squares) Add(at int, v []float32) {
	for i, x := range v {
		s[(at+i)%len(s)] += float64(float64(x) * float64(x))
	}
}

// Sum returns the sum of the partial sums, which it overwrites.
func (s *Squares) Sum() float64 {
	for half := len(s) / 2; half > 0; half /= 2 {
		for i := range half {
			s[i] += s[i+half]
		}
	}
	return s[0]
}

// Norm returns the Euclidean norm of v. It is NaN or infinite if and only if v holds a NaN or an
// infinity.
//
// The order of the sum is part of the definition. v is divided into segments of 16384 elements. In
// each, the square of element i is added to partial sum i mod 16, and the 16 sums are folded by
// halves (0+8, 1+9, ...; then 0+4, ...; 0+2, 1+3; 0+1). The segments' sums are added in order,
// starting with +0. All of it is binary64, in which the square of a binary32 is exact, so that
// fusing changes nothing, and no sum of such squares overflows.
func Norm(pool *exact.Pool, v []float32) float64 { return NewClipper(pool).norm(v) }

// Clip returns the factor, at most 1, that scales grad to a Euclidean norm of at most max. A max of
// 0 means no limit. It does not change grad; the caller multiplies the factor into its own scale.
// The error wraps ErrNotFinite if grad holds a NaN or an infinity, and ErrTooLarge if the norm
// exceeds NormMax.
func Clip(pool *exact.Pool, grad []float32, max float32) (float32, error) {
	return NewClipper(pool).Clip(grad, max)
}

// A Clipper computes Clip without allocating. One goroutine at a time may use it.
type Clipper struct {
	pool *exact.Pool
	loop vec.Kernel
	v    []float32 // the argument of norm
	sums []float64 // by segment
	work []Squares // by worker
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
	c.v = nil // releases the caller's memory
	var sum float64
	for _, s := range c.sums {
		sum += s
	}
	return math.Sqrt(sum)
}

// sumSquares returns the sum of the squares of one segment, with 16 partial sums.
func (c *Clipper) sumSquares(p *Squares, v []float32) float64 {
	*p = Squares{}
	c.loop.SumSquares(v, (*[vec.Lanes]float64)(p))
	return p.Sum()
}

// Clip is like the function Clip.
func (c *Clipper) Clip(grad []float32, max float32) (float32, error) {
	norm := c.norm(grad)
	if math.IsNaN(norm) || math.IsInf(norm, 0) {
		return 0, fmt.Errorf("gradient at element %d: %w", exact.Finite(grad), ErrNotFinite)
	}
	return Factor(norm, max)
}

// Factor is like Clip, for a gradient with a known norm.
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
