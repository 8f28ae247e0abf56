package main

import (
	"errors"
	"fmt"
	"math"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/lab/large"
	"github.com/entrain-network/entrain/view"
)

// groupsCommand prints what ways to train a model larger than a machine take.
func groupsCommand(c console) *cobra.Command {
	p := large.Plan{Machines: 1024, Stages: 20, Sequences: 2048, Tokens: 4096, Speed: 28e12, Local: 10e9, Disk: 5e9}
	name, links := "70b", []float64{100, 1000}
	cmd := &cobra.Command{
		Use:   "groups",
		Short: "Compute what it takes to train a model that no machine holds",
		Long: `Computes bytes and seconds of a step, memory, what a check takes, and how few cheats spoil a run, for
the ways of docs/large.md to train a model that no member's machine holds: groups that are one member
each, machines that read layers from disk, pipelines of members with three kinds of boundaries, and
optimizer states or parameters that are divided among all. "a third wrong" is the part of the members
that, if they cheat, make a third of the results wrong, also if two members compute each stage; and
"captured" how likely 30 % are a quorum of those that hold some part of the model. Package lab/large has
the formulas.`,
		Example: "  lab groups\n  lab groups --model 1b --machines 64 --stages 2 --link 100",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) (err error) {
			if p.Model, err = large.Model(name); err != nil {
				return err
			}
			if len(links) == 0 {
				return errors.New("--link: want at least one")
			}
			z, err := large.Measure(p.Model)
			if err != nil {
				return err
			}
			at := make([][]large.Way, len(links))
			for i, link := range links {
				p.Link = link * 1e6
				if err := p.Fault(); err != nil {
					return err
				}
				at[i] = p.Ways(z)
			}
			fmt.Fprintf(c.out, "%s weights; a result %s, an update %s\n\n", view.Thousands(uint64(z.Weights)), view.Bytes(uint64(z.Result)), view.Bytes(uint64(z.Update)))
			return c.groups(links, at)
		},
	}
	f := cmd.Flags()
	f.StringVar(&name, "model", name, "`name` of the model: 70b, or a preset")
	f.IntVar(&p.Machines, "machines", p.Machines, "`number` of machines in all")
	f.IntVar(&p.Stages, "stages", p.Stages, "`number` of machines that hold the model together")
	f.IntVar(&p.Sequences, "sequences", p.Sequences, "`number` of sequences in a batch")
	f.IntVar(&p.Tokens, "tokens", p.Tokens, "`number` of tokens in a sequence")
	f.Float64SliceVar(&links, "link", links, "members' links, in `Mb/s` each way")
	return cmd
}

func (c console) groups(links []float64, at [][]large.Way) error {
	size := func(bytes float64) string { return view.Bytes(uint64(bytes)) }
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "a step\tmembers\tsequences each\tmemory\treceived\tdisk\tcomputing\t")
	for _, link := range links {
		fmt.Fprintf(w, "%g Mb/s\t", link)
	}
	for i, v := range at[0] {
		fmt.Fprintf(w, "\n%s\t%s\t%d\t%s\t%s\t%s\t%.0f s\t",
			v.Name, view.Thousands(uint64(v.Members)), v.Share, size(v.Memory), size(v.Moved), size(v.Read+v.Written), v.Compute)
		for _, ways := range at {
			fmt.Fprintf(w, "%s s\t", view.Thousands(uint64(math.Round(ways[i].Step))))
		}
	}
	fmt.Fprintln(w)
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprint(c.out, "\n")
	fmt.Fprint(w, "a check, and trust\tinputs\tstate\tmachine\tshares hit, 1 % away\ta third wrong\tby two\tcaptured, 30 %\t\n")
	for _, v := range at[0] {
		twice := "-"
		if v.Twice > 0 {
			twice = fmt.Sprintf("%.1f %%", 100*v.Twice)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s s\t%.0f %%\t%.1f %%\t%s\t%.1g\t\n",
			v.Name, size(v.Inputs), size(v.State), view.Thousands(uint64(math.Round(v.Work))), 100*v.Away, 100*v.Cheats, twice, v.Captured)
	}
	return w.Flush()
}
