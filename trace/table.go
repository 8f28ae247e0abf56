package trace

import (
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// AppendTable appends the operations of a run's steps as bytes, from which Table makes the same
// programs: for a referee that cannot afford to list them. Steps end with the gradient
// (GradientTails).
//
//	U32 tokens of a sequence; numbers of the operations that run once, of those of a sequence, of
//	those between the sequences and the tail, and of the tensors
//	of each tensor: U32 rows, columns, offset in the layout, U64 its gradient
//	of each operation, and of the end: U32 where it begins, counted from the first
//	the operations
func (m *Model) AppendTable(dst []byte, layout tensor.Layout) []byte {
	recut, gradients := m.recut(inLast, inRecut)
	tensors := layout.Tensors()
	for _, n := range []int{m.setup.Sequence, len(m.once), len(m.sequence), len(recut), len(tensors)} {
		dst = wire.AppendU32(dst, uint32(n))
	}
	for i, t := range tensors {
		x := matrixOf(t.Shape)
		dst = wire.AppendU32(wire.AppendU32(wire.AppendU32(dst, uint32(x.Rows)), uint32(x.Cols)), uint32(t.Offset))
		dst = wire.AppendU64(dst, uint64(gradients[i]))
	}
	var c coder
	begin := func() { dst = wire.AppendU32(dst, uint32(len(c.b))) }
	for _, list := range [][]node{m.once, m.sequence, recut} {
		for _, n := range list {
			begin()
			c.b = wire.AppendU8(c.b, kindOf(n.kernel))
			n.code(&c)
		}
	}
	begin()
	return append(dst, c.b...)
}
