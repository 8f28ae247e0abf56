package trainer

import (
	"strings"
	"testing"

	"github.com/entrain-network/entrain/codec/all"
	"github.com/entrain-network/entrain/codec/dense"
	"github.com/entrain-network/entrain/spec"
)

// A commitment has the length of a result in 32 bits.
func TestResultsThatNobodyCanCommitToAreRefused(t *testing.T) {
	s, err := spec.Parse([]byte("name = \"large\"\nsteps = 10\n[learning_rate]\nwarmup = 0\n[model]\npreset = \"1b\"\n"), all.Kinds())
	if err != nil {
		t.Fatal(err)
	}
	s.Optimizer = dense.Config{} // 4.4 GB
	if z, err := SizesOf(s); err == nil || !strings.Contains(err.Error(), "optimizer.dense: a result takes 4.4 GB, and members can commit to 4.3 GB at most") {
		t.Errorf("%d bytes, %v", z.Payload, err)
	}
}
