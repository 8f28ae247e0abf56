package distro

import (
	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/codec/internal/subset"
	"github.com/entrain-network/entrain/codec/internal/vec"
	"github.com/entrain-network/entrain/exact"
)

// blocksPerTask is the number of blocks in a task. It does not affect results.
const blocksPerTask = 8

// A job is the work space of one Encode or Apply. Jobs are reused, so that calls allocate nothing.
type job struct {
	c          *Codec
	clipper    *codec.Clipper
	checkState *codec.StateCheck
	scratch    []scratch // by worker

	// The functions that run a task, bound to the job once.
	encode, apply func(w *exact.Worker, task int)

	state, grad []float32 // arguments of Encode
	step        float32
	codes       []uint64 // by block

	params   []float32 // arguments of Apply
	payloads [][]byte
	keep, lr float32
	// In place of payloads, ranges of them that begin skip bits after the header. Their codes need not
	// be valid.
	ranges bool
	skip   int

	signs []byte   // results of Update
	zeros [][]span // by task
}

// scratch is the work space of one worker.
type scratch struct {
	at       cursor
	a, b     []float32          // a block each, in rows or in padded columns
	columns  []float32          // another
	lanes    [vec.Lanes]float32 // partial greatest magnitudes
	picker   subset.Picker
	votes    subset.Signed
	readings [subset.Readings]subset.Reading // payloads that are decoded together
	valid    [][]byte                        // ranges whose code of a block is valid
}

// get returns an idle job, or a new one.
func (c *Codec) get() *job {
	select {
	case j := <-c.spare:
		return j
	default:
	}
	j := &job{
		c: c, clipper: codec.NewClipper(c.pool), scratch: make([]scratch, c.pool.Workers()),
		checkState: codec.NewStateCheck(c.pool), codes: make([]uint64, c.blocks*c.words),
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

// put makes a job idle.
func (c *Codec) put(j *job) {
	// Releases the caller's memory.
	j.state, j.grad, j.params, j.payloads, j.signs, j.zeros = nil, nil, nil, nil, nil, nil
	j.ranges, j.skip = false, 0
	for i := range j.scratch {
		clear(j.scratch[i].valid)
	}
	select {
	case c.spare <- j:
	default:
	}
}

// tasks returns the number of tasks.
func (c *Codec) tasks() int { return (c.blocks + blocksPerTask - 1) / blocksPerTask }

// each calls do with the blocks of one task.
func (j *job) each(s *scratch, task int, do func(b *block)) {
	at := &s.at
	for *at = j.c.at(task * blocksPerTask); at.i < min((task+1)*blocksPerTask, j.c.blocks); at.next() {
		do(&at.block)
	}
}
