package comet

import (
	"sync/atomic"

	dbm "github.com/cometbft/cometbft-db"
)

// ending is a database of which nothing is found any more once it is closed. CometBFT closes the store of blocks while routines of its peers
// may still look something up there, and panics at the error: a replica that was told to end would end with a stack trace. That something is not
// there, those routines take.
type ending struct {
	dbm.DB
	closed atomic.Bool
}

// Close closes the database.
func (e *ending) Close() error {
	e.closed.Store(true)
	return e.DB.Close()
}

// Get returns the value of a key, nil if there is none or the database is closed.
func (e *ending) Get(key []byte) ([]byte, error) {
	value, err := e.DB.Get(key)
	if err != nil && e.closed.Load() {
		return nil, nil
	}
	return value, err
}
