package distro

import (
	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/codec/internal/subset"
	"github.com/entrain-network/entrain/codec/internal/vec"
	"github.com/entrain-network/entrain/exact"
)

// blocksPerTask is how much a worker takes at a time. The results do not depend on it.
const blocksPerTask = 8

// A job is the work space of one Encode or Apply, used again by later ones, so that they allocate
// nothing.
type job struct {
	c          *Codec
	clipper    *codec.Clipper
	checkState *codec.StateCheck
	scratch    []scratch // of each worker of the pool

	// The work on a task, bound to the job once.
	encode, apply func(w *exact.Worker, task int)

	state, grad []float32 // of Encode
	step        float32
	codes       []uint64 // of the blocks

	params   []float32 // of Apply
	payloads [][]byte
	keep, lr float32
}

// scratch is the work space of one worker.
type scratch struct {
	a, b     []float32          // a block each, in rows or in columns of a basis's ld
	columns  []float32          // another
	lanes    [vec.Lanes]float32 // of a greatest magnitude
	picker   subset.Picker
	votes    subset.Signed
	readings [subset.Readings]subset.Reading // of payloads decoded together
}

// take returns a job that nobody uses, and give takes it back.
func (c *Codec) take() *job {
	select {
	case j := <-c.spare:
		return j
	default:
	}
	j := &job{
		c: c, clipper: codec.NewClipper(c.pool), scratch: make([]scratch, c.pool.Workers()),
		checkState: codec.NewStateCheck(c.pool), codes: make([]uint64, len(c.blocks)*c.words),
	}
	n := c.cfg.Block * c.cfg.Block
	columns := c.cfg.Block * ((c.cfg.Block + vec.ColumnSums - 1) / vec.ColumnSums * vec.ColumnSums)
	for i := range j.scratch {
		j.scratch[i] = scratch{
			a: make([]float32, n), b: make([]float32, columns), columns: make([]float32, columns),
			picker: subset.NewPicker(n, c.cfg.TopK),
		}
	}
	j.encode, j.apply = j.encodeBlocks, j.applyBlocks
	return j
}

func (c *Codec) give(j *job) {
	j.state, j.grad, j.params, j.payloads = nil, nil, nil, nil // keeps no caller's memory alive
	select {
	case c.spare <- j:
	default:
	}
}

// tasks is how many tasks the blocks make.
func (c *Codec) tasks() int { return (len(c.blocks) + blocksPerTask - 1) / blocksPerTask }
