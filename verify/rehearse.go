package verify

import (
	"context"

	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/trace"
	"github.com/entrain-network/entrain/wire"
)

// Rehearse plays a dispute about an honest step. Its author argues with the given player; the
// accuser computed the last slice of a tile of operation op wrongly, and everything that depends on
// it. The accuser is convicted if the referee is correct.
func (t *Tracer) Rehearse(ctx context.Context, referee dispute.Referee, c dispute.Case, in Inputs, honest *Player, op uint32) (Game, error) {
	p, err := t.rules.program(c)
	if err != nil {
		return Game{}, err
	}
	o := p.Op(op)
	tile := o.Tiles() - 1
	for tile > 0 && o.Words(tile, o.Slices(tile)-1) == 0 { // skip tiles without words to change
		tile--
	}
	bent := &lying{Program: p, lie: lie{op: op, tile: tile, slice: o.Slices(tile) - 1, change: flip}}
	cheat, err := t.open(ctx, bent, c, in)
	if err != nil {
		return Game{}, err
	}
	return argue(ctx, referee, c, [2]Side{honest, cheat})
}

// Operations returns the names of a step's operations, in order.
func (t *Tracer) Operations(c dispute.Case) ([]string, error) {
	p, err := t.rules.program(c)
	if err != nil {
		return nil, err
	}
	names := make([]string, p.Len())
	for i := range names {
		names[i] = p.Op(uint32(i)).Name()
	}
	return names, nil
}

// lie is a change to one slice of a step.
type lie struct {
	op, tile, slice uint32
	change          func(words []uint32)
}

// flip changes one bit.
func flip(words []uint32) { words[len(words)/2] ^= 1 << 9 }

// lying is a program that computes one slice wrongly, and everything after it from that slice.
type lying struct {
	trace.Program
	lie
	note func(op uint32, words []uint32) // if not nil, receives the words of each tile computed
}

// Op implements trace.Program.
func (l *lying) Op(t uint32) trace.Op {
	op := l.Program.Op(t)
	if l.note == nil && t != l.op {
		return op
	}
	o := lyingOp{op, l, t}
	if leafer, ok := op.(trace.Leafer); ok {
		return lyingLeafer{o, leafer}
	}
	return o
}

type lyingOp struct {
	trace.Op
	of *lying
	t  uint32
}

// Step implements trace.Op.
func (o lyingOp) Step(w *exact.Worker, tile, slice uint32, acc []uint32, in [][]uint32) []uint32 {
	out := o.Op.Step(w, tile, slice, acc, in)
	if l := o.of.lie; o.t == l.op && tile == l.tile && slice == l.slice {
		l.change(out)
	}
	if o.of.note != nil && slice+1 == o.Slices(tile) {
		o.of.note(o.t, out)
	}
	return out
}

type lyingLeafer struct {
	lyingOp
	leafer trace.Leafer
}

// Leaf implements trace.Leafer.
func (l lyingLeafer) Leaf(words []uint32) wire.Hash { return l.leafer.Leaf(words) }
