package cpu_test

import (
	"fmt"
	"testing"

	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/engine/cpu"
	"github.com/entrain-network/entrain/engine/enginetest"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/tests/campaign"
)

func TestEngine(t *testing.T) {
	for i, kernel := range exact.Kernels() {
		for _, v := range []struct{ workers, micro int }{{1, 1}, {3, 4}} {
			if i > 0 && kernel.Name() == "plain" && (v.workers == 1 || !campaign.Whole()) {
				continue // it takes seconds, and package exact tests it with any number of workers
			}
			t.Run(fmt.Sprintf("%s, %d workers, %d at once", kernel.Name(), v.workers, v.micro), func(t *testing.T) {
				enginetest.Test(t, func(t testing.TB, r engine.Run) engine.Engine {
					e, err := cpu.New(r, cpu.Options{Workers: v.workers, Micro: v.micro, Kernel: kernel.Name()})
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(e.Close)
					return e
				})
			})
		}
	}
}
