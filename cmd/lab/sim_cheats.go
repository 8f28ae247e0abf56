package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/entrain-network/entrain/lab/adversary"
	"github.com/entrain-network/entrain/lab/results"
	"github.com/entrain-network/entrain/lab/sim"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/wire"
)

// trial is the result of one seed, with cheats and in two ways without.
type trial struct {
	Seed    uint64     `json:"seed"`
	Config  wire.Hash  `json:"config"` // of all settings but the seed
	Seconds float64    `json:"seconds"`
	Report  sim.Report `json:"report"`
	// Held-out loss if all members are honest, and if the cheats are not there; 0 in a crowd.
	Honest float32 `json:"honest_heldout"`
	Alone  float32 `json:"alone_heldout"`
	Failed string  `json:"failed,omitempty"`
}

// simulateCheats runs the seeds that have no result yet, several at a time, and prints a summary of
// all.
func (c console) simulateCheats(ctx context.Context, o simOptions) error {
	id := simID(o.cfg)
	file, kept, err := results.Open[trial](o.results)
	if err != nil {
		return err
	}
	defer file.Close()
	done := map[uint64]trial{}
	for _, t := range kept {
		if t.Config == id && t.Failed == "" {
			done[t.Seed] = t
		}
	}
	var missing []uint64
	var all []trial
	for i := range o.seeds {
		if t, ok := done[o.cfg.Seed+i]; ok {
			all = append(all, t)
		} else {
			missing = append(missing, o.cfg.Seed+i)
		}
	}
	if len(all) > 0 {
		c.say("%d of %d seeds are in %s", len(all), o.seeds, o.results)
	}
	trials := make(chan trial)
	go o.run(ctx, id, missing, trials)
	for t := range trials {
		if ctx.Err() != nil {
			continue
		}
		all = append(all, t)
		if err := file.Add(t); err != nil {
			return err
		}
		c.say("%3d of %d: seed %d in %.0f s: %s", len(all), o.seeds, t.Seed, t.Seconds, t.line())
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	slices.SortFunc(all, func(a, b trial) int { return int(int64(a.Seed) - int64(b.Seed)) })
	if o.asJSON {
		for _, t := range all {
			if err := c.object(t); err != nil {
				return err
			}
		}
		return failures(all)
	}
	text, fit := o.verdict(all)
	if _, err := fmt.Fprint(c.out, text); err != nil {
		return err
	}
	return errors.Join(failures(all), fit)
}

// run runs seeds and sends their trials to out, which it closes.
func (o simOptions) run(ctx context.Context, id wire.Hash, seeds []uint64, out chan<- trial) {
	next := make(chan uint64)
	var running sync.WaitGroup
	workers := min(o.workers, max(1, len(seeds)))
	if o.crowded() {
		workers = 1 // which uses all processors
	}
	for range workers {
		running.Go(func() {
			for seed := range next {
				out <- o.one(ctx, id, seed)
			}
		})
	}
	for _, s := range seeds {
		next <- s
	}
	close(next)
	running.Wait()
	close(out)
}

// one runs a seed with the cheats and, unless it is a crowd, with the same members all honest, and
// with the honest ones alone.
func (o simOptions) one(ctx context.Context, id wire.Hash, seed uint64) trial {
	start := time.Now()
	t := trial{Seed: seed, Config: id}
	cfg := o.cfg
	cfg.Seed = seed
	var err error
	if t.Report, err = sim.Run(ctx, cfg); err != nil {
		t.Failed = err.Error()
	}
	cfg.Verification = 0
	if o.crowded() {
		t.Seconds = time.Since(start).Seconds()
		return t
	}
	for i, heldout := range []*float32{&t.Honest, &t.Alone} {
		cfg.Reformed, cfg.Absent = i == 0, i == 1
		without, err := sim.Run(ctx, cfg)
		if err != nil && t.Failed == "" {
			t.Failed = "without cheats: " + err.Error()
		}
		*heldout = without.HeldOut
	}
	t.Seconds = time.Since(start).Seconds()
	return t
}

// simID is the hash of a configuration without its seed.
func simID(cfg sim.Config) wire.Hash {
	cfg.Seed = 0
	b, err := json.Marshal(cfg)
	if err != nil {
		panic("lab: a simulation has no JSON: " + err.Error())
	}
	return wire.Sum("entrain/sim/config", b)
}

// line writes a trial in one line.
func (t trial) line() string {
	if t.Failed != "" {
		return t.Failed
	}
	text := fmt.Sprintf("%d convictions of cheating, %d undetected, %d of %d checks passed, held-out loss %.3f",
		t.convictions(), t.Report.Undetected, t.Report.Passed, t.Report.Checks, t.Report.HeldOut)
	if t.Honest > 0 {
		text += fmt.Sprintf(" (all honest %.3f, honest alone %.3f)", t.Honest, t.Alone)
	}
	return text
}

func (t trial) convictions() (n int) {
	for _, v := range t.Report.Convictions {
		if !v.Lesser {
			n++
		}
	}
	return n
}

// failures joins the errors of all trials.
func failures(all []trial) error {
	var errs []error
	for _, t := range all {
		if t.Failed != "" {
			errs = append(errs, errors.New(t.Failed))
		}
	}
	return errors.Join(errs...)
}

const (
	// falseAlarm is the level of the test of detection times: it rejects a true statement with this
	// probability.
	falseAlarm = 0.001
	// lossWithin is the largest increase of the loss by cheats that counts as harmless.
	lossWithin = 0.05
)

// increase says by how much cheats increase the loss over a baseline.
func increase(all []trial, baseline func(trial) float32) string {
	within, sum, best, worst := 0, 0.0, math.Inf(1), math.Inf(-1)
	for _, t := range all {
		change := float64(t.Report.HeldOut)/max(float64(baseline(t)), 1e-9) - 1
		best, worst = min(best, change), max(worst, change)
		sum += change
		if change <= lossWithin {
			within++
		}
	}
	return fmt.Sprintf("%+.2f %% on average, from %+.2f %% to %+.2f %%; at most %.0f %% higher in %d of %d seeds",
		100*sum/float64(max(1, len(all))), 100*best, 100*worst, 100*lossWithin, within, len(all))
}

// verdict summarizes all trials for people. It returns an error if the times of detection do not
// fit the stated probabilities, or if no cheat was there to measure them.
func (o simOptions) verdict(all []trial) (string, error) {
	var b strings.Builder
	var exposures []sim.Exposure
	honest, fees, undetected := 0, 0, 0
	for _, t := range all {
		exposures = append(exposures, t.Report.Exposures...)
		honest += t.Report.HonestConvicted
		for _, v := range t.Report.Convictions {
			if v.Kind == "" {
				fees++
			}
		}
		undetected += t.Report.Undetected
	}
	misled, rounds := 0, 0
	for _, t := range all {
		misled += t.Report.Misled
		rounds += int(t.Report.Rounds) * (o.cfg.Clients - len(o.cfg.Adversaries))
	}
	fmt.Fprintf(&b, "%d seeds of %d clients, %d of them cheats; %d %% of the results are recomputed; %d steps\n",
		len(all), o.cfg.Clients, len(o.cfg.Adversaries), o.cfg.Verification, o.cfg.Steps)
	fmt.Fprintf(&b, "honest members convicted of cheating: %d", honest)
	if fees > honest {
		fmt.Fprintf(&b, "; charged a fee: %d", fees-honest)
	}
	b.WriteByte('\n')
	if !o.crowded() {
		fmt.Fprintf(&b, "held-out loss against the same seed, all members honest: %s\n", increase(all, func(t trial) float32 { return t.Honest }))
		fmt.Fprintf(&b, "held-out loss against the same seed, honest members alone: %s\n", increase(all, func(t trial) float32 { return t.Alone }))
	}
	if o.cfg.Followers {
		fmt.Fprintf(&b, "rounds that an honest member held other parameters than were agreed on: %d of %d\n", misled, rounds)
	}
	fmt.Fprintf(&b, "provable cheats not convicted within %d steps: %d\n\n", o.cfg.Steps, undetected)
	fmt.Fprintf(&b, "%-18s %6s %10s %8s   %s\n", "kind", "cheats", "convicted", "fees", "offences; rounds from the cheat to the conviction, mean and largest")
	for _, k := range slices.Concat(adversary.Kinds(), adversary.Misleaders(), adversary.Aggregators()) {
		o.kindLine(&b, k, all)
	}
	random := prng.New(wire.Sum("entrain/sim/ties"), "fit")
	f := sim.Fitted(exposures, &random)
	fmt.Fprintf(&b, "\ndetection times against the stated probabilities of checks: %d cheats, distance %.4f (Kolmogorov and Smirnov), p = %.3f", f.Count, f.Distance, f.P)
	checked := slices.ContainsFunc(o.cfg.Adversaries, func(name string) bool { k, _ := adversary.Find(name); return k.Checked })
	var err error
	switch {
	case f.Count == 0 && checked:
		err = errors.New("sim: no cheat's result could have been checked: detection times were not measured")
	case f.Count > 0 && f.P < falseAlarm:
		err = fmt.Errorf("sim: detection times do not fit the stated probabilities (a true statement is rejected with probability %g)", falseAlarm)
	case f.Count > 0:
		b.WriteString(": they fit")
	}
	b.WriteByte('\n')
	return b.String(), err
}

// kindLine writes a line about one kind of cheats.
func (o simOptions) kindLine(b *strings.Builder, k adversary.Kind, all []trial) {
	members := 0
	for _, name := range o.cfg.Adversaries {
		if name == k.Name {
			members++
		}
	}
	if k.Name == "sybil" && members > 0 {
		members-- // one of them works
	}
	if members == 0 {
		return
	}
	convicted, fees, rounds, longest := 0, 0, 0, 0
	var offences []string
	for _, t := range all {
		for _, v := range t.Report.Convictions {
			if v.Kind != k.Name {
				continue
			}
			if !slices.Contains(offences, v.Offence) {
				offences = append(offences, v.Offence)
			}
			if v.Lesser {
				fees++
				continue
			}
			convicted++
			took := int(v.At) - int(v.Round)
			rounds += took
			longest = max(longest, took)
		}
	}
	slices.Sort(offences)
	fmt.Fprintf(b, "%-18s %6d %10d %8d   %s", k.Name, members*len(all), convicted, fees, strings.Join(offences, ", "))
	if convicted > 0 {
		fmt.Fprintf(b, "; %.1f, %d", float64(rounds)/float64(convicted), longest)
	}
	b.WriteByte('\n')
}
