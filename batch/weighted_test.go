package batch

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// weighted returns the lengths of the parts of a Division in memory.
func weighted(total, most uint32, weights []uint32) []uint32 {
	t := make(table, len(weights))
	for p, w := range weights {
		t[p].weight = w
	}
	d := Division[table]{Table: t, Trainers: uint32(len(t)), Total: total, Most: most}
	for step := uint32(0); step < Steps; step = d.Step(step) {
	}
	parts := make([]uint32, len(t))
	for p, v := range t {
		parts[p] = v.part
	}
	return parts
}

// table is a Table in memory.
type table []trainer

type trainer struct {
	weight, part, order uint32
	between             bool
}

func (t table) Weight(p uint32) uint32         { return t[p].weight }
func (t table) Order(k uint32) uint32          { return t[k].order }
func (t table) SetOrder(k, p uint32)           { t[k].order = p }
func (t table) Rough(p uint32) (uint32, bool)  { return t[p].part, t[p].between }
func (t table) SetRough(p, n uint32, mid bool) { t[p].part, t[p].between = n, mid }
func (t table) Give(p, _, count uint32)        { t[p].part = count }

func TestWeightedExamples(t *testing.T) {
	for _, c := range []struct {
		total, most uint32
		weights     []uint32
		want        []uint32
	}{
		{12, 12, []uint32{1, 2, 3}, []uint32{2, 4, 6}},
		{10, 10, []uint32{1, 1, 1}, []uint32{4, 3, 3}},
		{64, 32, []uint32{1000, 1000, 1000, 1000, 1000, 1000, 1000, 250}, []uint32{9, 9, 9, 9, 9, 9, 8, 2}},
		// One who boasts has the most, and the others share what is left.
		{64, 32, []uint32{math.MaxUint32, 1000, 1000, 1000, 1000, 1000, 1000, 1000}, []uint32{32, 5, 5, 5, 5, 4, 4, 4}},
		// Each has one at least, though that is more than its proportion; who would have had the most has less then.
		{8, 4, []uint32{1000, 1, 1, 1, 1, 1, 1, 1}, []uint32{1, 1, 1, 1, 1, 1, 1, 1}},
		{10, 4, []uint32{1000, 1, 1, 1, 1, 1, 1, 1}, []uint32{3, 1, 1, 1, 1, 1, 1, 1}},
		{20, 10, []uint32{0, 1000, 1000, 0}, []uint32{1, 9, 9, 1}},
		{2, 1, []uint32{1, 5, 9}, []uint32{1, 1, 0}},
		{0, 0, []uint32{1, 5}, []uint32{0, 0}},
		{0, 0, nil, nil},
		{math.MaxUint32, math.MaxUint32, slices.Repeat([]uint32{math.MaxUint32}, 3), []uint32{1431655765, 1431655765, 1431655765}},
	} {
		if got := weighted(c.total, c.most, c.weights); !slices.Equal(got, c.want) {
			t.Errorf("%d by weights %d, %d at most, is %d, want %d", c.total, c.weights, c.most, got, c.want)
		}
	}
}

// bounded returns what factor*weight is within the bounds.
func bounded(factor float64, weight, most uint32) float64 {
	return min(max(factor*float64(max(weight, 1)), 1), float64(most))
}

// exact returns the parts before rounding, found by halving the interval in which the common factor lies.
func exact(total, most uint32, weights []uint32) []float64 {
	low, high := 0., 2*float64(total)
	for range 200 {
		middle, sum := (low+high)/2, 0.
		for _, w := range weights {
			sum += bounded(middle, w, most)
		}
		if sum < float64(total) {
			low = middle
		} else {
			high = middle
		}
	}
	parts := make([]float64, len(weights))
	for p, w := range weights {
		parts[p] = bounded(high, w, most)
	}
	return parts
}

func TestWeightedIsProportionalWithinItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weight := rapid.OneOf(rapid.Uint32Range(0, 3), rapid.Uint32Range(500, 2000), rapid.Uint32())
		weights := rapid.SliceOfN(weight, 1, 60).Draw(t, "weights")
		n := uint32(len(weights))
		total := rapid.OneOf(rapid.Uint32Range(0, 3*n), rapid.Uint32Range(0, 1<<24)).Draw(t, "total")
		most := (total + n - 1) / n * rapid.Uint32Range(1, 6).Draw(t, "multiple")
		parts := weighted(total, most, weights)
		sum := uint64(0)
		for _, v := range parts {
			sum += uint64(v)
		}
		if sum != uint64(total) {
			t.Fatalf("%d by %d, %d at most, is %d, together %d", total, weights, most, parts, sum)
		}
		if total < n {
			return
		}
		want := exact(total, most, weights)
		for p, v := range parts {
			if v < 1 || v > most || math.Abs(float64(v)-want[p]) > 1.001 {
				t.Fatalf("%d by %d, %d at most, is %d at %d, exactly %f", total, weights, most, v, p, want[p])
			}
			for q, w := range parts {
				if weights[p] > max(weights[q], 1) && v < w {
					t.Fatalf("%d by %d, %d at most: the heavier %d has less than %d: %d", total, weights, most, p, q, parts)
				}
			}
		}
	})
}

func TestWeightedWithEqualWeightsIsSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.OneOf(rapid.Uint32Range(0, 300), rapid.Uint32Range(0, 1<<24)).Draw(t, "total")
		n := rapid.Uint32Range(1, 100).Draw(t, "n")
		weight := rapid.OneOf(rapid.Uint32Range(0, 1), rapid.Uint32()).Draw(t, "weight")
		parts := weighted(total, (total+n-1)/n, slices.Repeat([]uint32{weight}, int(n)))
		for p, v := range parts {
			if _, count := Split(total, n, uint32(p)); v != count {
				t.Fatalf("part %d of %d by equal weights %d is %d, Split says %d", p, total, weight, v, count)
			}
		}
	})
}

func ExampleDivision() {
	fmt.Println(weighted(64, 32, []uint32{4000, 4000, 4000, 1000}))
	// Output:
	// [20 20 19 5]
}
