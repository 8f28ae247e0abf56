package node_test

import (
	"path/filepath"

	"github.com/entrain-network/entrain/node"
	"github.com/entrain-network/entrain/node/statefile"
)

// Package statefile imports package node, so the tests inside package node are handed its stores.
var _ = node.UseDirStore(func(dir string, params, state int) node.Store {
	return statefile.New(filepath.Join(dir, "state"), params, state)
})
