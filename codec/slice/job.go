package slice

import (
	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/merkle"
)

// A job is the work space of one call, used again by later ones, so that they allocate next to
// nothing.
type job struct {
	c          *Codec
	clipper    *codec.Clipper
	checkState *codec.StateCheck
	scratch    []scratch     // of each worker of the pool
	below      []bool        // by task of signs
	places     []place       // by group
	roots      []merkle.Hash // by group

	// The work on a task, bound to the job once.
	encode, signs, root, prove, open, square, apply func(w *exact.Worker, task int)

	state, grad []float32 // of Encode
	numbers     exact.AdamWStep
	values      []byte // of a sealed update
	reveal      []byte // that is made or opened

	params  []float32 // of Apply
	reveals [][]byte
	squares []uint64 // of reveals, tensor after tensor
	sorted  []uint64 // those of one tensor
	weights []int32  // as squares
	step    float32
	decay   float32
}

// scratch is the work space of one worker.
type scratch struct {
	mean   []float32     // of a span
	sums   []int32       // of a leaf
	leaves []merkle.Hash // of a group
}

// take returns a job that nobody uses, and give takes it back.
func (c *Codec) take() *job {
	select {
	case j := <-c.spare:
		return j
	default:
	}
	j := &job{
		c: c, clipper: codec.NewClipper(c.pool), checkState: codec.NewStateCheck(c.pool), scratch: make([]scratch, c.pool.Workers()),
		below: make([]bool, spans(c.n)), places: make([]place, len(c.plan.groups)), roots: make([]merkle.Hash, len(c.plan.groups)),
	}
	for i := range j.scratch {
		j.scratch[i] = scratch{mean: make([]float32, span), sums: make([]int32, c.plan.leaf), leaves: make([]merkle.Hash, c.plan.leavesMax)}
	}
	j.encode, j.signs, j.root, j.prove, j.open = j.encodeSpan, j.signsOfSpan, j.rootGroup, j.proveGroup, j.openGroup
	j.square, j.apply = j.squareReveal, j.applyGroup
	return j
}

func (c *Codec) give(j *job) {
	j.state, j.grad, j.values, j.reveal, j.params, j.reveals = nil, nil, nil, nil, nil, nil // keeps no caller's memory alive
	select {
	case c.spare <- j:
	default:
	}
}

// A place is where in a reveal a group's part is.
type place struct {
	drawn     int // the leaf
	value     int // offset of its first value
	positions codec.Range
	proof     int // offset of its proof
	proofLen  int // in hashes
}

// lay finds the places in a reveal of what the seed draws.
func (j *job) lay(d draw) (end int) {
	at := headLen
	for i := range j.places {
		g, p := &j.c.plan.groups[i], &j.places[i]
		p.drawn = d.next(g)
		p.positions = j.c.plan.leafRange(g, p.drawn)
		p.value, p.proofLen = at, proofLen(p.drawn, g.leaves)
		at += p.positions.Len()
	}
	for i := range j.places {
		j.places[i].proof = at
		at += hashLen * j.places[i].proofLen
	}
	return at
}
