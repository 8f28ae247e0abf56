package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/change"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// ErrUnknownRun reports that the chain has no run of the name asked for.
var ErrUnknownRun = errors.New("no such run")

// ErrUnknownPool reports that the chain has no pool of the name asked for.
var ErrUnknownPool = errors.New("no such pool")

// Snapshot is a run's coordinator as of some block.
type Snapshot struct {
	Height uint64            // of the block that led to State
	TimeMs uint64            // that block's time, in milliseconds since 1970
	State  coordinator.State // shared with other receivers, which must not write to it
	// Light says that State is right but for the filters of witnesses' reports, and how many hold a
	// result, which it lacks: they are zero, and State.Select finds nothing.
	Light bool
	// Reports are what there is of a light state's reports to make these filters again.
	Reports []change.Reports
}

// Reader reads runs from a chain. Its methods return at once and may be called from any goroutine.
// The functions given to them must not block, and may be called from any goroutine (from the
// virtual loop, where there is one). They are not called once ctx has ended, though a call already
// under way may still finish.
type Reader interface {
	// ChainID names the chain.
	ChainID() string

	// Watch calls f with the run's newest state, and again after each change. Changes that
	// follow closely may be combined; heights never decrease. Watch waits for a run that does
	// not exist yet, and reconnects after a failure.
	Watch(ctx context.Context, run string, f func(Snapshot))

	// Spec gets the bytes that the run's owner published when creating it. They match the
	// SpecHash of the run's configuration. The error is ErrUnknownRun when there is no such run.
	Spec(ctx context.Context, run string, done func([]byte, error))

	// Peers gets the addresses announced for the run, in order of keys, which must not be changed.
	// As long as they are the same, done gets the same list. The error is ErrUnknownRun when there
	// is no such run.
	Peers(ctx context.Context, run string, done func([]host.Peer, error))
}

// Lighter is a Reader that can show a run in few bytes, whatever the number of its members.
type Lighter interface {
	// WatchLightly is Watch, and returns a function that asks for light states, for light ones with
	// Snapshot.Reports, or for whole ones again. Light ones may lack what Snapshot.Light says. What
	// begins or ends, a round, an epoch or a move in a dispute, comes at once; reports, verdicts and
	// joins come with it, or up to half a minute late. All are whole at first, and where the chain's
	// replica knows no light ones. After a light state comes a whole one of the same height, if it is
	// asked for.
	WatchLightly(ctx context.Context, run string, f func(Snapshot)) (lightly func(light, reports bool))
}

// WatchLightly has a reader show a run as a Lighter does, if it is one. Otherwise all states are
// whole.
func WatchLightly(ctx context.Context, r Reader, run string, f func(Snapshot)) (lightly func(light, reports bool)) {
	if l, ok := r.(Lighter); ok {
		return l.WatchLightly(ctx, run, f)
	}
	r.Watch(ctx, run, f)
	return func(bool, bool) {}
}

// Ledger is a participant's access to a chain: it reads runs, and acts for one key. Each
// implementation encodes and signs in its chain's own way.
type Ledger interface {
	Reader

	// Submit carries out body for the ledger's key. It retries until the outcome is known. Done
	// is called once, perhaps before Submit returns: with nil when the chain accepted body, with
	// a *host.TxError when it refused it, or with another error when it can never be sent, as when
	// the endpoint serves another chain.
	Submit(ctx context.Context, body host.Body, done func(error))
}

// Chain is what tools ask of a chain, beyond a participant's Ledger. Calls block until there is an
// answer or ctx ends.
type Chain interface {
	Reader

	// As returns a ledger that acts for the key of k. A process that acts for a key needs only
	// one: two might sign with the same nonce.
	As(k key.Private) Ledger

	// Account returns what a key has.
	Account(ctx context.Context, k key.Public) (Account, error)
	// Pools returns the names of all pools, in order.
	Pools(ctx context.Context) ([]string, error)
	// Pool describes a pool. The error is ErrUnknownPool when there is no such pool.
	Pool(ctx context.Context, name string) (host.Pool, error)
	// Runs summarizes all runs, in order of names.
	Runs(ctx context.Context) ([]RunStatus, error)
	// Names returns what keys are called, in order of keys.
	Names(ctx context.Context) ([]host.Profile, error)
	// Closed returns the receipts of closed runs, oldest first.
	Closed(ctx context.Context) ([]host.Receipt, error)
	// Admission returns who may take part in a run. The error is ErrUnknownRun when there is no
	// such run.
	Admission(ctx context.Context, run string) (host.Admission, error)
	// History returns all states that a run went through, oldest first.
	History(ctx context.Context, run string) ([]host.Change, error)
	// Replicas returns the replicas and candidates, in order of keys.
	Replicas(ctx context.Context) ([]host.Replica, error)
	// Status describes the chain, as one of its replicas sees it.
	Status(ctx context.Context) (Status, error)

	// Trusted returns the newest header that the client believes and the time of its block;
	// false if there is none.
	Trusted() (Anchor, time.Time, bool)
	// Endpoints returns the URLs of the replicas that the client asks.
	Endpoints() []string
	// Close ends all calls and waits for them.
	Close() error
}

// Account is what a key has.
type Account struct {
	Key    key.Public `json:"key"`
	Tokens uint64     `json:"tokens"` // spendable, not counting those in pools and runs
	// Where another chain's coin pays the fees: the key's address there, and what it has, in a
	// 1,000,000,000th of SOL.
	Address  string `json:"address,omitempty"`
	Lamports uint64 `json:"lamports,omitempty"`
	// Locked are in accounts of messages that are on their way or were cut off, and of announced
	// addresses. The key's next transaction takes back what nobody needs any more.
	Locked uint64 `json:"locked_lamports,omitempty"`
}

// Status describes a chain and the replica that was asked.
type Status struct {
	Chain    string    `json:"chain"`
	Height   uint64    `json:"height"`   // of the last block
	TimeMs   uint64    `json:"time_ms"`  // of the last block, in milliseconds since 1970
	Hash     wire.Hash `json:"hash"`     // of the whole state
	Runs     []string  `json:"runs"`     // in order
	Watchers int       `json:"watchers"` // open streams
	Current  bool      `json:"current"`  // the replica is caught up and the chain makes blocks
	Version  int       `json:"version"`  // of the chain's rules
	BlockMs  uint64    `json:"block_ms"` // least time between blocks, in milliseconds
	Supply   uint64    `json:"supply"`   // tokens in existence
	Peer     string    `json:"peer"`     // where other replicas reach this one, as ID@host:port
	Replicas int       `json:"replicas"` // that vote on blocks
	// Clock is the newest block of Bittensor that the replicas agree on; nil if there never was one.
	Clock *host.Clock `json:"clock,omitempty"`
}

// RunStatus summarizes a run.
type RunStatus struct {
	Name    string            `json:"name"`
	Phase   string            `json:"phase"`
	Epoch   coordinator.Epoch `json:"epoch"`
	Round   coordinator.Round `json:"round"`
	Step    coordinator.Step  `json:"step"`
	Members uint32            `json:"members"` // present
	Height  uint64            `json:"height"`  // of the block that changed the state last
	Hash    wire.Hash         `json:"hash"`    // of the state
	Bytes   int               `json:"bytes"`   // of the state
}

// Anchor is a header that a client believes without proof: the genesis, or one that the user named.
type Anchor struct {
	Height uint64
	Hash   wire.Hash // of the header; if zero, the client believes the first endpoint's header
}

// String returns the anchor as an endpoint names it: HEIGHT:HASH.
func (a Anchor) String() string { return fmt.Sprintf("%d:%v", a.Height, a.Hash) }
