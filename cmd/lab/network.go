package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/lab/network"
)

// networkCommand compares the simulation with libp2p.
func networkCommand(c console) *cobra.Command {
	members, newcomers, churn, steps, pace := 32, 2, 1, uint32(12), 5*time.Second
	var seed uint64 = 1
	var last time.Duration
	var followers, memory, asJSON bool
	var aggregators uint16
	cmd := &cobra.Command{
		Use:   "network",
		Short: "Compare the simulation's messages with those of members over libp2p",
		Long: `Runs members over libp2p in one process, on loopback addresses and with a small real model. They come
a few at a time, and the run begins once all are there. In each round from the third some leave or
are killed, and come back some rounds later, and newcomers join. Then it simulates the same members
with the same moves, and prints what a member sends in a round, of each kind, in both.`,
		Example: "  lab network\n  lab network --members 200 --newcomers 20 --churn 6 --memory --pace 60s --steps 100 --for 1h",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if members < 2 || newcomers < 0 || churn < 0 || churn >= members/2 || steps < 3 {
				return errors.New("want --members 2 or more, --churn below half of them, and --steps 3 or more")
			}
			cfg := network.NewConfig(seed, members, newcomers, churn, steps, pace)
			cfg.Memory, cfg.For = memory, last
			cfg.Aggregate(followers, aggregators)
			return c.compare(cmd.Context(), cfg, asJSON)
		},
	}
	f := cmd.Flags()
	f.Uint64Var(&seed, "seed", seed, "seed of the moves and of the simulation")
	f.IntVar(&members, "members", members, "members from the start")
	f.IntVar(&newcomers, "newcomers", newcomers, "members that join later")
	f.IntVar(&churn, "churn", churn, "members that leave or are killed in a round, and come back")
	f.Uint32Var(&steps, "steps", steps, "steps to train")
	f.DurationVar(&pace, "pace", pace, "mean time of a member's share, which makes rounds long enough for this machine")
	f.DurationVar(&last, "for", 0, "time after which the run over libp2p ends (default: at the last step)")
	f.BoolVar(&followers, "followers", false, "have members that are no witnesses apply updates, not payloads")
	f.Uint16Var(&aggregators, "aggregators", 0, "have groups of this `number` of members, or more, sum a slice of the results each")
	f.BoolVar(&memory, "memory", false, "have connections in memory in place of TCP: more members than the process may have sockets for")
	f.BoolVar(&asJSON, "json", false, "print one JSON object a round, and one for the comparison")
	return cmd
}

func (c console) compare(ctx context.Context, cfg network.Config, asJSON bool) error {
	began := time.Now()
	observe := func(from string) func(network.Record) {
		return func(r network.Record) {
			c.say("%v %s: round %d after %.0f s, %d members", time.Since(began).Round(time.Second), from, r.Round, r.Elapsed, r.Present)
			if asJSON {
				_ = c.object(struct {
					From string `json:"from"`
					network.Record
				}{from, r})
			}
		}
	}
	cfg.Observe = observe("libp2p")
	real, err := network.Run(ctx, cfg)
	if len(real) == 0 {
		return err
	}
	if err != nil {
		c.say("the run over libp2p ended early: %v", err)
	}
	cfg.Observe = observe("simulation")
	simulated, err := network.Simulate(context.WithoutCancel(ctx), cfg, real[len(real)-1].Round)
	if err != nil {
		return err
	}
	compared := network.Compare(simulated, real)
	if asJSON {
		return c.object(compared)
	}
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, part := range []struct {
		name string
		of   []network.Rates
	}{{"between node and network", compared.Kinds}, {"sent", compared.Wire}} {
		fmt.Fprintf(w, "%s\tsimulated\tlibp2p\tratio\tbytes simulated\tlibp2p\tratio\t\n", part.name)
		for _, r := range part.of {
			fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%.2f\t%.0f\t%.0f\t%.2f\t\n", cmp.Or(r.Kind, "negotiation"), r.Simulated.Messages, r.Real.Messages, r.Messages, r.Simulated.Bytes, r.Real.Bytes, r.Bytes)
		}
	}
	fmt.Fprintf(w, "all that connections carried\t\t\t\t\t%.0f\t\t\n", compared.Carried)
	return w.Flush()
}
