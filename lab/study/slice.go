package study

import (
	"cmp"
	"context"
	"fmt"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/codec/dense"
	"github.com/entrain-network/entrain/codec/distro"
	"github.com/entrain-network/entrain/codec/slice"
	"github.com/entrain-network/entrain/engine/cpu"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/optim"
	"github.com/entrain-network/entrain/wire"
)

// SliceOptions configure a comparison of slices with whole updates. Zero values give the comparison
// in the documentation.
type SliceOptions struct {
	Text     string // file to train on; "" for Newton's Opticks
	Members  int
	Windows  int // of Batch sequences; rows with another batch have more or fewer, for equal tokens
	Batch    int // sequences of a window, over all members
	Threads  int
	HeldOut  uint64 // sequences on which the loss is measured
	Rows     []SliceRow
	Progress func(what string) // if not nil, receives short descriptions of what is being measured
}

// SliceRow configures a run of the comparison.
type SliceRow struct {
	Rule        SliceRule
	Overlap     int
	Compression uint32
	Decay       float32
	Rate        float64
	Batch       int // 0: as in the options
}

// SliceRule is a way to learn.
type SliceRule string

// The rules: two codecs, and alternatives for what a slice sends and how it is applied.
const (
	RuleDistro SliceRule = "distro" // codec/distro: what a run of peers does
	RuleSlice  SliceRule = "slice"  // codec/slice
	// codec/slice, but for the step, which is by the mean itself and not by its root
	RuleMean SliceRule = "mean"
	// sums of plain gradients; a slice steps by the sign of all members' sum, times the root of
	// the compression
	RuleSign SliceRule = "sign"
	// the same, but each member sends the signs of its sums: one bit a value
	RuleVotes SliceRule = "votes"
)

// The demo's settings of codec slice.
const (
	sliceDecay = 1
	sliceRate  = 4e-3
)

// SliceRows returns the runs of the documentation, including, if rejected, rules and settings that
// codec/slice does not support. One run trains on half the sequences in twice the windows.
func SliceRows(batch int, rejected bool) []SliceRow {
	const distroRate, rate = 2e-3, sliceRate
	rows := []SliceRow{
		{Rule: RuleDistro, Overlap: 0, Decay: .95, Rate: distroRate}, {Rule: RuleDistro, Overlap: 1, Decay: .95, Rate: distroRate},
		{Rule: RuleSlice, Overlap: 0, Compression: 4, Decay: sliceDecay, Rate: rate},
	}
	for _, c := range []uint32{4, 8, 16} {
		rows = append(rows, SliceRow{Rule: RuleSlice, Overlap: 1, Compression: c, Decay: sliceDecay, Rate: rate})
	}
	rows = append(rows, SliceRow{Rule: RuleSlice, Overlap: 1, Compression: 4, Decay: sliceDecay, Rate: rate, Batch: max(1, batch/2)})
	if rejected {
		rows = append(rows,
			SliceRow{Rule: RuleSlice, Overlap: 1, Compression: 4, Decay: 0, Rate: rate},
			SliceRow{Rule: RuleMean, Overlap: 1, Compression: 8, Decay: sliceDecay, Rate: rate},
			SliceRow{Rule: RuleSign, Overlap: 1, Compression: 8, Decay: .95, Rate: rate},
			SliceRow{Rule: RuleVotes, Overlap: 1, Compression: 8, Decay: .95, Rate: rate},
		)
	}
	return rows
}

// SliceRowsOf returns runs of codec distro at both overlaps, and of slices with these compressions.
func SliceRowsOf(compressions []uint) []SliceRow {
	rows := SliceRows(1, false)[:2]
	for _, c := range compressions {
		rows = append(rows, SliceRow{Rule: RuleSlice, Overlap: 1, Compression: uint32(min(c, slice.CompressionMax+1)), Decay: sliceDecay, Rate: sliceRate})
	}
	return rows
}

// SliceRun is the result of one run.
type SliceRun struct {
	SliceRow
	Windows int
	Losses  []float64 // after each quarter, nats a token
	// Relative is the last loss relative to codec distro at the same overlap, and RelativePeers to
	// distro at overlap 0, as in runs between peers. They are 0 without such a row.
	Relative      float64
	RelativePeers float64
	// uploaded by a member in a window for others to apply
	Bytes int
	// bytes of values; the rest are header and proofs
	ValueBytes int
	StateBytes int // size of a state slice
}

// Slices is the result of a comparison.
type Slices struct {
	Model   string
	Params  int
	Members int
	Windows int
	Batch   int
	Tokens  uint64 // tokens trained on by each run
	Start   float64
	Dense   int // size of a whole update in binary32
	Runs    []SliceRun
}

// sliceModel and sliceSequence are the demo's.
const (
	sliceModel    = "nano"
	sliceSequence = 128
)

func (o *SliceOptions) fill() {
	o.Members, o.Windows, o.Batch = cmp.Or(o.Members, 6), cmp.Or(o.Windows, 300), cmp.Or(o.Batch, 16)
	o.Threads, o.HeldOut = cmp.Or(o.Threads, 1), cmp.Or(o.HeldOut, 64)
	if o.Rows == nil {
		o.Rows = SliceRows(o.Batch, false)
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
}

// MeasureSlices trains the demo's model on its data once for each row, always on the same number of
// tokens. Equal options give equal losses on every machine.
func MeasureSlices(ctx context.Context, o SliceOptions) (Slices, error) {
	o.fill()
	model, err := llama.Preset(sliceModel)
	if err != nil {
		return Slices{}, err
	}
	g, err := newGround(ctx, o.Text, model, sliceSequence, o.HeldOut, o.Threads, "")
	if err != nil {
		return Slices{}, err
	}
	defer g.close()
	n := len(g.start)
	all := Slices{
		Model: sliceModel, Params: n, Members: o.Members, Windows: o.Windows, Batch: o.Batch, Dense: 4 * n,
		Tokens: uint64(o.Windows) * uint64(o.Batch) * sliceSequence,
	}
	for _, row := range o.Rows {
		r := &sliceRun{ground: g, o: o, row: row}
		run, err := r.train(ctx)
		if err != nil {
			return Slices{}, fmt.Errorf("%s: %w", r.name(), err)
		}
		all.Start = r.before
		all.Runs = append(all.Runs, run)
	}
	all.relate()
	return all, nil
}

// relate computes losses relative to the runs of codec distro.
func (s *Slices) relate() {
	last := func(r *SliceRun) float64 { return r.Losses[len(r.Losses)-1] }
	for i := range s.Runs {
		for k := range s.Runs {
			r, d := &s.Runs[i], &s.Runs[k]
			if d.Rule != RuleDistro {
				continue
			}
			if d.Overlap == r.Overlap {
				r.Relative = last(r) / last(d)
			}
			if d.Overlap == 0 {
				r.RelativePeers = last(r) / last(d)
			}
		}
	}
}

// sliceRun is one run in progress.
type sliceRun struct {
	*ground
	o   SliceOptions
	row SliceRow

	engine *cpu.Engine
	slice  *slice.Codec // nil if whole updates are sent
	rates  optim.Schedule
	states [][]float32 // by member
	params []float32
	before float64 // initial loss
}

func (r *sliceRun) name() string {
	return fmt.Sprintf("%s, overlap %d, compression %d, decay %g, rate %g, batch %d", r.row.Rule, r.row.Overlap, r.row.Compression, r.row.Decay, r.row.Rate, r.row.Batch)
}

// leafValues is the default of codec slice.
const leafValues = 512

// make creates the codec, the engine and the initial state.
func (r *sliceRun) make(windows int) error {
	layout := r.model.Layout()
	var options codec.Options = distro.Config{Block: 64, TopK: 32, Decay: r.row.Decay, WeightDecay: weightDecay, ClipNorm: clipNorm}
	var err error
	if r.row.Rule != RuleDistro {
		cfg := slice.Config{Compression: r.row.Compression, Leaf: leafValues, Decay: r.row.Decay, WeightDecay: weightDecay, ClipNorm: clipNorm}
		if r.slice, err = slice.New(layout, cfg, r.pool); err != nil {
			return err
		}
		options = cfg
	}
	if r.row.Rule == RuleSign || r.row.Rule == RuleVotes {
		// learner implements the rule and needs only gradients from the engine.
		options = dense.Config{WeightDecay: weightDecay, ClipNorm: clipNorm}
	}
	r.rates = optim.Schedule{
		Kind: optim.Cosine, Base: r.row.Rate, WarmupSteps: uint32(min(windows/10, 20*windows/max(1, r.o.Windows))), Steps: uint32(windows), Final: r.row.Rate / 10,
	}
	if r.engine, err = r.ground.engine(options, r.rates, nil); err != nil {
		return err
	}
	for range r.o.Members {
		r.states = append(r.states, make([]float32, r.engine.StateLen()))
	}
	r.params = r.fresh()
	return nil
}

// train trains one model.
func (r *sliceRun) train(ctx context.Context) (SliceRun, error) {
	if r.row.Batch == 0 {
		r.row.Batch = r.o.Batch
	}
	r.o.Progress(r.name())
	run := SliceRun{SliceRow: r.row, Windows: r.o.Windows * r.o.Batch / r.row.Batch}
	if err := r.make(run.Windows); err != nil {
		return run, err
	}
	defer r.engine.Close()
	run.Bytes, run.ValueBytes = r.engine.PayloadMax(), r.engine.PayloadMax()-codec.HeaderLen
	if r.slice != nil {
		run.Bytes, run.StateBytes = r.slice.RevealLen(), r.slice.StateSliceLen()
		run.ValueBytes = sliceValues(r.slice)
	}
	loss, err := r.engine.HeldOut(ctx, cpu.Floats(r.params))
	if err != nil {
		return run, err
	}
	r.before = float64(loss)
	learn := r.learner()
	var late func() error // applies the update of the previous window
	for w := 1; w <= run.Windows; w++ {
		results, err := r.window(ctx, w)
		if err != nil {
			return run, err
		}
		apply := learn(w, results)
		if r.row.Overlap == 1 {
			apply, late = late, apply
		}
		if apply != nil {
			if err := apply(); err != nil {
				return run, err
			}
		}
		if quarter := len(run.Losses) + 1; w == run.Windows*quarter/4 {
			if loss, err = r.engine.HeldOut(ctx, cpu.Floats(r.params)); err != nil {
				return run, err
			}
			run.Losses = append(run.Losses, float64(loss))
		}
	}
	return run, nil
}

// window trains each member's share on the same parameters.
func (r *sliceRun) window(ctx context.Context, w int) ([][]byte, error) {
	results := make([][]byte, 0, r.o.Members)
	for i := range r.o.Members {
		from, n := batch.Split(uint32(r.row.Batch), uint32(r.o.Members), uint32((i+w)%r.o.Members))
		if n == 0 {
			continue
		}
		share := []batch.Span{{Start: uint64(w-1)*uint64(r.row.Batch) + uint64(from), Count: n}}
		result, err := r.engine.Step(ctx, cpu.Floats(r.params), cpu.Floats(r.states[i]), share, uint32(w))
		if err != nil {
			return nil, err
		}
		if r.row.Rule == RuleSlice || r.row.Rule == RuleMean {
			// As in a run: reveal, then settle before the next step.
			seed := windowSeed(w)
			reveal := r.slice.Reveal(nil, result.Payload, seed)
			r.slice.Settle(r.states[i], seed)
			result.Payload = reveal
		}
		results = append(results, result.Payload)
	}
	return results, nil
}

// windowSeed returns the seed of a window's slice.
func windowSeed(w int) wire.Hash {
	return wire.Sum("entrain/bench-slice", wire.AppendU32(nil, uint32(w)))
}
