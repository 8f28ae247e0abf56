package main

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/lab/campaign"
	"github.com/entrain-network/entrain/lab/results"
	"github.com/entrain-network/entrain/lab/sim"
)

// campaignCommand hunts for broken invariants.
func campaignCommand(c console) *cobra.Command {
	o := campaign.Options{First: 1}
	var replay string
	cmd := &cobra.Command{
		Use:   "campaign",
		Short: "Hunt for bugs with random networks, faults and cheats",
		Long: `Simulates one random network after another: members, witnesses, steps, delays, losses, crashes,
partitions, outages, clocks that jump, members that leave and come back, old, lost and full disks,
pauses of the run, verification and up to 40 percent of cheats of random kinds, some of them two
kinds in turn, all drawn from the trial's seed. In a third of the trials members
follow, and in a third they make updates in slices. One trial in five exchanges by buckets, with
validators of which less than half lie or crash, with miners that crash and come back, stakes from a
pool, and buckets that fail and lag.
A trial that breaks an invariant (see "lab sim --help"; by buckets also: no cheat earns more than the
best of the honest) or panics is a finding. The command shrinks it to the smallest configuration that
fails in the same way, and prints that configuration.

--file keeps a line of JSON for each trial; called again, the command continues with the next seed.
--replay runs the smallest configuration of the findings in such a file again, event by event.
The exit status is 1 if there are findings.`,
		Example: "  lab campaign --for 4h --file campaign.jsonl\n  lab campaign --trials 20 --seed 1000\n  lab campaign --replay campaign.jsonl",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkThreads(o.Workers); err != nil {
				return err
			}
			if replay != "" {
				return c.replay(cmd.Context(), replay)
			}
			if o.Limit < 0 || o.Limit == 0 && o.Trials == 0 {
				return fmt.Errorf("give the campaign an end: --for DURATION or --trials N")
			}
			return c.campaign(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.DurationVar(&o.Limit, "for", 0, "`duration` of the campaign")
	f.Uint64Var(&o.Trials, "trials", 0, "number of trials (default: as many as fit into --for)")
	f.Uint64Var(&o.First, "seed", o.First, "seed of the first trial")
	f.IntVar(&o.Workers, "workers", runtime.GOMAXPROCS(0), "trials to run at the same time")
	f.StringVar(&o.File, "file", "", "`file` that keeps the result of each trial")
	f.StringVar(&replay, "replay", "", "`file` whose findings to run again")
	_ = cmd.MarkFlagFilename("file", "jsonl")
	_ = cmd.MarkFlagFilename("replay", "jsonl")
	return cmd
}

func (c console) campaign(ctx context.Context, o campaign.Options) error {
	o.Observe = func(r campaign.Result) {
		if r.Finding == nil {
			c.say("seed %d: %d faults, %d rounds in %v", r.Seed, r.Faults, r.Rounds, r.Wall.Round(time.Millisecond))
			return
		}
		config, _ := json.Marshal(r.Finding.Config)
		c.say("seed %d: FOUND %s\n  smallest configuration, after %d runs: %s", r.Seed, r.Finding.Error, r.Finding.Runs, config)
	}
	start := time.Now()
	sum, err := campaign.Run(ctx, o)
	if err != nil {
		return err
	}
	hours := sum.Wall.Hours() / float64(min(o.Workers, exact.MaxWorkers))
	_, err = fmt.Fprintf(c.out, "%d trials, %d faults and cheats, %d rounds, %v of virtual time\n"+
		"%.0f faults an hour with %d workers; this call took %v\n"+
		"%d findings; %d more failed where cheats have a third of the votes, by what that allows them\n",
		sum.Trials, sum.Faults, sum.Rounds, sum.Virtual.Round(time.Second),
		float64(sum.Faults)/max(hours, 1e-9), o.Workers, time.Since(start).Round(time.Second), len(sum.Findings), sum.Tolerated)
	if err == nil && len(sum.Findings) > 0 {
		return fmt.Errorf("%d findings", len(sum.Findings))
	}
	return err
}

// replay runs the smallest configuration of each finding in a campaign's file, and prints its
// events.
func (c console) replay(ctx context.Context, file string) error {
	kept, err := results.Read[campaign.Result](file)
	if err != nil {
		return err
	}
	for _, r := range kept {
		if r.Finding == nil {
			continue
		}
		if cfg := r.Finding.Config.Peers; cfg != nil {
			cfg.Observe = func(ev sim.Event) { c.say("%s", simLine(ev)) }
		}
		_, err := campaign.Simulate(ctx, r.Finding.Config)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if _, err := fmt.Fprintf(c.out, "seed %d: %v\n", r.Seed, err); err != nil {
			return err
		}
	}
	return nil
}
