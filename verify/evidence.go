package verify

import (
	"errors"
	"fmt"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/trace"
	"github.com/entrain-network/entrain/wire"
)

// Evidence for a program's external inputs:
//
//	a chunk of parameters, state or   trace.ProveChunk
//	the frozen model
//	a sequence                        Var spans (batch.Append), then data.Set.Prove

// spansMax bounds the spans of a share.
const spansMax = 1 << 12

// opener checks evidence with what the referee knows about a case.
type opener struct {
	rules *rules
	c     dispute.Case
}

// Open implements trace.Opener.
func (o opener) Open(r trace.Read, evidence []byte) ([]uint32, error) {
	switch r.Source {
	case trace.Params:
		return trace.OpenChunk(o.c.Commitment.Params, o.rules.params, r.Index, evidence)
	case trace.State:
		return trace.OpenChunk(o.c.Commitment.Prev, o.rules.params, r.Index, evidence)
	case trace.Base:
		return trace.OpenChunk(o.rules.base, o.rules.frozen, r.Index, evidence)
	case trace.Tokens:
		return o.tokens(r.Index, evidence)
	}
	return nil, fmt.Errorf("verify: source %d is not an external input", r.Source)
}

// tokens checks the evidence for a sequence of the share.
func (o opener) tokens(index uint32, evidence []byte) ([]uint32, error) {
	r := wire.NewReader(evidence)
	text := wire.NewReader(r.Var(spansMax*batch.SpanBytes + 4))
	spans := batch.Parse(&text, spansMax)
	if err := errors.Join(r.Err().OrNil(), text.Done().OrNil()); err != nil {
		return nil, fmt.Errorf("verify: evidence for sequence %d: %w", index, err)
	}
	if batch.Hash(spans) != o.c.Commitment.Share || batch.Total(spans) != o.c.Sequences {
		return nil, fmt.Errorf("verify: the evidence for sequence %d belongs to another share", index)
	}
	number, ok := batch.Number(spans, index)
	if !ok {
		return nil, fmt.Errorf("verify: the share has no sequence %d", index)
	}
	dst := make([]uint32, o.rules.setup.Sequence+1)
	if err := data.Proven(dst, o.rules.manifest, o.rules.order, o.rules.first+number, r.Rest()); err != nil {
		return nil, fmt.Errorf("verify: evidence for sequence %d: %w", index, err)
	}
	return dst, nil
}

// Data provides evidence for tokens. data.Set implements it.
type Data interface {
	// Read sets dst to sequence i.
	Read(i uint64, dst []uint32) error
	// Prove returns a proof of sequence i, at most ProofMax bytes long.
	Prove(i uint64) ([]byte, error)
	ProofMax() int
}

// evidenceRoom is the space in a message for everything but the proof of a sequence: the spans of
// the share, which are few unless rounds failed.
const evidenceRoom = 16 << 10

// provable returns an error unless the proof of every sequence fits in a message. An accuser that
// cannot prove its inputs would lose.
func provable(d Data) error {
	if n := d.ProofMax(); n > coordinator.EvidenceBytesMax-evidenceRoom {
		return fmt.Errorf("the proof of a sequence can take %d bytes, and a message has room for %d: use fewer, larger shards or shorter sequences",
			n, coordinator.EvidenceBytesMax-evidenceRoom)
	}
	return nil
}

// prover makes the evidence that opener checks.
type prover struct {
	engine        engine.Engine
	params, state engine.Vector
	spans         []batch.Span
	data          Data
}

// prove implements trace.Sources.Prove.
func (p prover) prove(r trace.Read) ([]byte, error) {
	switch r.Source {
	case trace.Params:
		return p.chunk(p.params, r.Index), nil
	case trace.State:
		return p.chunk(p.state, r.Index), nil
	case trace.Base:
		base := p.engine.Base()
		return trace.ProveChunk(base, merkle.BlobLeaves(tensor.Bytes(base)), r.Index), nil
	case trace.Tokens:
		number, ok := batch.Number(p.spans, r.Index)
		if !ok {
			return nil, fmt.Errorf("verify: the share has no sequence %d", r.Index)
		}
		proof, err := p.data.Prove(number)
		if err != nil {
			return nil, err
		}
		evidence := append(wire.AppendVar(nil, batch.Append(nil, p.spans)), proof...)
		if len(evidence) > coordinator.EvidenceBytesMax {
			return nil, fmt.Errorf("verify: the evidence for a sequence has %d bytes, and a message holds at most %d", len(evidence), coordinator.EvidenceBytesMax)
		}
		return evidence, nil
	}
	return nil, fmt.Errorf("verify: source %d is not an external input", r.Source)
}

// chunk proves one chunk of a blob of floats.
func (p prover) chunk(v engine.Vector, index uint32) []byte {
	return trace.ProveChunk(engine.Values(v), p.engine.Leaves(v), index)
}

// tokens implements trace.Sources.Tokens.
func (p prover) tokens(length int) func(i uint32) ([]uint32, error) {
	return func(i uint32) ([]uint32, error) {
		number, ok := batch.Number(p.spans, i)
		if !ok {
			return nil, fmt.Errorf("verify: the share has no sequence %d", i)
		}
		dst := make([]uint32, length+1)
		return dst, p.data.Read(number, dst)
	}
}
