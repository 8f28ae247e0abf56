package trace

import (
	"errors"
	"fmt"

	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// AppendTable appends the operations of a run's steps as bytes, from which Table makes the same
// programs: for a referee that cannot afford to list them. Steps end with the gradient
// (GradientTails). The error explains why there is no table.
//
//	U32 tokens of a sequence, operations that run once, operations of a sequence, tensors
//	of each tensor: U32 rows, columns, offset in the layout, U64 its gradient
//	of each operation, and of the end: U32 where it begins, counted from the first
//	the operations
func (m *Model) AppendTable(dst []byte, layout tensor.Layout) ([]byte, error) {
	nodes, _ := m.recut(0, 0)
	switch {
	case m.setup.Model.LoRA != (llama.LoRA{}):
		return nil, errors.New("trace: steps of adapters have no table")
	case len(nodes) > 0:
		return nil, fmt.Errorf("trace: heads of %d columns have no table, only multiples of %d", m.setup.Model.HeadDim, Side)
	}
	tensors := layout.Tensors()
	for _, n := range []int{m.setup.Sequence, len(m.once), len(m.sequence), len(tensors)} {
		dst = wire.AppendU32(dst, uint32(n))
	}
	for i, t := range tensors {
		x := MatrixOf(t.Shape)
		dst = wire.AppendU32(wire.AppendU32(wire.AppendU32(dst, uint32(x.Rows)), uint32(x.Cols)), uint32(t.Offset))
		dst = wire.AppendU64(dst, uint64(m.gradients[i]))
	}
	var c coder
	begin := func() { dst = wire.AppendU32(dst, uint32(len(c.b))) }
	for _, list := range [][]node{m.once, m.sequence} {
		for _, n := range list {
			begin()
			c.b = wire.AppendU8(c.b, kindOf(n.kernel))
			n.code(&c)
		}
	}
	begin()
	return append(dst, c.b...), nil
}
