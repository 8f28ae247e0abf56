package node

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/bisect"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/engine/cpu"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// The toy's step as a program: toyOps-1 operations whose values are made up of the share, and the outcome. Each has one tile of one slice.
const (
	toyOps     = 40
	toyPayload = 8 // bytes
)

// toyStep is what a share begins from, as evidence has it.
type toyStep struct {
	params float32 // the first, which is all that the toy reads
	state  []float32
	spans  []batch.Span
}

// leaves are the leaves of the true trace of a case.
func (s toyStep) leaves(c dispute.Case) []wire.Hash {
	state := bytes.Clone(tensor.Bytes(s.state))
	after := make([]float32, len(s.state))
	tensor.SetBytes(after, state)
	r, err := toy{}.Step(context.Background(), cpu.Floats{s.params}, cpu.Floats(after), s.spans, uint32(c.Step))
	if err != nil {
		panic(err)
	}
	made := c.Commitment
	made.Payload, made.PayloadBytes = merkle.BlobRoot(r.Payload), uint32(len(r.Payload))
	made.State, made.Work = merkle.BlobRoot(tensor.Bytes(after)), dispute.WorkHash(made.Run, made.Round, made.Member, r.Gradient)
	list := make([]wire.Hash, toyOps)
	for i := range list {
		list[i] = wire.Sum("toy/op", wire.AppendU32(nil, uint32(i)), state, r.Payload)
	}
	list[toyOps-1] = dispute.Outcome(made)
	return list
}

func (s toyStep) append(b []byte) []byte {
	b = wire.AppendU32(b, math.Float32bits(s.params))
	b = append(b, tensor.Bytes(s.state)...)
	for _, v := range s.spans {
		b = wire.AppendU32(wire.AppendU64(b, v.Start), v.Count)
	}
	return b
}

var errToyEvidence = errors.New("the evidence is not what the commitment names")

// toyReferee believes the evidence about the parameters and checks the rest of it.
type toyReferee struct{}

func toyReferees([]byte) (dispute.Referee, error) { return toyReferee{}, nil }

func (toyReferee) Ops(uint32) uint32                         { return toyOps }
func (toyReferee) Tiles(dispute.Case, uint32) uint32         { return 1 }
func (toyReferee) Slices(_ dispute.Case, _, _ uint32) uint32 { return 1 }
func (toyReferee) Judge(c dispute.Case, op, _, _ uint32, _ wire.Hash, evidence []byte) (wire.Hash, error) {
	if c.Commitment.PayloadBytes != toyPayload {
		return judgeSliced(c, op, evidence)
	}
	n := 4 * toy{}.StateLen()
	if len(evidence) < 4+n || (len(evidence)-4-n)%12 != 0 {
		return wire.Hash{}, errToyEvidence
	}
	s := toyStep{params: math.Float32frombits(binary.LittleEndian.Uint32(evidence)), state: make([]float32, toy{}.StateLen())}
	tensor.SetBytes(s.state, evidence[4:4+n])
	r := wire.NewReader(evidence[4+n:])
	for r.Len() > 0 {
		s.spans = append(s.spans, batch.Span{Start: r.U64(), Count: r.U32()})
	}
	if merkle.BlobRoot(tensor.Bytes(s.state)) != c.Commitment.Prev || batch.Hash(s.spans) != c.Commitment.Share {
		return wire.Hash{}, errToyEvidence
	}
	return s.leaves(c)[op], nil
}

// toyDisputant argues with the toy's trace; one that lies puts what was committed to at its end, a slanderer something else.
type toyDisputant struct {
	toy
	lies, slanders bool
}

func (d toyDisputant) Open(_ context.Context, c dispute.Case, spans []batch.Span, params, state engine.Vector) (Player, error) {
	s := toyStep{params: params.Host(0, 1)[0], state: engine.Values(state), spans: spans}
	if state == nil {
		s.state = make([]float32, d.StateLen())
	}
	p := toyPlayer{step: s, leaves: s.leaves(c), outcome: dispute.Outcome(c.Commitment)}
	if d.lies {
		p.leaves[toyOps-1] = p.outcome
	}
	if d.slanders {
		p.leaves[toyOps-1] = wire.Sum("slander")
	}
	return p, nil
}

type toyPlayer struct {
	step    toyStep
	leaves  []wire.Hash
	outcome wire.Hash
}

func (p toyPlayer) Root() wire.Hash { return bisect.Root(p.leaves) }
func (p toyPlayer) Agrees() bool    { return p.leaves[toyOps-1] == p.outcome }

func (p toyPlayer) Move(_ context.Context, d dispute.Dispute, _ coordinator.Member) (coordinator.Message, error) {
	switch d.Stage {
	case dispute.StageDefending:
		return coordinator.Defend{Dispute: d.ID, Trace: p.Root(), Proof: bisect.Prove(p.leaves, toyOps-1)}, nil
	case dispute.StageDescending:
		return coordinator.Reveal{Dispute: d.ID, Nodes: bisect.Children(p.leaves, d.Depth, d.Index)}, nil
	case dispute.StageEvidence:
		return coordinator.Evidence{Dispute: d.ID, Bytes: p.step.append(nil)}, nil
	}
	return nil, nil
}
