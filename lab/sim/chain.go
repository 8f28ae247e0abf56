package sim

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
)

// funded is the number of clients to which genesis gives tokens, for which it has room.
const funded = host.AllocationsMax - 1

// genesis gives every client twice its stake, and the owner what the run pays out. Clients beyond
// the first ones get theirs from these, in createRun.
func (n *network) genesis() host.Genesis {
	g := host.Genesis{Chain: "sim", Creators: []key.Public{n.owner.Public()}}
	if n.cfg.Verification == 0 {
		return g
	}
	g.Accounts = append(g.Accounts, host.Allocation{Key: n.owner.Public(), Amount: 1 << 30})
	for i := range min(n.cfg.Clients, funded) {
		amount := 2 * simStake * uint64(1+(n.cfg.Clients-1-i)/funded)
		g.Accounts = append(g.Accounts, host.Allocation{Key: n.key(i).Public(), Amount: amount})
	}
	slices.SortFunc(g.Accounts, func(a, b host.Allocation) int { return a.Key.Compare(b.Key) })
	return g
}

// creation returns what creates the run.
func (n *network) creation() (host.CreateRun, error) {
	model, err := n.spec.ModelHash()
	if err != nil {
		return host.CreateRun{}, err
	}
	limits, config := n.spec.Coordinator(n.owner.Public(), model, host.SpecHash(n.text))
	return host.CreateRun{Limits: limits, Config: config, Spec: n.text}, nil
}

// createRun creates the run on the chain and waits for the block.
func (n *network) createRun(ctx context.Context) error {
	create, err := n.creation()
	if err != nil {
		return err
	}
	chain := n.chain.Client()
	bodies := []host.Body{create}
	if n.cfg.Verification > 0 {
		bodies = append(bodies, host.RunMessage{Run: runName, Value: 1 << 28, Message: coordinator.Append(nil, coordinator.Fund{})})
	}
	left, failed := 0, error(nil)
	submit := func(k key.Private, body host.Body) {
		left++
		chain.As(k).Submit(ctx, body, func(err error) { left, failed = left-1, errors.Join(failed, err) })
	}
	wait := func() {
		for left > 0 && n.ledger.Step() {
		}
	}
	for _, body := range bodies {
		submit(n.owner, body)
		wait()
	}
	if n.cfg.Verification > 0 {
		for i := funded; i < n.cfg.Clients; i++ {
			submit(n.key(i%funded), host.Transfer{To: n.key(i).Public(), Amount: 2 * simStake})
			if i%funded == funded-1 {
				wait() // a key's transactions come in order
			}
		}
		wait()
	}
	return failed
}

// order sends a message of the run's owner, again while it is refused, as Resume is until the run
// has come to a pause.
func (n *network) order(m coordinator.Message) {
	client := n.chain.Client()
	if n.cfg.crowded() {
		client.Via(n.ledger.Post, func(f func()) { n.owed = append(n.owed, f) }, n.ledger.Now)
	}
	client.As(n.owner).Submit(context.Background(), host.ToRun(runName, m), func(err error) {
		if err != nil && n.state().Phase() != coordinator.Finished {
			n.clock.After(orderEvery, func() { n.order(m) })
		}
	})
}

const orderEvery = 5 * time.Second
