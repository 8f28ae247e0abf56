package campaign

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/lab/adversary"
	"github.com/entrain-network/entrain/lab/sim"
	_ "github.com/entrain-network/entrain/tests/heap"
)

func TestDrawsAreFunctionsOfTheirSeed(t *testing.T) {
	kinds, market, turns, faulty, quiet := map[string]bool{}, map[string]bool{}, false, 0, 0
	for seed := range uint64(2000) {
		c := draw(seed)
		if !reflect.DeepEqual(c, draw(seed)) {
			t.Fatalf("seed %d gives two configurations", seed)
		}
		if p := c.Peers; p != nil {
			if 100*len(p.Adversaries) > gangPercentMax*p.Clients {
				t.Errorf("seed %d: %d of %d clients cheat", seed, len(p.Adversaries), p.Clients)
			}
			for _, k := range p.Adversaries {
				kinds[k] = true
				turns = turns || strings.Contains(k, "+")
			}
		} else {
			for _, k := range append(slices.Clone(c.Buckets.Miners), c.Buckets.Judges...) {
				market[k] = true
			}
		}
		if c.faults() > 0 {
			faulty++
		} else {
			quiet++
		}
	}
	for _, k := range append(sim.Kinds(true), adversary.Aggregators()...) {
		if !kinds[k.Name] {
			t.Errorf("no %s is drawn", k.Name)
		}
	}
	if len(market) < 1+len(adversary.Miners()) || !turns || faulty < 1000 || quiet == 0 {
		t.Errorf("%d kinds of miners and validators are drawn, some in turn: %v; %d trials have faults and %d none", len(market), turns, faulty, quiet)
	}
}

// The planted bug fails where two clients crash, whatever else happens.
func TestAFindingShrinksToItsCause(t *testing.T) {
	planted := func(_ context.Context, of Config) (Report, error) {
		if of.Peers == nil {
			return Report{}, nil
		}
		c := of.Peers
		if c.Crashes >= 2 {
			return Report{}, fmt.Errorf("seed %d, %d s: two clients crashed", c.Seed, c.Steps)
		}
		if c.Clients < 4 {
			panic("another fault")
		}
		return Report{}, nil
	}
	sum, err := Run(t.Context(), Options{Trials: 200, Workers: 2, Run: planted})
	if err != nil || len(sum.Findings) == 0 || sum.Trials != 200 {
		t.Fatalf("%d trials, %d findings, %v", sum.Trials, len(sum.Findings), err)
	}
	for _, r := range sum.Findings {
		c := r.Finding.Config.Peers
		if !strings.Contains(r.Finding.Error, "two clients crashed") || c.Crashes != 2 || r.Finding.Config.faults() != 2 || c.Loss != 0 || c.Steps != 1 {
			t.Errorf("seed %d is shrunk to %+v by %d runs", r.Seed, c, r.Finding.Runs)
		}
	}
}

// seed is that of a configuration.
func (c Config) seed() uint64 {
	if c.Buckets != nil {
		return c.Buckets.Seed
	}
	return c.Peers.Seed
}

// The same bug in runs by buckets: it takes a miner that seals noise.
func TestAFindingByBucketsShrinks(t *testing.T) {
	planted := func(_ context.Context, c Config) (Report, error) {
		if b := c.Buckets; b != nil && slices.Contains(b.Miners, "noise") {
			return Report{}, errors.New("noise pays")
		}
		return Report{}, nil
	}
	sum, err := Run(t.Context(), Options{Trials: 300, Run: planted})
	if err != nil || len(sum.Findings) == 0 {
		t.Fatalf("%d findings, %v", len(sum.Findings), err)
	}
	for _, r := range sum.Findings {
		b := r.Finding.Config.Buckets
		if b.Miners[len(b.Miners)-1] != "noise" || len(b.Judges) != 1 || b.Crashes+b.Fail > 0 || b.Steps >= 8 {
			t.Errorf("seed %d is shrunk to %+v", r.Seed, b)
		}
	}
}

func TestAPanicIsAFinding(t *testing.T) {
	sum, err := Run(t.Context(), Options{Trials: 1, Run: func(context.Context, Config) (Report, error) { panic("oops") }})
	if err != nil || len(sum.Findings) != 1 || !strings.Contains(sum.Findings[0].Finding.Error, "oops") {
		t.Errorf("%+v, %v", sum, err)
	}
}

func TestACampaignResumes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "campaign.jsonl")
	ran := map[uint64]int{}
	run := func(_ context.Context, c Config) (Report, error) {
		seed := c.seed()
		ran[seed]++
		if seed == 3 {
			return Report{}, errors.New("found")
		}
		return Report{Rounds: 1}, nil
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
	sum, err := Run(ctx, Options{Workers: 2, Run: func(ctx context.Context, _ Config) (Report, error) {
		cancel()
		return Report{}, ctx.Err()
	}})
	if err != nil || sum.Trials != 0 {
		t.Errorf("%d trials, %v", sum.Trials, err)
	}
}

// A slice of the campaign: real networks, every one within the protocol's promises.
func TestTrialsHoldTheInvariants(t *testing.T) {
	sum, err := Run(t.Context(), Options{First: 1, Trials: 5, Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range sum.Findings {
		t.Errorf("seed %d: %s\n%+v", r.Seed, r.Finding.Error, r.Finding.Config)
	}
}
