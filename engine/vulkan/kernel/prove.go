package kernel

import (
	"fmt"
	"math"
	"slices"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/engine/vulkan/gpu"
	"github.com/entrain-network/entrain/engine/vulkan/shader"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/exact8"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/wire"
)

// A Finding is how one operation of a device compares with package exact's on operands of one
// class.
type Finding struct {
	Operation string `json:"operation"`
	Class     string `json:"class"`
	Compared  int    `json:"compared"`
	Wrong     int    `json:"wrong"`
	Example   string `json:"example,omitempty"` // the first that is wrong
}

// String describes f in a line.
func (f Finding) String() string {
	if f.Wrong == 0 {
		return fmt.Sprintf("%s, %s: same", f.Operation, f.Class)
	}
	return fmt.Sprintf("%s, %s: %d of %d differ, first %s", f.Operation, f.Class, f.Wrong, f.Compared, f.Example)
}

// Proven reports whether nothing differs.
func Proven(findings []Finding) bool {
	for _, f := range findings {
		if f.Wrong > 0 {
			return false
		}
	}
	return true
}

// An operation is one of the probe's, with its definition.
type operation struct {
	id   uint32
	name string
	want func(a, b, c float32) float32
}

// The operations of the probe. The first two are the ways to multiply and add.
var operations = []operation{
	{0, "fma", exact.FMA32},
	{1, "fma in integers", exact.FMA32},
	{2, "a*b + c", func(a, b, c float32) float32 { return float32(a*b) + c }},
	{3, "a + b", func(a, b, _ float32) float32 { return a + b }},
	{4, "a - b", func(a, b, _ float32) float32 { return a - b }},
	{5, "a * b", func(a, b, _ float32) float32 { return a * b }},
	{6, "a < b", func(a, b, _ float32) float32 {
		if a < b {
			return 1
		}
		return 0
	}},
	{7, "a / b", func(a, b, _ float32) float32 { return a / b }},
	{8, "Rsqrt", func(a, _, _ float32) float32 { return exact.Rsqrt(a) }},
	{9, "Exp", func(a, _, _ float32) float32 { return exact.Exp(a) }},
	{10, "Sigmoid", func(a, _, _ float32) float32 { return exact.Sigmoid(a) }},
}

// needed reports whether a mode relies on an operation for a class of operands.
func needed(mode Mode, id uint32, class string) bool {
	switch id {
	case 0:
		return mode&SoftFMA == 0 && (mode&Guarded == 0 || class == ordinary || class == cancelling)
	case 1:
		return mode != 0
	}
	return true
}

// Classes of operands.
const (
	ordinary   = "ordinary"   // what training computes with
	cancelling = "cancelling" // products that nearly cancel, where one rounding and two differ most
	subnormal  = "subnormal"  // operands or results below 2^-126
	anyBits    = "any bits"   // with zeros of both signs, infinities and NaN
)

// Prove compares the arithmetic of k with package exact's: each operation on operands of each
// class, and hostile products on each kind of tile. It asks no driver for what it promises: drivers
// do both less and more. The error is that of the device.
func Prove(k *Kernels) ([]Finding, error) {
	random := prng.New(wire.Sum("entrain/prove"), "operands")
	findings, err := proveOperations(k, &random)
	if err != nil {
		return nil, err
	}
	products, err := proveProducts(k, &random)
	if err != nil {
		return nil, err
	}
	inner, err := proveInner(k, &random)
	return slices.Concat(findings, products, inner), err
}

// operandsOfAClass is the number of operands of a class that each operation is tried with.
const operandsOfAClass = 1 << 15

func proveOperations(k *Kernels, random *prng.Source) (findings []Finding, err error) {
	return probe(k.Device, k.Mode, random, func(id uint32, class string) bool { return needed(k.Mode, id, class) })
}

// Least returns the parts of a mode without which a device cannot be right. It tries the device's
// own operations, so that modes that cannot pass need not be compiled.
func Least(d *gpu.Device) (least Mode, err error) {
	random := prng.New(wire.Sum("entrain/prove"), "least")
	findings, err := probe(d, 0, &random, func(id uint32, class string) bool {
		return id == 0 && class == cancelling || id >= 3 && id <= 5 && class == subnormal
	})
	for _, f := range findings {
		if f.Wrong > 0 && f.Class == cancelling {
			least |= SoftFMA
		} else if f.Wrong > 0 {
			least |= Guarded
		}
	}
	return least, err
}

// probe compares the operations for which chosen is true, in a mode.
func probe(d *gpu.Device, mode Mode, random *prng.Source, chosen func(id uint32, class string) bool) (findings []Finding, err error) {
	const n = operandsOfAClass
	var at [4]gpu.Words
	for i := range at {
		if at[i], err = d.New(n); err != nil {
			return nil, err
		}
		defer at[i].Free()
	}
	probes := make([]*gpu.Kernel, len(operations))
	got := make([]float32, n)
	for _, class := range []string{ordinary, cancelling, subnormal, anyBits} {
		in := operands(random, class, n)
		for i := range in {
			if err := gpu.Write(at[i], in[i]); err != nil {
				return nil, err
			}
		}
		for i, op := range operations {
			if !chosen(op.id, class) {
				continue
			}
			if probes[i] == nil {
				if probes[i], err = d.NewKernel("probe", shader.SPIRV("probe"), uint32(mode), op.id); err != nil {
					return nil, err
				}
			}
			err := d.Run(func(c *gpu.Commands) { line(c, probes[i], n/64, at[0], at[1], at[2], at[3], n) })
			if err == nil {
				err = gpu.Read(got, at[3])
			}
			if err != nil {
				return nil, err
			}
			f := Finding{Operation: op.name, Class: class, Compared: n}
			for j, y := range got {
				f.Compare(y, op.want(in[0][j], in[1][j], in[2][j]), func() string {
					return fmt.Sprintf("a=%08x b=%08x c=%08x", math.Float32bits(in[0][j]), math.Float32bits(in[1][j]), math.Float32bits(in[2][j]))
				})
			}
			findings = append(findings, f)
		}
	}
	return findings, nil
}

// Compare counts a result of the device: got, where want is right. of names its operands.
func (f *Finding) Compare(got, want float32, of func() string) {
	if Same(got, want) {
		return
	}
	if f.Wrong == 0 {
		f.Example = fmt.Sprintf("%s: %08x instead of %08x", of(), math.Float32bits(got), math.Float32bits(want))
	}
	f.Wrong++
}

// Same reports whether two floats have the same bits, or are both NaN, whose sign and payload are
// not defined.
func Same(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b }

// proveInner compares a step of AdamW, and the sums of a gradient's squares.
func proveInner(k *Kernels, random *prng.Source) (findings []Finding, err error) {
	const n = operandsOfAClass + 77
	step := exact.AdamWStep{Beta1: 0.9, Fresh1: 1 - 0.9, Beta2: 0.95, Fresh2: 1 - 0.95, Keep: 0.9997, Rate: 3e-3, Scale: 1.7, Eps: 1e-8}
	const clip = 0.37
	var at [4]gpu.Words
	for i := range at {
		if at[i], err = k.Device.New(n); err != nil {
			return nil, err
		}
		defer at[i].Free()
	}
	const lead = codec.NormSegment - 100 // the first elements end a segment
	sums, err := k.Device.New(SquaresLen(lead + n))
	if err != nil {
		return nil, err
	}
	defer sums.Free()
	for _, class := range []string{ordinary, subnormal, anyBits} {
		three := operands(random, class, n)
		host := [4][]float32{three[0], three[1], three[2], operands(random, class, n)[0]}
		for i, x := range host[2] {
			if class != anyBits {
				host[2][i] = math.Float32frombits(math.Float32bits(x) &^ (1 << 31)) // a mean of squares
			}
		}
		for i := range host {
			if err := gpu.Write(at[i], host[i]); err != nil {
				return nil, err
			}
		}
		if err := k.Device.Run(func(c *gpu.Commands) {
			c.Clear(sums)
			k.Squares(c, at[3], sums, n, lead)
			k.AdamW(c, at[0], at[1], at[2], at[3], n, clip, step)
		}); err != nil {
			return nil, err
		}
		squares := Finding{Operation: "sums of squares", Class: class}
		if err := squares.squares(sums, host[3], lead); err != nil {
			return nil, err
		}
		adamw := Finding{Operation: "AdamW", Class: class, Compared: 4 * n}
		for i := range host[3] {
			host[3][i] *= clip
		}
		exact.NewWorker(exact.Kernels()[0]).AdamW(host[0], host[1], host[2], host[3], step)
		clear(host[3])
		got := make([]float32, n)
		for i := range host {
			if err := gpu.Read(got, at[i]); err != nil {
				return nil, err
			}
			for j := range got {
				adamw.Compare(got[j], host[i][j], func() string {
					return fmt.Sprintf("%s %d", [4]string{"parameter", "mean", "mean square", "gradient"}[i], j)
				})
			}
		}
		findings = append(findings, squares, adamw)
	}
	return findings, nil
}

// squares compares sums of x with codec.Squares.
func (f *Finding) squares(sums gpu.Words, x []float32, lead int) error {
	got, err := ReadSquares(sums)
	for i := range got {
		var want codec.Squares
		from, to := max(i*codec.NormSegment, lead), min((i+1)*codec.NormSegment, lead+len(x))
		want.Add(from%codec.NormSegment, x[from-lead:to-lead])
		if f.Compared += len(want); !got[i].Same(&want) {
			if f.Wrong == 0 {
				f.Example = fmt.Sprintf("segment %d: %x instead of %x", i, got[i], want)
			}
			f.Wrong++
		}
	}
	return err
}

// operands returns three slices of operands of a class.
func operands(random *prng.Source, class string, n int) (in [3][]float32) {
	for i := range in {
		in[i] = make([]float32, n)
	}
	for i := range n {
		x := [3]float32{operand(random, class), operand(random, class), operand(random, class)}
		if class == cancelling {
			x[2] = -float32(x[0] * x[1])
			x[2] = math.Float32frombits(math.Float32bits(x[2]) + uint32(random.Uint64n(5)) - 2)
		}
		for j := range x {
			in[j][i] = x[j]
		}
	}
	return in
}

// specials are numbers at which something changes.
var specials = []float32{
	0, float32(math.Copysign(0, -1)), 1, -1, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), math.MaxFloat32,
	math.SmallestNonzeroFloat32, 0x1p-126, 0x1.fffffcp-127, -104, 89, 88.72284, -87.33655, -103.97208, 0.5, 2,
}

func operand(random *prng.Source, class string) float32 {
	bits := random.Uint64()
	sign, mantissa, choice := uint32(bits)&(1<<31), uint32(bits)&(1<<23-1), uint32(bits>>32)
	switch class {
	case subnormal:
		exponent := choice % 3 // 0: a subnormal
		if choice&64 != 0 {
			exponent = choice / 128 % 80
		}
		return math.Float32frombits(sign | exponent<<23 | mantissa)
	case anyBits:
		if choice%3 == 0 {
			return specials[choice/3%uint32(len(specials))]
		}
		return math.Float32frombits(uint32(bits>>16) ^ sign)
	}
	return math.Float32frombits(sign | (107+choice%40)<<23 | mantissa)
}

// proveProducts compares products on each kind of tile, of sizes that no tile divides.
func proveProducts(k *Kernels, random *prng.Source) (findings []Finding, err error) {
	for i, v := range []struct {
		name    string
		m, n, k int
		eight   bool
	}{
		{"product on tiles of 64", 70, 130, 45, false}, {"product on tiles of 128", 140, 130, 37, false},
		{"product in 8 bits on tiles of 64", 70, 130, 45, true}, {"product in 8 bits on tiles of 128", 140, 130, 37, true},
	} {
		for _, class := range []string{ordinary, subnormal, anyBits} {
			f := Finding{Operation: v.name, Class: class}
			if err := f.product(k, random, v.m, v.n, v.k, i%2 == 0, v.eight, class); err != nil {
				return nil, err
			}
			findings = append(findings, f)
		}
	}
	return findings, nil
}

// product compares C += A·B, in 8 bits if eight is set, A transposed if turned is set and B
// otherwise. Few operands are of the class, so that sums are not NaN everywhere.
func (f *Finding) product(k *Kernels, random *prng.Source, m, n, depth int, turned, eight bool, class string) error {
	fill := func(size int) []float32 {
		x := make([]float32, size)
		for i := range x {
			use := ordinary
			if class == subnormal && random.Uint64n(16) == 0 || random.Uint64n(uint64(8*depth)) == 0 {
				use = class
			}
			x[i] = operand(random, use)
		}
		return x
	}
	host := [3][]float32{fill(m * depth), fill(depth * n), fill(m * n)}
	blocks := exact8.Blocks(depth, depth)
	var at [5]gpu.Words
	for i, size := range [5]int{m * depth, depth * n, m * n, PackedLen(m, blocks), PackedLen(n, blocks)} {
		var err error
		if at[i], err = k.Device.New(size); err != nil {
			return err
		}
		defer at[i].Free()
	}
	for i := range host {
		if err := gpu.Write(at[i], host[i]); err != nil {
			return err
		}
	}
	a, b := Rows(at[0], depth), Columns(at[1], depth)
	if turned {
		a, b = Columns(at[0], m), Rows(at[1], n)
	}
	if err := k.Device.Run(func(c *gpu.Commands) {
		if eight {
			right := k.Pack(c, at[4], Matrix{b.At, b.Column, b.Row}, n, depth, depth)
			k.Gemm8(c, k.Pack(c, at[3], a, m, depth, depth), right, at[2], n, true)
		} else {
			k.gemm(c, m >= 128, m, n, depth, a, b, at[2], n, true, Full, One)
		}
	}); err != nil {
		return err
	}
	got := make([]float32, m*n)
	if err := gpu.Read(got, at[2]); err != nil {
		return err
	}
	if eight {
		exact8.Gemm(m, n, depth, host[0], a.Row, a.Column, host[1], b.Row, b.Column, host[2], n, true)
	} else {
		exact.Gemm(nil, m, n, depth, host[0], a.Row, a.Column, host[1], b.Row, b.Column, host[2], n, true)
	}
	f.Compared = len(got)
	for i := range got {
		f.Compare(got[i], host[2][i], func() string { return fmt.Sprintf("row %d, column %d", i/n, i%n) })
	}
	return nil
}
