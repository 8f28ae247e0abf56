package ledger

import (
	"context"
	"errors"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// ErrUnknownRun is what asking for a run gives that the ledger does not have.
var ErrUnknownRun = errors.New("no such run")

// ErrUnknownPool is what asking for a pool gives that the ledger does not have.
var ErrUnknownPool = errors.New("no such pool")

// Snapshot is a run's coordinator as of some block.
type Snapshot struct {
	Height uint64            // of the block after which the state is this
	TimeMs uint64            // that block's time, in milliseconds since 1970
	State  coordinator.State // shared with other receivers: not to be written to
}

// Peer is where a participant of a run can be reached.
type Peer struct {
	Key   key.Public `json:"key"`
	Addrs []string   `json:"addrs"` // multiaddresses, at most AddrsMax
}

// Ledger is what a participant needs of a chain. Its methods return at once and may be called from any goroutine. The
// functions given to them are called from any goroutine (from the virtual loop, where there is one), must not block, and
// are not called once ctx has ended; a call that is already under way when ctx ends may still finish.
type Ledger interface {
	// ChainID names the chain, which every transaction must be signed for.
	ChainID() string

	// Watch calls f with the run's newest state, and again after it has changed. Changes that follow closely may be told
	// as one; heights never go back. A run that does not exist yet is waited for. Lost connections are made again.
	Watch(ctx context.Context, run string, f func(Snapshot))

	// Submit brings a signed transaction into a block, sending it again until it is in one. Done is called once: with nil
	// when the transaction was accepted, with a *TxError when it was refused, or with another error when it can never be
	// sent, as when the endpoint belongs to another chain.
	Submit(ctx context.Context, tx []byte, done func(error))

	// Spec gets the bytes the run's owner published when creating it. The ledger has checked them against the
	// configuration's SpecHash. The error is ErrUnknownRun when there is no such run.
	Spec(ctx context.Context, run string, done func([]byte, error))

	// Peers gets the addresses announced for the run, in order of keys. The error is ErrUnknownRun when there is no such
	// run.
	Peers(ctx context.Context, run string, done func([]Peer, error))
}

// SpecHash is how a configuration names its spec.
func SpecHash(spec []byte) wire.Hash { return wire.Sum("entrain/spec", spec) }

// RunNameValid tells whether name may be a run's: 1 to RunNameBytesMax of the characters a-z, 0-9 and '-', neither first
// nor last a '-'. Such a name needs no quoting in a shell, a URL or a path.
func RunNameValid(name string) bool {
	if len(name) == 0 || len(name) > RunNameBytesMax || name[0] == '-' || name[len(name)-1] == '-' {
		return false
	}
	return nameBytesValid(name)
}

// ChainIDValid tells whether id may name a chain: like a run's name, of up to ChainIDBytesMax bytes.
func ChainIDValid(id string) bool {
	if len(id) == 0 || len(id) > ChainIDBytesMax || id[0] == '-' || id[len(id)-1] == '-' {
		return false
	}
	return nameBytesValid(id)
}

func nameBytesValid(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}
