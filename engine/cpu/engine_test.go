package cpu_test

import (
	"fmt"
	"testing"

	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/engine/cpu"
	"github.com/entrain-network/entrain/engine/enginetest"
	"github.com/entrain-network/entrain/exact"
)

func TestEngine(t *testing.T) {
	for _, kernel := range exact.Kernels() {
		for _, v := range []struct{ workers, micro int }{{1, 1}, {3, 4}} {
			t.Run(fmt.Sprintf("%s, %d workers, %d at once", kernel.Name(), v.workers, v.micro), func(t *testing.T) {
				enginetest.Test(t, func(t testing.TB, r enginetest.Run) engine.Engine {
					pool := exact.NewPoolOf(v.workers, kernel)
					t.Cleanup(pool.Close)
					c, err := r.Codec.New(r.Model.Layout(), pool)
					if err != nil {
						t.Fatal(err)
					}
					e, err := cpu.New(cpu.Config{
						Model: r.Model, Codec: c, Inner: r.Inner, Schedule: r.Schedule, Pool: pool,
						Sequence: r.Sequence, Micro: v.micro,
						Data: r.Data, HeldOut: r.Data, HeldOutSequences: r.HeldOut,
					})
					if err != nil {
						t.Fatal(err)
					}
					return e
				})
			})
		}
	}
}
