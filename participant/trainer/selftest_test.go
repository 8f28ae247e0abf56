package trainer

import (
	"testing"

	"github.com/entrain-network/entrain/engine/cpu"
	"github.com/entrain-network/entrain/exact"
)

// The self-test's hash is reached by every kernel of this machine, with any number of workers.
func TestSelfTestIsPassedByEveryKernel(t *testing.T) {
	for _, kernel := range exact.Kernels() {
		for _, workers := range []int{1, 3} {
			if err := SelfTest(t.Context(), cpu.Options{Workers: workers, Kernel: kernel.Name()}); err != nil {
				t.Errorf("kernel %s, %d workers: %v", kernel.Name(), workers, err)
			}
		}
	}
}
