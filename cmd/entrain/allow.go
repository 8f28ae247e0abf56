package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/report"
	"github.com/entrain-network/entrain/spec"
)

// allowing holds the flags of run allow.
type allowing struct {
	acting
	remove, anyone, asJSON bool
	require                string
}

func runAllowCommand(c console) *cobra.Command {
	var o allowing
	cmd := &cobra.Command{
		Use:   "allow RUN [KEY...]",
		Short: "Show who may take part in a run, or change it",
		Long: `Shows who may take part in a run: anyone, or only the keys on its list; the oldest release of
entrain that may join; and which nodes work for whom, until when.

With KEYs, adds them to the run's list; with --remove, removes them. A run with a list accepts only
listed keys and nodes that work for them (entrain key delegate). The chain refuses all others, and
withdraws members and validators that are no longer allowed. They keep points and stake, and their
results stay in the model. --anyone keeps the list but lets anyone take part.

--require VERSION sets the oldest release of entrain that may join from now on, such as v1.2.0;
"any" returns to the specification's. Members stay. Raise it when the members that you know have
upgraded. Only the run's owner may change anything.`,
		Example: "  entrain run allow my-run\n  entrain run allow my-run@chain.example.org --json | jq .delegations\n" +
			"  entrain run allow my-run 1f0c...e2 77ab...09\n  entrain run allow my-run --remove 1f0c...e2\n" +
			"  entrain run allow my-run --anyone\n  entrain run allow my-run --require v1.2.0",
		Args:              between(1, 1+host.AdmitKeysMax, fmt.Sprintf("the name of a run, and at most %d keys", host.AdmitKeysMax)),
		ValidArgsFunction: c.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			keys, err := onchain.ParseKeys(args[1:])
			if err != nil {
				return err
			}
			switch {
			case o.remove && (len(keys) == 0 || o.anyone):
				return errors.New("--remove: say whose keys, and leave out --anyone")
			case o.require != "":
				if len(keys) > 0 || o.anyone {
					return errors.New("--require changes the release only: list keys in a command of their own")
				}
				return c.require(cmd, o, args[0])
			case len(keys) == 0 && !o.anyone:
				return c.showAllowed(cmd, o, args[0])
			}
			admit := host.Admit{Run: args[0], Listed: !o.anyone, Add: keys}
			if o.remove {
				admit.Add, admit.Remove = nil, keys
			}
			done := fmt.Sprintf("only listed keys take part in run %q; %d were listed now", args[0], len(keys))
			switch {
			case o.anyone:
				done = fmt.Sprintf("anybody may take part in run %q", args[0])
			case o.remove:
				done = fmt.Sprintf("took %d keys off the list of run %q", len(keys), args[0])
			}
			return c.send(cmd.Context(), o.acting, admit, fmt.Sprintf("list of run %q", args[0]), done)
		},
	}
	o.flags(cmd)
	f := cmd.Flags()
	f.BoolVar(&o.remove, "remove", false, "remove the keys from the list")
	f.BoolVar(&o.anyone, "anyone", false, "let anybody take part from now on")
	f.StringVar(&o.require, "require", "", "oldest `release` that may join, or \"any\"")
	jsonFlag(cmd, &o.asJSON)
	return cmd
}

// require sets the oldest release that may join a run.
func (c console) require(cmd *cobra.Command, o allowing, run string) error {
	program := o.require
	if program == "any" {
		program = ""
	} else if _, err := spec.ParseVersion(program); err != nil {
		return err
	}
	return c.send(cmd.Context(), o.acting, host.Require{Run: run, Program: program}, fmt.Sprintf("release that run %q requires", run),
		fmt.Sprintf("run %q requires entrain %s", run, cmp.Or(program, "as its specification says")))
}

// showAllowed prints who may take part in a run.
func (c console) showAllowed(cmd *cobra.Command, o allowing, target string) error {
	on, err := onchain.ParseTarget(target, &o.chain)
	if err != nil {
		return err
	}
	return c.onRun(cmd.Context(), o.chain, on, func(client ledger.Chain, _ onchain.Run) error {
		a, err := client.Admission(cmd.Context(), on.Run)
		if err != nil {
			return fmt.Errorf("list of run %q: %w", on.Run, err)
		}
		return c.print(o.asJSON, a, func(w io.Writer) error { return report.Admission(w, on.Run, a) })
	})
}
