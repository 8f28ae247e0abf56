package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/lab/adversary"
	"github.com/entrain-network/entrain/lab/sim"
	"github.com/entrain-network/entrain/participant"
)

// simOptions are the flags of lab sim.
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

// simCommand simulates whole networks.
func simCommand(c console) *cobra.Command {
	o := simOptions{cfg: sim.Default(1)}
	cmd := &cobra.Command{
		Use:   "sim",
		Short: "Simulate a whole network with faults and cheats, from a seed",
		Long: `Runs real participants with a small real model on a ledger and a network in memory, under one
virtual clock. Crashes, stragglers, loss, delay, partitions and outages of the ledger come from the
seed: the same seed gives the same history and the same log hash on every machine.

After every event it checks that honest participants at the same round hold the same parameters,
that nothing is accepted twice, that points match the accepted work, that tokens add up, that no
honest participant is convicted, that the run goes on soon after the last fault, and that it
finishes; with more than 128 clients, which use all processors, after every 30 ms of virtual time. A
broken invariant ends the command with an error that names the seed; run that seed with --verbose to
see the history.

With --adversaries N, N participants cheat, each in its way. There are then no other faults unless
you ask for them. With at most 128 clients, each seed is trained twice more, by the same members all
honest and by the honest ones alone, to compare the loss. A summary shows how soon the cheats were
convicted, and whether that fits the probabilities with which results are checked. --results FILE
keeps the result of each seed; called again, the command runs the missing seeds.`,
		Example: "  lab sim\n  lab sim --seed 7 --clients 50 --overlap 1 --verbose\n  lab sim --seeds 100 --json\n" +
			"  lab sim --clients 87 --adversaries 29 --seeds 200 --results seeds.jsonl",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.complete(cmd.Flags().Changed); err != nil {
				return err
			}
			if o.verbose {
				o.cfg.Observe = func(ev sim.Event) { c.say("%s", simLine(ev)) }
			}
			spendMemory(o.crowded())
			if len(o.cfg.Adversaries) > 0 {
				return c.simulateCheats(cmd.Context(), o)
			}
			return c.simulate(cmd.Context(), o)
		},
	}
	o.flags(cmd)
	return cmd
}

// memoryMost is the size of the heap, in bytes, below which garbage is rarely collected. With the
// program that is less than 8 GB.
const memoryMost = 7<<30 + 300<<20

// spendMemory has garbage rarely collected, which otherwise takes a third of the time, up to
// memoryMost, unless the environment says how. A large simulation waits for memory most of the
// time, and large pages take a sixth of that: the memory that it will need is asked for in them at
// once and given back, since what was in large pages comes back in large pages.
func spendMemory(large bool) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	if large {
		exact.Make[byte](int(min(memoryMost, participant.MemoryFree())))
		runtime.GC()
	}
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(memoryMost)
}

func (o *simOptions) flags(cmd *cobra.Command) {
	f, cfg := cmd.Flags(), &o.cfg
	f.Uint64Var(&cfg.Seed, "seed", cfg.Seed, "seed of the first run")
	f.Uint64Var(&o.seeds, "seeds", 1, "number of seeds")
	f.IntVar(&cfg.Clients, "clients", cfg.Clients, "participants")
	f.Uint32Var(&cfg.Steps, "steps", cfg.Steps, "steps to train")
	f.Uint8Var(&cfg.Overlap, "overlap", cfg.Overlap, "rounds by which results overlap training, 0 or 1")
	f.Float64Var(&cfg.Loss, "loss", cfg.Loss, "probability that a gossip message is lost on a hop")
	f.DurationVar(&cfg.Delay, "delay", cfg.Delay, "delay of every message")
	f.IntVar(&cfg.Crashes, "crashes", cfg.Crashes, "participants that crash and come back")
	f.IntVar(&cfg.Stragglers, "stragglers", cfg.Stragglers, "participants that compute ten times as slowly")
	f.BoolVar(&cfg.Followers, "followers", false, "have who is not a witness apply updates, not payloads (default: with more than 128 clients); see --witnesses")
	f.Uint16Var(&cfg.Aggregators, "aggregators", 0, "with --overlap 1: have groups of this `number` of participants, or more, sum a slice of the results each")
	f.Uint16Var(&cfg.Witnesses, "witnesses", 0, "witnesses of a round (default: one for each member, up to 32)")
	f.BoolVar(&cfg.BySpeed, "by-speed", false, "divide batches by the speed that members state, not equally")
	f.IntVar(&cfg.Partitions, "partitions", cfg.Partitions, "times that the network splits")
	f.IntVar(&cfg.Outages, "outages", cfg.Outages, "times that the ledger stops for a while")
	f.DurationVar(&cfg.Limit, "limit", cfg.Limit, "virtual time within which the run must finish")
	f.Uint8Var(&cfg.Verification, "verification", 0, "`percent` of the results that others recompute (default: 0, or 10 with cheats)")
	f.IntVar(&o.adversaries, "adversaries", 0, "participants that cheat, of all kinds in turn")
	f.StringSliceVar(&o.kinds, "kinds", nil, "the `kinds` of the cheats (default: all): "+adversary.Names()+"; with --followers and --aggregators also those that lab adversaries lists")
	f.IntVar(&o.workers, "workers", runtime.GOMAXPROCS(0), "with cheats: seeds to run at the same time")
	f.StringVar(&o.results, "results", "", "with cheats: `file` that keeps the result of each seed")
	f.BoolVar(&o.asJSON, "json", false, "print one JSON object a seed")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "print every event to standard error")
	_ = cmd.MarkFlagFilename("results", "jsonl")
}

const (
	// simFollow is the number of clients above which they follow: with 32 witnesses they receive less
	// then.
	simFollow = 128
	// simVerification is the default of --verification with cheats, in percent.
	simVerification = 10
	// simCheatSteps is the default of --steps with cheats: enough to convict nearly all.
	simCheatSteps = 40
)

// crowded reports whether a network of this size uses all processors.
func (o *simOptions) crowded() bool { return o.cfg.Clients > simFollow }

// complete checks the flags and derives the settings that follow from them.
func (o *simOptions) complete(given func(string) bool) error {
	switch {
	case o.seeds < 1:
		return errors.New("--seeds 0: want at least 1")
	case o.workers < 1 || o.workers > exact.MaxWorkers:
		return fmt.Errorf("--workers %d: want 1 to %d", o.workers, exact.MaxWorkers)
	case o.adversaries < 0:
		return fmt.Errorf("--adversaries %d: want 0 or more", o.adversaries)
	}
	if !given("followers") {
		o.cfg.Followers = o.crowded()
	}
	for i := 0; i < o.adversaries || i < len(o.kinds); i++ {
		if len(o.kinds) == 0 {
			o.cfg.Adversaries = sim.Mix(o.adversaries, o.cfg.Followers)
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
		return errors.New("--verification 0: without it no cheat is found; want 1 to 100")
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

// simulate runs one seed after another.
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

// simLine writes an event for people.
func simLine(ev sim.Event) string {
	fields, err := json.Marshal(ev.Event)
	if err != nil {
		panic(err) // a struct of numbers and texts
	}
	return fmt.Sprintf("%10v client %-3d %-10s %s", ev.At.Round(time.Millisecond), ev.Client, ev.Event.Kind(), fields)
}
