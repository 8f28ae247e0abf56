package comet

import (
	"testing"

	dbm "github.com/cometbft/cometbft-db"
	cmtstore "github.com/cometbft/cometbft/store"
)

// A routine that outlives its node finds no block, and does not panic.
func TestClosedStoreOfBlocksIsEmpty(t *testing.T) {
	open := func() dbm.DB {
		db, err := dbm.NewGoLevelDB("blockstore", t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	look := func(db dbm.DB) (panicked any) {
		defer func() { panicked = recover() }()
		blocks := cmtstore.NewBlockStore(db)
		if err := blocks.Close(); err != nil {
			t.Fatal(err)
		}
		if blocks.LoadSeenCommit(3) != nil || blocks.LoadBlockCommit(3) != nil || blocks.LoadBlockMeta(3) != nil {
			t.Error("there is something in an empty store")
		}
		return nil
	}
	if p := look(&ending{DB: open()}); p != nil {
		t.Errorf("it panics: %v", p)
	}
	if look(open()) == nil {
		t.Error("CometBFT no longer panics: what wraps its store can go")
	}
}
