package sim

import (
	"context"
	"errors"

	"github.com/entrain-network/entrain/batch"
)

// Honest trains the run of cfg as it goes when all participants are honest and nothing fails, and returns the loss of the final
// parameters on the text that nobody trains on. It is the arithmetic of every round, member by member, without ledger, network and
// time, so it costs a small part of Run.
func Honest(ctx context.Context, cfg Config) (heldOut float32, err error) {
	cfg.Adversaries, cfg.Verification = nil, 0
	n, err := assemble(ctx, cfg)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, n.clean()) }()
	params := append([]float32(nil), n.initial...)
	states := make([][]float32, cfg.Clients)
	for i := range states {
		states[i] = make([]float32, n.engine.StateLen())
	}
	const each = 2 // sequences a member, as simSpec has it
	type results struct {
		step     uint32
		payloads [][]byte
	}
	var waiting []results // to be applied, with overlap one round later
	for step := uint32(1); step <= cfg.Steps; step++ {
		round := results{step: step}
		for i, state := range states {
			first := uint64(step-1)*each*uint64(cfg.Clients) + uint64(each*i)
			r, err := n.engine.Step(ctx, params, state, []batch.Span{{Start: first, Count: each}}, step)
			if err != nil {
				return 0, err
			}
			round.payloads = append(round.payloads, r.Payload)
		}
		waiting = append(waiting, round)
		for len(waiting) > int(cfg.Overlap) || step == cfg.Steps && len(waiting) > 0 {
			if err := n.engine.Apply(params, waiting[0].payloads, waiting[0].step); err != nil {
				return 0, err
			}
			waiting = waiting[1:]
		}
	}
	return n.engine.HeldOut(ctx, params)
}
