// Package tensor names the parts of one flat []float32.
//
// A model's parameters, its gradient and an optimizer's state are each one slice of float32,
// because compression, hashing and transfer want one run of memory; a Layout says which part of it
// is which tensor. Tensors lie one after another in the order of the specs, without gaps, each
// row-major:
//
//	specs    {"a", [2,3]}             {"b", [4]}
//	floats   a00 a01 a02 a10 a11 a12  b0 b1 b2 b3
//	offset   0                        6           Len() = 10
//
// Bytes gives the canonical bytes of such a slice, IEEE-754 binary32, little-endian, 4 bytes an
// element: what checkpoints hold, peers send and hashes are taken over, equal on every machine.
//
//	floats   1.0          -2.5
//	bytes    00 00 80 3f  00 00 20 c0
//
// The package only describes memory; arithmetic is in package exact.
package tensor

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Limits of a layout. They bound what a header read from outside can make anyone allocate.
const (
	MaxTensors   = 1 << 16 // a 1000-layer Llama has 9003 tensors
	MaxDims      = 8       // no known checkpoint format uses more
	maxNameBytes = 256     // the longest Hugging Face names have about 80
	// maxElements are 1 TiB of float32, beyond any machine that takes part. On 32-bit machines the
	// range of int is the limit.
	maxElements = 1<<38 - 1
)

// A Spec is the name and the shape of a tensor. An empty shape is a scalar of one element.
type Spec struct {
	Name  string
	Shape []int
}

// A Tensor is a Spec placed in a flat slice: its elements are flat[Offset : Offset+Len], row-major.
type Tensor struct {
	Name   string
	Shape  []int
	Offset int
	Len    int
}

// Of returns t's part of flat, with no capacity beyond it.
func (t Tensor) Of(flat []float32) []float32 {
	return flat[t.Offset : t.Offset+t.Len : t.Offset+t.Len]
}

// A Layout places tensors one after another in a flat slice. It does not change after NewLayout and
// may be shared between goroutines.
type Layout struct {
	tensors []Tensor
	byName  []int32 // indexes into tensors, sorted by name
	len     int
}

// Check returns what keeps specs from being a layout, or nil: a name that is empty, too long or
// used twice, a dimension that is not positive, or more tensors, dimensions or elements than the
// limits allow. It allocates no more than the specs themselves.
func Check(specs []Spec) error {
	_, err := build(specs)
	return err
}

// NewLayout places specs in their order. It panics where Check returns an error, so check specs
// that come from outside.
func NewLayout(specs []Spec) Layout {
	l, err := build(specs)
	if err != nil {
		panic("tensor: " + err.Error())
	}
	return l
}

func build(specs []Spec) (Layout, error) {
	if len(specs) > MaxTensors {
		return Layout{}, fmt.Errorf("%d tensors are more than %d", len(specs), MaxTensors)
	}
	l := Layout{tensors: make([]Tensor, 0, len(specs)), byName: make([]int32, 0, len(specs))}
	for i, s := range specs {
		n, err := elements(s)
		if err != nil {
			return Layout{}, err
		}
		if n > maxLen()-l.len {
			return Layout{}, fmt.Errorf("tensor %q brings the layout above %d elements", s.Name, maxLen())
		}
		l.tensors = append(l.tensors, Tensor{s.Name, slices.Clone(s.Shape), l.len, n})
		l.byName = append(l.byName, int32(i))
		l.len += n
	}
	slices.SortFunc(l.byName, func(a, b int32) int { return strings.Compare(l.tensors[a].Name, l.tensors[b].Name) })
	for i := 1; i < len(l.byName); i++ {
		if name := l.tensors[l.byName[i]].Name; name == l.tensors[l.byName[i-1]].Name {
			return Layout{}, fmt.Errorf("two tensors are named %q", name)
		}
	}
	return l, nil
}

// maxLen returns maxElements, or less where int or the address space cannot hold it.
func maxLen() int { return int(min(int64(maxElements), int64(math.MaxInt/4))) }

// elements counts the elements of one tensor, refusing shapes beyond the limits.
func elements(s Spec) (int, error) {
	if s.Name == "" || len(s.Name) > maxNameBytes {
		return 0, fmt.Errorf("a tensor's name has %d bytes, it needs 1 to %d", len(s.Name), maxNameBytes)
	}
	if len(s.Shape) > MaxDims {
		return 0, fmt.Errorf("tensor %q has %d dimensions, more than %d", s.Name, len(s.Shape), MaxDims)
	}
	n := 1
	for _, d := range s.Shape {
		if d <= 0 {
			return 0, fmt.Errorf("tensor %q has shape %v: dimensions must be positive", s.Name, s.Shape)
		}
		if n > maxLen()/d {
			return 0, fmt.Errorf("tensor %q of shape %v has more than %d elements", s.Name, s.Shape, maxLen())
		}
		n *= d
	}
	return n, nil
}

// Tensors returns the tensors in their order. The caller must not change them.
func (l Layout) Tensors() []Tensor { return l.tensors }

// Len is the number of float32 in the flat slice.
func (l Layout) Len() int { return l.len }

// Find returns the tensor of that name.
func (l Layout) Find(name string) (Tensor, bool) {
	i, ok := slices.BinarySearchFunc(l.byName, name, func(i int32, name string) int { return strings.Compare(l.tensors[i].Name, name) })
	if !ok {
		return Tensor{}, false
	}
	return l.tensors[l.byName[i]], true
}
