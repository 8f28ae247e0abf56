package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/adversary"
	"github.com/entrain-network/entrain/sim"
)

// simOptions are sim's flags.
type simOptions struct {
	cfg         sim.Config
	seeds       uint64
	adversaries int
	kinds       []string
	workers     int
	results     string
	asJSON      bool
	verbose     bool
}

// simCommand runs whole networks in this process.
func simCommand(c console) *cobra.Command {
	o := simOptions{cfg: sim.Default(1)}
	cmd := &cobra.Command{
		Use:   "sim",
		Short: "Run a whole network in this process, with faults and cheats, from a seed",
		Long: `Runs real participants with a small real model on a ledger and a network in memory, under one
virtual clock. Crashes, stragglers, loss, delay, partitions and outages of the ledger come from the
seed: the same seed gives the same history and the same log hash, on every machine.

After every event it checks that honest participants at the same round hold the same parameters, that
nothing is accepted twice, that points are what was accepted, that no token comes or goes, that no
honest participant is convicted, and that the run finishes. A broken invariant ends the command with an
error that names the seed; run it again with --verbose to see the history.

With --adversaries N that many participants cheat, each in its way; there are then no other faults unless
asked for, and each seed is trained once more by honest members alone, for the loss. In the end it says how
fast the cheats were found out, and how well that fits the probabilities with which results are checked.
--results FILE keeps what came of each seed; called again, the command goes on with the seeds that are
missing.`,
		Example: "  entrain sim\n  entrain sim --seed 7 --clients 50 --overlap 1 --verbose\n  entrain sim --seeds 100 --json\n" +
			"  entrain sim --clients 64 --adversaries 21 --seeds 200 --results seeds.jsonl",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.complete(cmd.Flags().Changed); err != nil {
				return err
			}
			if o.verbose {
				o.cfg.Observe = func(ev sim.Event) { c.say("%s", simLine(ev)) }
			}
			if len(o.cfg.Adversaries) > 0 {
				return c.simulateCheats(cmd.Context(), o)
			}
			return c.simulate(cmd.Context(), o)
		},
	}
	o.flags(cmd)
	return cmd
}

func (o *simOptions) flags(cmd *cobra.Command) {
	f, cfg := cmd.Flags(), &o.cfg
	f.Uint64Var(&cfg.Seed, "seed", cfg.Seed, "seed of the first run")
	f.Uint64Var(&o.seeds, "seeds", 1, "how many seeds to run")
	f.IntVar(&cfg.Clients, "clients", cfg.Clients, "participants")
	f.Uint32Var(&cfg.Steps, "steps", cfg.Steps, "steps to train")
	f.Uint8Var(&cfg.Overlap, "overlap", cfg.Overlap, "rounds by which results overlap training, 0 or 1")
	f.Float64Var(&cfg.Loss, "loss", cfg.Loss, "probability that a gossip message is lost on a hop")
	f.DurationVar(&cfg.Delay, "delay", cfg.Delay, "delay of every message")
	f.IntVar(&cfg.Crashes, "crashes", cfg.Crashes, "participants that crash and come back")
	f.IntVar(&cfg.Stragglers, "stragglers", cfg.Stragglers, "participants ten times as slow")
	f.BoolVar(&cfg.BySpeed, "by-speed", false, "shares go by what members say of their speed, not the same for all")
	f.IntVar(&cfg.Partitions, "partitions", cfg.Partitions, "times the network splits")
	f.IntVar(&cfg.Outages, "outages", cfg.Outages, "times the ledger stops for a while")
	f.DurationVar(&cfg.Limit, "limit", cfg.Limit, "virtual time within which the run must finish")
	f.Uint8Var(&cfg.Verification, "verification", 0, "`percent` of the results that others recompute (default: 0, or 10 with cheats)")
	f.IntVar(&o.adversaries, "adversaries", 0, "participants that cheat, in ways of all kinds")
	f.StringSliceVar(&o.kinds, "kinds", nil, "the `kinds` of those that cheat, in place of all: "+adversary.Names())
	f.IntVar(&o.workers, "workers", defaultWorkers(), "seeds run at the same time, with cheats")
	f.StringVar(&o.results, "results", "", "`file` that keeps what came of each seed, with cheats")
	f.BoolVar(&o.asJSON, "json", false, "print one JSON object a seed")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "tell every event on standard error")
	_ = cmd.MarkFlagFilename("results", "jsonl")
}

const (
	// simVerification is the percentage of results that are recomputed when there are cheats and nothing is said.
	simVerification = 10
	// simCheatSteps is how many steps there are then: enough for nearly all to be found out.
	simCheatSteps = 40
)

// complete fills in what follows from the flags that were given.
func (o *simOptions) complete(given func(string) bool) error {
	switch {
	case o.seeds < 1:
		return errors.New("--seeds 0: want at least 1")
	case o.workers < 1 || o.workers > workersMax:
		return fmt.Errorf("--workers %d: want 1 to %d", o.workers, workersMax)
	case o.adversaries < 0:
		return fmt.Errorf("--adversaries %d: want 0 or more", o.adversaries)
	}
	for i := 0; i < o.adversaries || i < len(o.kinds); i++ {
		if len(o.kinds) == 0 {
			o.cfg.Adversaries = sim.Mix(o.adversaries)
			break
		}
		o.cfg.Adversaries = append(o.cfg.Adversaries, o.kinds[i%len(o.kinds)])
	}
	if len(o.cfg.Adversaries) == 0 {
		return nil
	}
	if !given("verification") {
		o.cfg.Verification = simVerification
	}
	if o.cfg.Verification == 0 {
		return errors.New("--verification 0: without any, no cheat is found out")
	}
	quiet := sim.Config{}
	for flag, none := range map[string]func(){
		"crashes": func() { o.cfg.Crashes = quiet.Crashes }, "stragglers": func() { o.cfg.Stragglers = quiet.Stragglers },
		"partitions": func() { o.cfg.Partitions = quiet.Partitions }, "outages": func() { o.cfg.Outages = quiet.Outages },
		"loss": func() { o.cfg.Loss = quiet.Loss }, "steps": func() { o.cfg.Steps = simCheatSteps },
	} {
		if !given(flag) {
			none()
		}
	}
	return nil
}

// simulate runs one seed after the other.
func (c console) simulate(ctx context.Context, o simOptions) error {
	for i := range o.seeds {
		one := o.cfg
		one.Seed += i
		start := time.Now()
		report, err := sim.Run(ctx, one)
		if err != nil {
			return err
		}
		if o.asJSON {
			err = c.object(struct {
				Seed uint64 `json:"seed"`
				sim.Report
			}{one.Seed, report})
		} else {
			_, err = fmt.Fprintln(c.out, simReport(one, report, time.Since(start)))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func simReport(cfg sim.Config, r sim.Report, took time.Duration) string {
	return fmt.Sprintf("seed %d: %d clients, %d steps in %d rounds and %d epochs, %v of virtual time in %v; %d crashes, %d heals, %d rollbacks; loss %.3f -> %.3f; parameters %.16s held by %d; log %.16s",
		cfg.Seed, cfg.Clients, r.Steps, r.Rounds, r.Epochs, r.Virtual.Round(time.Second), took.Round(time.Millisecond),
		r.Crashes, r.Heals, r.Rollbacks, r.LossFirst, r.LossLast, r.Params, r.Holders, r.Log)
}

// simLine is one event for people.
func simLine(ev sim.Event) string {
	line := fmt.Sprintf("%10v client %-3d %-10s", ev.At.Round(time.Millisecond), ev.Client, ev.Kind)
	if ev.Phase != "" {
		line += fmt.Sprintf(" %s", ev.Phase)
	}
	if ev.Round > 0 {
		line += fmt.Sprintf(" round %d", ev.Round)
	}
	if ev.Params != "" {
		line += fmt.Sprintf(" params %.12s", ev.Params)
	}
	if ev.Text != "" {
		line += " " + ev.Text
	}
	return line
}
