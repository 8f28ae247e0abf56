package trace

import (
	"context"
	"fmt"

	"github.com/entrain-network/entrain/bisect"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/wire"
)

// opened caches the operation that a Trace opened last: enough to open any of its slices.
type opened struct {
	ok     bool
	op     uint32
	value  *result
	inputs map[uint32]*result // the values that it reads

	tile   uint32      // opened last
	slices []wire.Hash // hashes of the slices of tile; nil before the first
}

// OpChildren returns the children of a node of the tree of operations, depth levels above its
// leaves (bisect.Children).
func (t *Trace) OpChildren(depth uint8, index uint32) [bisect.Fan]wire.Hash {
	return bisect.Children(t.ops, depth, index)
}

// TileChildren returns the children of a node of the tree of an operation's tiles.
func (t *Trace) TileChildren(ctx context.Context, op uint32, depth uint8, index uint32) ([bisect.Fan]wire.Hash, error) {
	if err := t.open(ctx, op); err != nil {
		return [bisect.Fan]wire.Hash{}, err
	}
	return bisect.Children(t.opened.value.leaves, depth, index), nil
}

// SliceChildren returns the children of a node of the tree of a tile's slices.
func (t *Trace) SliceChildren(ctx context.Context, op, tile uint32, depth uint8, index uint32) ([bisect.Fan]wire.Hash, error) {
	if err := t.openTile(ctx, op, tile); err != nil {
		return [bisect.Fan]wire.Hash{}, err
	}
	return bisect.Children(t.opened.slices, depth, index), nil
}

// Evidence returns the evidence from which Judge computes a slice. It computes again what leads to
// the operation, unless that is the one opened last.
func (t *Trace) Evidence(ctx context.Context, op, tile, slice uint32) ([]byte, error) {
	if err := t.openTile(ctx, op, tile); err != nil {
		return nil, err
	}
	o := t.p.Op(op)
	if slice >= o.Slices(tile) {
		return nil, fmt.Errorf("trace: operation %d has no slice %d of tile %d", op, slice, tile)
	}
	var b []byte
	if slice > 0 {
		b = appendWords(b, t.after(o, tile, slice-1))
		b = appendPath(b, bisect.Prove(t.opened.slices, slice-1), t.opened.value.leaves, tile, t.ops, op)
	}
	for _, r := range o.Reads(tile, slice) {
		if r.Source != Value {
			if t.src.Prove == nil {
				return nil, fmt.Errorf("trace: operation %d, %s, reads an external input, but Sources.Prove is nil", op, o.Name())
			}
			proof, err := t.src.Prove(r)
			if err != nil {
				return nil, fmt.Errorf("trace: proving an input of operation %d, %s: %w", op, o.Name(), err)
			}
			b = wire.AppendVar(b, proof)
			continue
		}
		v := t.opened.inputs[r.Op]
		b = appendWords(b, v.tiles[r.Index])
		b = appendPath(b, v.ends[r.Index], v.leaves, r.Index, t.ops, r.Op)
	}
	if len(b) > evidenceBytesMax {
		return nil, fmt.Errorf("trace: the evidence for operation %d, %s, has %d bytes, more than %d", op, o.Name(), len(b), evidenceBytesMax)
	}
	return b, nil
}

// open computes the value of an operation and its inputs, unless it is open already.
func (t *Trace) open(ctx context.Context, op uint32) error {
	if op >= uint32(len(t.ops)) {
		return fmt.Errorf("trace: no operation %[2]d: the program has %[1]d", len(t.ops), op)
	}
	if t.opened.ok && t.opened.op == op {
		return nil
	}
	chosen := make([]bool, len(t.ops))
	chosen[op] = true
	for u := op; ; u-- {
		for _, v := range t.uses[u] {
			chosen[v] = chosen[v] || chosen[u]
		}
		if u == 0 {
			break
		}
	}
	t.opened = opened{op: op}
	inputs, err := t.execute(ctx, chosen, t.uses[op], func(u uint32, r *result) {
		if u == op {
			t.opened.value = r
		}
	})
	if err != nil {
		return err
	}
	t.opened.inputs, t.opened.ok = inputs, true
	return nil
}

// openTile opens an operation and hashes the slices of one of its tiles.
func (t *Trace) openTile(ctx context.Context, op, tile uint32) error {
	if err := t.open(ctx, op); err != nil {
		return err
	}
	o := t.p.Op(op)
	if tile >= o.Tiles() {
		return fmt.Errorf("trace: operation %d has no tile %d", op, tile)
	}
	if t.opened.slices != nil && t.opened.tile == tile {
		return nil
	}
	t.opened.tile, t.opened.slices = tile, make([]wire.Hash, 0, o.Slices(tile))
	t.slices(t.worker(), o, op, tile, t.opened.inputs, func(_ uint32, words []uint32) bool {
		t.opened.slices = append(t.opened.slices, leaf(o, words))
		return true
	})
	return nil
}

// after returns the words of a tile of the opened operation after a slice.
func (t *Trace) after(o Op, tile, slice uint32) (words []uint32) {
	t.slices(t.worker(), o, t.opened.op, tile, t.opened.inputs, func(s uint32, after []uint32) bool {
		words = after
		return s < slice
	})
	return words
}

func (t *Trace) worker() *exact.Worker { return exact.NewWorker(t.pool.Kernel()) }
