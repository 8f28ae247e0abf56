package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/sim"
)

// simCommand runs whole networks in this process.
func simCommand(c console) *cobra.Command {
	cfg := sim.Default(1)
	var seeds uint64
	var asJSON, verbose bool
	cmd := &cobra.Command{
		Use:   "sim",
		Short: "Run a whole network in this process, with faults, from a seed",
		Long: `Runs real participants with a small real model on a ledger and a network in memory, under one
virtual clock. Crashes, stragglers, loss, delay, partitions and outages of the ledger come from the
seed: the same seed gives the same history and the same log hash, on every machine.

After every event it checks that participants at the same round hold the same parameters, that
nothing is accepted twice, that points are what was accepted, and that the run finishes. A broken
invariant ends the command with an error that names the seed; run it again with --verbose to see
the history.`,
		Example: "  entrain sim\n  entrain sim --seed 7 --clients 50 --overlap 1 --verbose\n  entrain sim --seeds 100 --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if verbose {
				cfg.Observe = func(ev sim.Event) { c.say("%s", simLine(ev)) }
			}
			for i := range max(1, seeds) {
				one := cfg
				one.Seed += i
				start := time.Now()
				report, err := sim.Run(cmd.Context(), one)
				if err != nil {
					return err
				}
				if asJSON {
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
		},
	}
	f := cmd.Flags()
	f.Uint64Var(&cfg.Seed, "seed", cfg.Seed, "seed of the first run")
	f.Uint64Var(&seeds, "seeds", 1, "how many seeds to run, one after the other")
	f.IntVar(&cfg.Clients, "clients", cfg.Clients, "participants")
	f.Uint32Var(&cfg.Steps, "steps", cfg.Steps, "steps to train")
	f.Uint8Var(&cfg.Overlap, "overlap", cfg.Overlap, "rounds by which results overlap training, 0 or 1")
	f.Float64Var(&cfg.Loss, "loss", cfg.Loss, "probability that a gossip message is lost on a hop")
	f.DurationVar(&cfg.Delay, "delay", cfg.Delay, "delay of every message")
	f.IntVar(&cfg.Crashes, "crashes", cfg.Crashes, "participants that crash and come back")
	f.IntVar(&cfg.Stragglers, "stragglers", cfg.Stragglers, "participants ten times as slow")
	f.IntVar(&cfg.Partitions, "partitions", cfg.Partitions, "times the network splits")
	f.IntVar(&cfg.Outages, "outages", cfg.Outages, "times the ledger stops for a while")
	f.DurationVar(&cfg.Limit, "limit", cfg.Limit, "virtual time within which the run must finish")
	f.BoolVar(&asJSON, "json", false, "print one JSON object a seed")
	f.BoolVarP(&verbose, "verbose", "v", false, "tell every event on standard error")
	return cmd
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
