package node

import (
	"testing"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/ledger"
)

// patient is a ledger that takes its time.
type patient struct{ ledger.Ledger }

func (patient) Patience() time.Duration { return time.Minute }

// Evidence on a ledger where it takes many transactions is not begun again in the middle; all else is.
func TestEvidenceIsGivenTime(t *testing.T) {
	for _, c := range []struct {
		on   ledger.Ledger
		m    coordinator.Message
		want time.Duration
	}{
		{patient{}, coordinator.Evidence{}, time.Minute},
		{patient{}, coordinator.Reveal{}, submitFor},
		{nil, coordinator.Evidence{}, submitFor},
	} {
		n := &Node{cfg: Config{Ledger: c.on}}
		if got := n.patience(c.m); got != c.want {
			t.Errorf("%T on %T: %v, want %v", c.m, c.on, got, c.want)
		}
	}
}
