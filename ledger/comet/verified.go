package comet

import (
	"crypto/sha256"
	"sync"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/wire"
)

// verified remembers the transactions whose signatures were found good last. A replica meets each
// three times before it executes it: from a client, in the pool and in a proposal.
type verified struct {
	mu             sync.Mutex // guards what follows
	recent, before map[wire.Hash]bool
}

// verifiedMax bounds each of the two generations that are remembered: more than wait in the pool.
const verifiedMax = 1 << 14

// parse parses a transaction and checks its signature.
func (a *app) parse(b []byte) (tx host.Tx, err error) {
	if tx, err = host.ParseTx(b); err != nil {
		return tx, err
	}
	hash := wire.Hash(sha256.Sum256(b)) // an ID does not cover the signature
	if a.verified.knows(hash) {
		return tx, nil
	}
	if err = tx.Verify(a.genesis.Chain); err == nil {
		a.verified.add(hash)
	}
	return tx, err
}

func (v *verified) knows(h wire.Hash) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.recent[h] || v.before[h]
}

func (v *verified) add(h wire.Hash) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.recent == nil || len(v.recent) == verifiedMax {
		v.recent, v.before = map[wire.Hash]bool{}, v.recent
	}
	v.recent[h] = true
}
