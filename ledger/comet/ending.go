package comet

import (
	"sync/atomic"

	dbm "github.com/cometbft/cometbft-db"
)

// ending is a database that finds nothing once it is closed. CometBFT closes the block store while
// goroutines of its peers may still read from it, and panics at the error, so a replica told to
// stop would end with a stack trace. Those goroutines accept a missing value.
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
