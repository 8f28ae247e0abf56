package main

import (
	"context"
	"errors"
	"testing"

	"github.com/entrain-network/entrain/spec"
)

// A trial is made where shares go by speed, finds one, and ends with its context.
func TestTrialFindsASpeed(t *testing.T) {
	tiny := tinyTrainer(t)
	if speed, err := tiny.Trial(t.Context()); speed != 0 || err != nil {
		t.Errorf("where shares are equal it finds %d, %v", speed, err)
	}
	tiny.Spec.Batch.Shares = spec.SharesSpeed
	speed, err := tiny.Trial(t.Context())
	if speed == 0 || err != nil {
		t.Errorf("it finds %d, %v", speed, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tiny.Trial(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("whose context has ended: %v", err)
	}
}
