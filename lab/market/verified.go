package market

import (
	"context"
	"errors"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/codec/all"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/node"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/verify"
	"github.com/entrain-network/entrain/wire"
)

// Times of a verified market, in milliseconds. A window takes five to six seconds.
const (
	verifyMs  = 12_000
	disputeMs = 10_000
	unbondMs  = 2*verifyMs + 16*disputeMs
)

// verified makes what a run whose results are verified needs more than others: the specification
// that its referee reads, and what its miners argue with.
func (m *Market) verified() error {
	s := spec.Default(all.Kinds())
	s.Name, s.Steps = runName, m.cfg.Steps
	s.Model = spec.Model{
		Preset: "nano", Vocab: m.cfg.Model.Vocab, Hidden: m.cfg.Model.Hidden, Layers: m.cfg.Model.Layers, Heads: m.cfg.Model.Heads, KVHeads: m.cfg.Model.KVHeads,
		HeadDim: m.cfg.Model.HeadDim, FFN: m.cfg.Model.FFN, Context: m.cfg.Model.Context, Theta: m.cfg.Model.Theta, Eps: m.cfg.Model.Eps, Head: "own", Seed: "market",
	}
	s.Data = spec.Data{Manifest: wire.Sum("entrain/market-manifest").String(), Sequence: sequence, Seed: "market"}
	s.Exchange = spec.Exchange{Kind: spec.ExchangeBucket, WindowBlocks: windowBlocks}
	s.Optimizer = m.run.Codec
	s.Members.Overlap = 1
	s.LearningRate.Warmup = 0
	s.Batch.Start = uint32(len(m.cfg.Miners)) * m.cfg.Share
	s.Trust.VerificationPercent = m.cfg.Verification
	var err error
	if m.text, err = s.Append(nil); err != nil {
		return err
	}
	if s, err = spec.Parse(m.text, all.Kinds()); err != nil {
		return err
	}
	if m.referee, err = verify.NewReferee(m.text); err != nil {
		return err
	}
	tracer, err := verify.NewTracer(s, unproven{}, m.engine)
	m.disputant = arguer{tracer}
	return err
}

// unproven is the language as data whose sequences have no proofs, since no manifest lists them:
// disputes about loaded tokens cannot be decided.
type unproven struct{ language }

var errUnproven = errors.New("market: this text has no proofs")

// Prove implements verify.Data.
func (unproven) Prove(uint64) ([]byte, error) { return nil, errUnproven }

// ProofMax implements verify.Data.
func (unproven) ProofMax() int { return 0 }

// arguer makes players of package node of those of package verify.
type arguer struct{ *verify.Tracer }

// Open implements node.Disputant.
func (d arguer) Open(ctx context.Context, c dispute.Case, spans []batch.Span, params, state engine.Vector) (node.Player, error) {
	p, err := d.Tracer.Open(ctx, c, spans, params, state)
	if err != nil {
		return nil, err
	}
	return p, nil
}
