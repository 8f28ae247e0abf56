package trace

import (
	"math"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/wire"
)

// coder writes the fields of operations to b or, if it has a reader, sets them from it.
type coder struct {
	b []byte
	r *wire.Reader
	p *tabled // of the program that is read
}

// In a table, a ref to an operation of the last sequence, and to one between the sequences and the
// tail, counts from the first of these, because tables do not know the number of sequences.
const (
	inLast  ref = 1 << 38
	inRecut ref = 1 << 39
)

// resolve returns the ref that one in a table stands for.
func (p *tabled) resolve(r ref) ref {
	if r < fixed || r >= none {
		return r
	}
	switch at := r - fixed; {
	case at >= inRecut:
		return r - inRecut + ref(p.base())
	case at >= inLast:
		return r - inLast + ref(p.base()-p.sequence)
	}
	return r
}

func (c *coder) u32(v *uint32) {
	if c.r != nil {
		*v = c.r.U32()
	} else {
		c.b = wire.AppendU32(c.b, *v)
	}
}

func (c *coder) int(v *int) {
	n := uint32(*v)
	c.u32(&n)
	*v = int(n)
}

func (c *coder) ref(v *ref) {
	if c.r != nil {
		*v = c.p.resolve(ref(c.r.U64()))
	} else {
		c.b = wire.AppendU64(c.b, uint64(*v))
	}
}

func (c *coder) u8(v *uint8) {
	if c.r != nil {
		*v = c.r.U8()
	} else {
		c.b = wire.AppendU8(c.b, *v)
	}
}

func (c *coder) bool(v *bool) {
	if c.r != nil {
		*v = c.r.U8() == 1
	} else {
		c.b = wire.AppendBool(c.b, *v)
	}
}

func (c *coder) float(v *float32) {
	b := math.Float32bits(*v)
	c.u32(&b)
	*v = math.Float32frombits(b)
}

// listMax bounds the lists of an operation.
const listMax = 1 << 12

// list returns how many elements a list has.
func (c *coder) list(n int) int {
	c.int(&n)
	if n > listMax {
		c.r.Fail(wire.ErrTooLong)
		return 0
	}
	return n
}

func (c *coder) refs(v *[]ref) {
	n := c.list(len(*v))
	if c.r != nil {
		*v = make([]ref, n)
	}
	for i := range *v {
		c.ref(&(*v)[i])
	}
}

func (c *coder) dim(v *dim) {
	c.int(&v.groups)
	c.int(&v.size)
}

func (c *coder) grid(v *grid) {
	c.dim(&v.rows)
	c.dim(&v.cols)
	c.bool(&v.causal)
	c.int(&v.window)
}

func (c *coder) value(v *value) {
	c.ref(&v.ref)
	c.grid(&v.grid)
	c.int(&v.wide)
	c.int(&v.from)
}

func (c *coder) values(v *[]value) {
	n := c.list(len(*v))
	if c.r != nil {
		*v = make([]value, n)
	}
	for i := range *v {
		c.value(&(*v)[i])
	}
}

func (c *coder) operand(v *operand) {
	n := c.list(len(v.parts))
	if c.r != nil {
		v.parts = make([]part, n)
	}
	for i := range v.parts {
		p := &v.parts[i]
		c.value(&p.value)
		c.int(&p.from)
		c.int(&p.n)
	}
	c.bool(&v.below)
	c.bool(&v.transposed)
}

// The kinds of operations that a table can hold.
const (
	kindPieces = iota + 1
	kindJoin
	kindRegroup
	kindTokens
	kindAngles
	kindLookup
	kindScatter
	kindProduct
	kindReduction
	kindElementwise
	kindRotation
	kindGain
	kindColumnSum
)

func kindOf(k kernel) uint8 {
	switch k.(type) {
	case *pieces:
		return kindPieces
	case *join:
		return kindJoin
	case *regroup:
		return kindRegroup
	case *tokens:
		return kindTokens
	case *angles:
		return kindAngles
	case *lookup:
		return kindLookup
	case *scatter:
		return kindScatter
	case *product:
		return kindProduct
	case *reduction:
		return kindReduction
	case *elementwise:
		return kindElementwise
	case *rotation:
		return kindRotation
	case *gain:
		return kindGain
	case *columnSum:
		return kindColumnSum
	}
	return 0
}

// newKernel returns an empty operation of a kind, nil if there is none.
func newKernel(kind uint8) kernel {
	switch kind {
	case kindPieces:
		return &pieces{}
	case kindJoin:
		return &join{pieces: &pieces{}}
	case kindRegroup:
		return &regroup{}
	case kindTokens:
		return &tokens{}
	case kindAngles:
		return &angles{}
	case kindLookup:
		return &lookup{}
	case kindScatter:
		return &scatter{}
	case kindProduct:
		return &product{}
	case kindReduction:
		return &reduction{}
	case kindElementwise:
		return &elementwise{}
	case kindRotation:
		return &rotation{}
	case kindGain:
		return &gain{}
	case kindColumnSum:
		return &columnSum{}
	}
	return nil
}

func (p *pieces) code(c *coder) {
	c.u8((*uint8)(&p.source))
	c.int(&p.offset)
	c.grid(&p.grid)
	c.int(&p.most)
}

func (j *join) code(c *coder) {
	j.pieces.code(c)
	c.ref(&j.from)
}

func (g *regroup) code(c *coder) {
	c.value(&g.from)
	c.grid(&g.to)
}

func (t *tokens) code(c *coder) { c.dim(&t.rows) }

func (a *angles) code(c *coder) {
	n := c.list(len(a.frequencies))
	if c.r != nil {
		a.frequencies = make([]float32, n)
	}
	for i := range a.frequencies {
		c.float(&a.frequencies[i])
	}
	c.grid(&a.grid)
}

func (l *lookup) code(c *coder) {
	c.grid(&l.out)
	c.ref(&l.tokens)
	c.value(&l.table)
	c.ref(&l.start)
}

func (s *scatter) code(c *coder) {
	c.grid(&s.out)
	c.ref(&s.tokens)
	c.value(&s.x)
	c.ref(&s.start)
	c.bool(&s.targets)
}

func (p *product) code(c *coder) {
	c.grid(&p.out)
	c.operand(&p.a)
	c.operand(&p.b)
	c.int(&p.depth)
	c.u8((*uint8)(&p.inner))
	c.ref(&p.start)
	c.bool(&p.eight)
}

func (a *reduction) code(c *coder) {
	c.u8((*uint8)(&a.function))
	c.value(&a.x)
	c.value(&a.y)
	c.value(&a.gains)
	c.ref(&a.rows)
	c.float(&a.constant)
	c.float(&a.scale)
}

func (e *elementwise) code(c *coder) {
	c.u8((*uint8)(&e.function))
	c.grid(&e.out)
	c.values(&e.m)
	c.refs(&e.v)
	c.ref(&e.gains)
	c.float(&e.scale)
}

func (t *rotation) code(c *coder) {
	c.operand(&t.x)
	c.grid(&t.out)
	c.value(&t.angles)
	c.bool(&t.back)
}

func (g *gain) code(c *coder) {
	c.values(&g.x)
	c.values(&g.y)
	c.refs(&g.inv)
	c.grid(&g.out)
	c.ref(&g.start)
}

func (s *columnSum) code(c *coder) {
	c.operand(&s.dy)
	c.dim(&s.rows)
	c.grid(&s.out)
	c.ref(&s.start)
}

// Limits of a program. They bound its memory, whatever the configuration.
const (
	// SequenceMax is the most tokens of a sequence, which is one piece of evidence and must fit
	// into a message.
	SequenceMax = 1 << 15
	// sequenceOpsMax is the most operations of one sequence. A model of 126 layers and 128 heads
	// has 210,000.
	sequenceOpsMax = 1 << 18
	// opsMax is the most operations of a program.
	opsMax = 1 << 28
)

// tabled is the program of a share by a table. Each operation is read from it when it is asked for.
type tabled struct {
	text           []byte // the operations, and where each begins
	once, sequence uint32
	recut          uint32
	sequences      uint32
	weight         float32
	gradients      []ref
	ends           Tail
}

// tensorsMax bounds the tensors of a model in a table.
const tensorsMax = 1 << 14

// Tabled returns the program of a share's step by a table that AppendTable made. end returns its
// tail.
func Tabled(table []byte, sequences uint32, end func(t *GradientTails) Tail) (Program, wire.Error) {
	r := wire.NewReader(table)
	tokens, p := r.U32(), &tabled{once: r.U32(), sequence: r.U32(), recut: r.U32(), sequences: sequences}
	n := r.U32()
	if n == 0 || n > tensorsMax || sequences == 0 || max(p.once, p.sequence, p.recut) > sequenceOpsMax {
		r.Fail(wire.ErrTooLong)
		return nil, r.Err()
	}
	f := flat{tensors: make([]flatTensor, 0, n)}
	p.gradients = make([]ref, 0, n)
	for range n {
		m := Matrix{int(r.U32()), int(r.U32())}
		offset := int(r.U32())
		p.gradients = append(p.gradients, ref(r.U64()))
		if m.Rows < 1 || m.Cols < 1 {
			r.Fail(wire.ErrShort)
			return nil, r.Err()
		}
		f.add(m, offset)
	}
	p.weight = 1 / (float32(sequences) * float32(tokens))
	p.text = r.Rest()
	if uint64(len(p.text)) < 4*(uint64(p.once)+uint64(p.sequence)+uint64(p.recut)+1) || uint64(p.once)+uint64(sequences)*uint64(p.sequence) > opsMax {
		r.Fail(wire.ErrShort)
	}
	p.ends = end(&GradientTails{f})
	return p, r.Err()
}

func (p *tabled) base() uint32 { return p.once + p.sequences*p.sequence }

// Len implements Program.
func (p *tabled) Len() uint32 { return p.base() + p.recut + p.ends.Len() }

// Op implements Program.
func (p *tabled) Op(t uint32) Op {
	if t < p.once {
		return p.read(t, spot{})
	}
	if t < p.base() {
		i := (t - p.once) / p.sequence
		return p.read(p.once+(t-p.once)%p.sequence, spot{base: p.once + i*p.sequence, sequence: i, weight: p.weight})
	}
	if t -= p.base(); t < p.recut {
		return p.read(p.once+p.sequence+t, spot{})
	}
	return p.ends.Op(t-p.recut, p.base()+p.recut, func(tensor int) uint32 { return uint32(p.resolve(p.gradients[tensor]) - fixed) })
}

// read reads operation t of the table.
func (p *tabled) read(t uint32, at spot) Op {
	r := wire.NewReader(p.text[4*t:])
	from, to := r.U32(), r.U32()
	text := p.text[4*(p.once+p.sequence+p.recut+1):]
	r = wire.NewReader(text[from:to])
	k := newKernel(r.U8())
	k.code(&coder{r: &r, p: p})
	if r.Done() != wire.OK {
		panic("trace: the table is broken")
	}
	return placed{k, at}
}

// placed is a kernel at its place in a program.
type placed struct {
	kernel
	at spot
}

// Name implements Op.
func (placed) Name() string { return "" }

// Tiles implements Op.
func (o placed) Tiles() uint32 { return o.tiles() }

// Slices implements Op.
func (o placed) Slices(tile uint32) uint32 { return o.slices(tile) }

// Words implements Op.
func (o placed) Words(tile, slice uint32) int { return o.words(tile, slice) }

// Reads implements Op.
func (o placed) Reads(tile, slice uint32) []Read { return o.reads(o.at, tile, slice) }

// Step implements Op.
func (o placed) Step(w *exact.Worker, tile, slice uint32, acc []uint32, in [][]uint32) []uint32 {
	return canonical(o.step(o.at, w, tile, slice, acc, in))
}
