package campaign

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/lab/adversary"
	"github.com/entrain-network/entrain/lab/sim"
)

func TestDrawsAreFunctionsOfTheirSeed(t *testing.T) {
	kinds, faulty, quiet := map[string]bool{}, 0, 0
	for seed := range uint64(2000) {
		c := Draw(seed)
		if !reflect.DeepEqual(c, Draw(seed)) {
			t.Fatalf("seed %d gives two configurations", seed)
		}
		if 100*len(c.Adversaries) > gangPercentMax*c.Clients {
			t.Errorf("seed %d: %d of %d clients cheat", seed, len(c.Adversaries), c.Clients)
		}
		for _, k := range c.Adversaries {
			kinds[k] = true
		}
		if faults(c) > 0 {
			faulty++
		} else {
			quiet++
		}
	}
	if len(kinds) != len(adversary.Kinds()) || faulty < 1000 || quiet == 0 {
		t.Errorf("%d of %d kinds are drawn, %d trials have faults and %d none", len(kinds), len(adversary.Kinds()), faulty, quiet)
	}
}

// The planted bug fails where two clients crash, whatever else happens.
func TestAFindingShrinksToItsCause(t *testing.T) {
	planted := func(_ context.Context, c sim.Config) (sim.Report, error) {
		if c.Crashes >= 2 {
			return sim.Report{}, fmt.Errorf("seed %d, %d s: two clients crashed", c.Seed, c.Steps)
		}
		if c.Clients < 4 {
			panic("another fault")
		}
		return sim.Report{}, nil
	}
	sum, err := Run(t.Context(), Options{Trials: 200, Workers: 2, Run: planted})
	if err != nil || len(sum.Findings) == 0 || sum.Trials != 200 {
		t.Fatalf("%d trials, %d findings, %v", sum.Trials, len(sum.Findings), err)
	}
	for _, r := range sum.Findings {
		c := r.Finding.Config
		if !strings.Contains(r.Finding.Error, "two clients crashed") || c.Crashes != 2 || faults(c) != 2 || c.Loss != 0 || c.Steps != 1 {
			t.Errorf("seed %d is shrunk to %+v by %d runs", r.Seed, c, r.Finding.Runs)
		}
	}
}

func TestAPanicIsAFinding(t *testing.T) {
	sum, err := Run(t.Context(), Options{Trials: 1, Run: func(context.Context, sim.Config) (sim.Report, error) { panic("oops") }})
	if err != nil || len(sum.Findings) != 1 || !strings.Contains(sum.Findings[0].Finding.Error, "oops") {
		t.Errorf("%+v, %v", sum, err)
	}
}

func TestACampaignResumes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "campaign.jsonl")
	ran := map[uint64]int{}
	run := func(_ context.Context, c sim.Config) (sim.Report, error) {
		ran[c.Seed]++
		if c.Seed == 3 {
			return sim.Report{}, errors.New("found")
		}
		return sim.Report{Rounds: 1}, nil
	}
	o := Options{First: 1, Trials: 4, File: file, Run: run}
	if _, err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// A kill cuts off the last line: its trial runs again.
	if err := os.WriteFile(file, whole[:len(whole)-5], 0o644); err != nil {
		t.Fatal(err)
	}
	clear(ran)
	sum, err := Run(t.Context(), o)
	if err != nil || sum.Trials != 7 || len(sum.Findings) != 1 {
		t.Errorf("%d trials, %d findings, %v", sum.Trials, len(sum.Findings), err)
	}
	if want := map[uint64]int{4: 1, 5: 1, 6: 1, 7: 1}; !reflect.DeepEqual(ran, want) {
		t.Errorf("seeds %v ran, want %v", ran, want)
	}
}

func TestACancelledTrialLeavesNoResult(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	sum, err := Run(ctx, Options{Workers: 2, Run: func(ctx context.Context, _ sim.Config) (sim.Report, error) {
		cancel()
		return sim.Report{}, ctx.Err()
	}})
	if err != nil || sum.Trials != 0 {
		t.Errorf("%d trials, %v", sum.Trials, err)
	}
}

// A slice of the campaign: real networks, every one within the protocol's promises.
func TestTrialsHoldTheInvariants(t *testing.T) {
	sum, err := Run(t.Context(), Options{First: 1, Trials: 4, Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range sum.Findings {
		t.Errorf("seed %d: %s\n%+v", r.Seed, r.Finding.Error, r.Finding.Config)
	}
}
