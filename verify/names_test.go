package verify

import (
	"testing"

	"github.com/entrain-network/entrain/coordinator/dispute"
)

func TestOperationsAreCalledByOneName(t *testing.T) {
	w := newWorld(t, .5)
	const sequences = 3
	want, err := w.tracer.Operations(dispute.Case{Sequences: sequences})
	if err != nil {
		t.Fatal(err)
	}
	name := OpNames(w.text)
	for op, n := range want {
		if got := name(sequences, uint32(op)); got != n || got == "" {
			t.Fatalf("operation %d is called %q and %q", op, got, n)
		}
	}
	if got := name(sequences, uint32(len(want))); got != "" {
		t.Errorf("the operation after the last is called %q", got)
	}
	if got := OpNames([]byte("no specification"))(sequences, 0); got != "" {
		t.Errorf("of no run: %q", got)
	}
}
