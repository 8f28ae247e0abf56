package main

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/bench"
)

func TestBenchStepMeasuresAStep(t *testing.T) {
	s := newShell(t)
	var r bench.Measured
	out := s.ok("bench", "nano", "--batch", "2", "--sequence", "16", "--workers", "2", "--steps", "3", "--json")
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	if r.Model != "nano" || r.Params != 988544 || r.Batch != 2 || r.Sequence != 16 || r.Threads != 2 || len(r.Seconds) < 3 || !(r.TokensPerSecond > 0) || r.Memory == 0 {
		t.Errorf("result is %+v", r)
	}
	if d := math.Abs(float64(r.Loss) - math.Log(256)); d > 3 {
		t.Errorf("the loss of a new model of 256 tokens is %g", r.Loss)
	}
	if text := s.ok("bench", "nano", "--batch", "1", "--steps", "1"); !strings.Contains(text, "nano, exact, 988,544 parameters, 1 x 128 tokens") {
		t.Errorf("for people: %q", text)
	}
}

func TestBenchStepRefusesWhatCannotBe(t *testing.T) {
	s := newShell(t)
	s.fails([]string{"bench", "huge"}, `"huge"`, "124m")
	s.fails([]string{"bench", "nano", "--workers", "0"}, "--workers 0")
	s.fails([]string{"bench", "nano", "--steps", "0"}, "--steps 0")
	s.fails([]string{"bench", "nano", "--batch", "-1"}, "--batch -1")
	s.fails([]string{"bench", "--batch", "-1"}, "--batch -1", "PRESET")
	s.fails([]string{"bench", "--workers", "2"}, "--workers 2", "PRESET")
	s.fails([]string{"bench", "nano", "--sequence", "4096"}, "4096", "128")
}

func TestBenchEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run(ctx, newShell(t).console, []string{"bench"}); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}
