package trainer

import (
	"testing"

	"github.com/entrain-network/entrain/exact"
)

// The self-test's hash is reached by every kernel of this machine, with any number of workers.
func TestSelfTestIsPassedByEveryKernel(t *testing.T) {
	for _, kernel := range exact.Kernels() {
		for _, workers := range []int{1, 3} {
			pool := exact.NewPoolOf(workers, kernel)
			if err := SelfTest(t.Context(), pool); err != nil {
				t.Errorf("kernel %s, %d workers: %v", kernel.Name(), workers, err)
			}
			pool.Close()
		}
	}
}
