package slice

import (
	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/merkle"
)

// A job is the work space of one call. Jobs are reused, so that calls allocate almost nothing.
type job struct {
	c          *Codec
	clipper    *codec.Clipper
	checkState *codec.StateCheck
	scratch    []scratch     // by worker
	below      []bool        // by task of signs
	places     []place       // by group
	roots      []merkle.Hash // by group

	// The functions that run a task, bound to the job once.
	encode, signs, root, prove, open, square, apply func(w *exact.Worker, task int)

	state, grad []float32 // arguments of Encode
	numbers     exact.AdamWStep
	values      []byte // values of a sealed update
	reveal      []byte // being made or opened

	params  []float32 // arguments of Apply
	reveals [][]byte
	squares []uint64 // norms squared, by tensor and reveal
	sorted  []uint64 // the same of one tensor
	weights []int32  // by tensor and reveal
	step    float32
	decay   float32
}

// scratch is the work space of one worker.
type scratch struct {
	mean   []float32     // for a span
	sums   []int32       // for a leaf
	leaves []merkle.Hash // for a group
}

// get returns an idle job, or a new one.
func (c *Codec) get() *job {
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

// put makes a job idle.
func (c *Codec) put(j *job) {
	// Release the caller's memory.
	j.state, j.grad, j.values, j.reveal, j.params, j.reveals = nil, nil, nil, nil, nil, nil
	select {
	case c.spare <- j:
	default:
	}
}

// A place locates a group's part of a reveal.
type place struct {
	drawn     int // the drawn leaf
	value     int // offset of its first value
	positions codec.Range
	proof     int // offset of its proof
	proofLen  int // in hashes
}

// locate sets the places of what the seed draws.
func (j *job) locate(d draw) {
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
}
