package participant

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/model"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/tensor"
)

// A gift is the model that a run begins with, as its owner serves it until members hold it. Anybody
// can announce itself and ask, with as many keys as it likes, and those that get the frozen model
// of adapters are no members yet. So what each key gets is bounded, and what all get that are no
// members.
type gift struct {
	model []byte

	mu     sync.Mutex // guards what follows
	state  coordinator.State
	sent   map[key.Public]uint64
	others uint64 // sent to those that were no members
}

const (
	// copiesPerKey lets a member that loses what it has begin again.
	copiesPerKey = 3
	// copiesOfOthers are served to those that are no members, and copiesPerStart for each member
	// that an epoch needs.
	copiesOfOthers = 8
	copiesPerStart = 2
)

// allot is lp2p.Options.Allot.
func (g *gift) allot(to key.Public, bytes int) bool {
	if bytes == 0 {
		return true // and nothing is kept of a key that gets nothing
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	one := uint64(len(g.model)) + uint64(len(g.model))/1024 + 1024 // with the hashes of its chunks
	i, found := g.state.Find(to)
	member := found && g.state.Status(i).Present()
	n := uint64(bytes)
	all := copiesOfOthers + copiesPerStart*uint64(g.state.Config().StartMembers)
	if g.sent[to]+n > copiesPerKey*one || !member && g.others+n > all*one {
		return false
	}
	g.sent[to] += n
	if !member {
		g.others += n
	}
	return true
}

// GiveFrom serves the model in a checkpoint to the members of a run that begins with it, as Give
// does, and tells what it does.
func GiveFrom(ctx context.Context, client ledger.Chain, run, checkpoint string, tell func(text string)) error {
	m, err := model.Open(checkpoint)
	if err != nil {
		return err
	}
	tell("serving the model to members until they hold it; Ctrl-C ends that, and then one of them must join with --from")
	held, err := Give(ctx, client, run, m.Params)
	if held {
		tell(fmt.Sprintf("members of run %q hold the model", run))
	}
	return err
}

// Give serves the parameters that a run begins with to its members, until they have agreed on later
// ones, which they then hold. It reports whether they have.
func Give(ctx context.Context, client ledger.Chain, run string, params []float32) (held bool, err error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	on, err := onchain.GetRun(ctx, client, run)
	if err != nil {
		return false, err
	}
	g := &gift{model: tensor.Bytes(params), state: on.Snapshot.State, sent: map[key.Public]uint64{}}
	guest, err := visit(ctx, client, run, g.state.ID(), nil, g)
	if err != nil {
		return false, err
	}
	client.Watch(ctx, run, func(s ledger.Snapshot) {
		g.mu.Lock()
		g.state = s.State
		g.mu.Unlock()
		if _, round := s.State.Params(); round > 0 || s.State.Phase() == coordinator.Finished {
			stop(errHeld)
		}
	})
	<-ctx.Done()
	return context.Cause(ctx) == errHeld, guest.Close()
}

// errHeld ends Give.
var errHeld = errors.New("members hold the model")
