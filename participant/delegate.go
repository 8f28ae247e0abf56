package participant

import (
	"context"
	"fmt"
	"time"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/onchain"
)

// readDelegation reads a delegation, or the file that holds it, for a node in a run.
func readDelegation(text, chain, run string, node key.Public) (onchain.Delegation, error) {
	d, err := onchain.ReadDelegation(text)
	if err == nil {
		err = d.Check(chain, run, node, time.Now())
	}
	return d, err
}

// bring submits the participant's delegation to the chain, if it has one.
func (p *Options) bring(ctx context.Context, client ledger.Chain) error {
	if p.Delegation == "" {
		return nil
	}
	d, err := readDelegation(p.Delegation, client.ChainID(), p.Target.Run, p.Key.Public())
	if err != nil {
		return err
	}
	if err := onchain.Submit(ctx, client.As(p.Key), host.Delegate{Run: p.Target.Run, Certificate: d.Certificate}); err != nil {
		return fmt.Errorf("bring the delegation to the chain: %w", err)
	}
	p.Log.Info("works for an owner", "owner", d.Certificate.Owner, "until", d.Expires())
	return nil
}
