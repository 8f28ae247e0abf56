package study

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/codec/all"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/data/source"
	"github.com/entrain-network/entrain/engine/cpu"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/tokenizer"
	"github.com/entrain-network/entrain/verify"
	"github.com/entrain-network/entrain/wire"
)

// DisputeOptions configure MeasureDispute.
type DisputeOptions struct {
	Model     string // a preset
	Sequences int    // sequences in the share
	Sequence  int    // tokens in a sequence
	Threads   int
	Progress  func(what string) // may be nil
}

// A Dispute is the cost of checking a step and of disputes about it. Times are in seconds.
type Dispute struct {
	Model      string  `json:"model"`
	Params     int     `json:"params"`
	Sequences  int     `json:"sequences"`
	Sequence   int     `json:"sequence"`
	Threads    int     `json:"threads"`
	Operations uint32  `json:"operations"`   // operations of the step
	Step       float64 `json:"step_seconds"` // computing it
	// verifying it, including the hashes to compare
	Verify float64 `json:"verify_seconds"`
	Trace  float64 `json:"trace_seconds"` // tracing it, for a dispute
	// Overhead is the computing that verification adds, by the percentage of checked results.
	Overhead map[string]float64 `json:"overhead"`
	Games    []Played           `json:"disputes"`
}

// Played is a dispute about a lie in one operation.
type Played struct {
	Operation string  `json:"operation"`
	Convicted string  `json:"convicted"` // "accused" or "accuser"
	Messages  int     `json:"messages"`
	Bytes     int     `json:"bytes"` // total size of messages
	Evidence  int     `json:"evidence_bytes"`
	Referee   float64 `json:"referee_seconds"` // the referee's judgment, in plain Go
	Seconds   float64 `json:"seconds"`         // the whole dispute, including the liar's trace
}

// disputed lists prefixes of the names of operations that contain a lie: external inputs, a
// product, attention, the backward pass, and the codec.
var disputed = []string{
	"sequence 0, tokens", "pieces of model.embed_tokens.weight", "sequence 0, layer 0, gate", "sequence 0, layer 0, head 0, attention", "sequence 0, layer 0, gradient of down_proj",
	"old state by blocks", "coefficients of each block", "code of each block", "new state: hash of each chunk",
}

// MeasureDispute measures a preset's step, its verification, and disputes about it.
func MeasureDispute(ctx context.Context, o DisputeOptions) (Dispute, error) {
	dir, err := os.MkdirTemp("", "entrain-bench")
	if err != nil {
		return Dispute{}, err
	}
	defer os.RemoveAll(dir)
	d, err := newDisputed(ctx, dir, o)
	if err != nil {
		return Dispute{}, err
	}
	defer d.engine.Close()
	return d.measure(ctx)
}

// disputedStep is a step with everything that disputes about it need.
type disputedStep struct {
	DisputeOptions
	engine  *cpu.Engine
	tracer  *verify.Tracer
	referee dispute.Referee
	in      verify.Inputs
	c       dispute.Case
	names   []string
}

// newDisputed makes a run on random tokens, with the tracer and the referee of its disputes.
func newDisputed(ctx context.Context, dir string, o DisputeOptions) (*disputedStep, error) {
	cfg, err := llama.Preset(o.Model)
	if err != nil {
		return nil, err
	}
	m, err := randomTokens(ctx, dir, cfg.Vocab, o)
	if err != nil {
		return nil, err
	}
	text := fmt.Appendf(nil, "name = \"bench\"\nsteps = 100\n[model]\npreset = %q\nseed = \"bench\"\n[data]\nmanifest = \"%s\"\nsequence = %d\nseed = \"bench\"\n[batch]\nstart = %d\n",
		o.Model, m.Hash(), o.Sequence, o.Sequences)
	s, err := spec.Parse(text, all.Kinds())
	if err != nil {
		return nil, err
	}
	set, err := data.Open(ctx, dir, m.Hash(), data.Options{SequenceTokens: uint32(o.Sequence), Seed: s.DataSeed()})
	if err != nil {
		return nil, err
	}
	d := &disputedStep{DisputeOptions: o}
	if d.engine, err = disputeEngine(s, set, o); err != nil {
		return nil, err
	}
	if d.tracer, err = verify.NewTracer(s, set, d.engine); err != nil {
		return nil, err
	}
	if d.referee, err = verify.NewReferee(text); err != nil {
		return nil, err
	}
	params, err := s.InitialParams()
	if err != nil {
		return nil, err
	}
	d.in = verify.Inputs{Spans: []batch.Span{{Count: uint32(o.Sequences)}}, Params: d.engine.Load(params), State: d.engine.NewVector(d.engine.StateLen())}
	return d, nil
}

func disputeEngine(s spec.Spec, set *data.Set, o DisputeOptions) (*cpu.Engine, error) {
	run, err := s.Engine()
	if err != nil {
		return nil, err
	}
	run.Data = set
	return cpu.New(run, cpu.Options{Workers: o.Threads, Micro: min(o.Sequences, disputeMicro)})
}

// disputeMicro is the number of sequences computed at once.
const disputeMicro = 8

// randomTokens prepares a data set that is large enough for the share.
func randomTokens(ctx context.Context, dir string, vocab int, o DisputeOptions) (data.Manifest, error) {
	n := max(o.Sequences*o.Sequence+1, 2*merkle.ChunkBytes)
	b, r := make([]byte, 0, 2*n), prng.New(wire.Sum("entrain/bench"), "disputed tokens")
	for range n {
		b = binary.LittleEndian.AppendUint16(b, uint16(r.Uint64n(uint64(min(vocab, 256)))))
	}
	path := filepath.Join(dir, "tokens")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		return data.Manifest{}, err
	}
	return data.Prepare(ctx, dir, []string{path}, data.PrepareOptions{Name: "bench", Tokenizer: tokenizer.Bytes{}, Format: source.Uint16})
}

func (d *disputedStep) measure(ctx context.Context) (Dispute, error) {
	r := Dispute{Model: d.Model, Params: d.in.Params.Len(), Sequences: d.Sequences, Sequence: d.Sequence, Threads: d.Threads}
	d.tell("the step, and its verification")
	if err := d.check(ctx, &r); err != nil {
		return r, err
	}
	d.tell("its trace")
	from := time.Now()
	honest, err := d.tracer.Open(ctx, d.c, d.in.Spans, d.in.Params, d.in.State)
	if err != nil {
		return r, err
	}
	r.Trace = time.Since(from).Seconds()
	if !honest.Agrees() {
		return r, fmt.Errorf("the trace of the step ends in something else than the step")
	}
	if d.names, err = d.tracer.Operations(d.c); err != nil {
		return r, err
	}
	r.Operations = uint32(len(d.names))
	for _, name := range disputed {
		if err := d.play(ctx, name, honest, &r); err != nil {
			return r, err
		}
	}
	return r, nil
}

func (d *disputedStep) tell(what string) {
	if d.Progress != nil {
		d.Progress(what)
	}
}

// disputeStep is the number of the step: the first after the default warmup.
const disputeStep = 21

// disputeRounds is the number of measurements of the step and its verification, in turn. The best
// counts.
const disputeRounds = 4

// check computes the step, commits to the result and verifies it, several times. The first time is
// a warmup.
func (d *disputedStep) check(ctx context.Context, r *Dispute) error {
	r.Step, r.Verify = math.Inf(1), math.Inf(1)
	for range disputeRounds {
		step, err := d.commit(ctx)
		if err != nil {
			return err
		}
		from := time.Now()
		v, err := verify.Recompute(ctx, d.engine, d.c, d.in)
		if err != nil {
			return err
		}
		if !v.Same {
			return fmt.Errorf("a step done twice comes out differently: %s", v.Difference)
		}
		r.Step, r.Verify = min(r.Step, step), min(r.Verify, time.Since(from).Seconds())
	}
	r.Overhead = map[string]float64{}
	for _, percent := range []int{1, 5, 10} {
		r.Overhead[fmt.Sprint(percent)] = float64(percent) / 100 * r.Verify / r.Step
	}
	return nil
}

// commit computes the step and the hashes of its results and commits to them. It returns the
// seconds taken.
func (d *disputedStep) commit(ctx context.Context) (float64, error) {
	after := d.engine.NewVector(d.in.State.Len())
	d.engine.Copy(after, d.in.State)
	// known from the step before
	prev, params := merkle.Root(d.engine.Leaves(d.in.State)), merkle.Root(d.engine.Leaves(d.in.Params))
	from := time.Now()
	result, err := d.engine.Step(ctx, d.in.Params, after, d.in.Spans, disputeStep)
	if err != nil {
		return 0, err
	}
	c := dispute.Commitment{
		Run: wire.Sum("entrain/bench"), Round: 1, Share: batch.Hash(d.in.Spans), Payload: merkle.BlobRoot(result.Payload), PayloadBytes: uint32(len(result.Payload)),
		Prev: prev, State: merkle.Root(d.engine.Leaves(after)), Params: params,
	}
	c.Work = dispute.WorkHash(c.Run, c.Round, c.Member, result.Gradient)
	d.c = dispute.Case{Commitment: c, Step: disputeStep, Sequences: uint32(d.Sequences)}
	return time.Since(from).Seconds(), nil
}

// play plays the dispute about a lie in the first operation whose name has the prefix. A model may
// have none.
func (d *disputedStep) play(ctx context.Context, name string, honest *verify.Player, r *Dispute) error {
	for op, full := range d.names {
		if !strings.HasPrefix(full, name) {
			continue
		}
		d.tell("a dispute about " + full)
		from := time.Now()
		g, err := d.tracer.Rehearse(ctx, d.referee, d.c, d.in, honest, uint32(op))
		if err != nil {
			return err
		}
		r.Games = append(r.Games, Played{
			Operation: full, Convicted: [...]string{"accused", "accuser"}[g.Convicted], Messages: g.Messages, Bytes: g.Bytes, Evidence: g.EvidenceBytes,
			Referee: g.Referee.Seconds(), Seconds: time.Since(from).Seconds(),
		})
		return nil
	}
	return nil
}
