package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/spec"
)

func runAllowCommand(c console) *cobra.Command {
	var a acting
	var anyone bool
	cmd := &cobra.Command{
		Use:   "allow RUN KEY...",
		Short: "Restrict a run to listed keys, and list some",
		Long: `Puts keys on the run's list. From the first one on, only listed keys take part, and nodes that work for them
(entrain key delegate); the chain refuses the others, and members who are not listed are withdrawn from the
run, with what they have earned. With --anyone the list is kept, but anybody may take part.

Only the run's owner may. entrain run allowed shows the list.`,
		Example: "  entrain run allow my-run 1f0c...e2 77ab...09\n  entrain run allow my-run --anyone",
		Args:    needRunAndMore, ValidArgsFunction: c.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			keys, err := parseKeys(args[1:])
			if err != nil {
				return err
			}
			if len(keys) == 0 && !anyone {
				return errors.New("say whose keys, or --anyone; without a key on it, a list lets nobody in")
			}
			if err := c.admit(cmd.Context(), a, host.Admit{Run: args[0], Listed: !anyone, Add: keys}); err != nil {
				return err
			}
			if anyone {
				c.say("anybody may take part in run %q", args[0])
			} else {
				c.say("only listed keys take part in run %q; %d were listed now", args[0], len(keys))
			}
			return nil
		},
	}
	a.flags(cmd)
	cmd.Flags().BoolVar(&anyone, "anyone", false, "let anybody take part from now on")
	return cmd
}

func runDisallowCommand(c console) *cobra.Command {
	var a acting
	cmd := &cobra.Command{
		Use:   "disallow RUN KEY...",
		Short: "Take keys off a run's list",
		Long: `Takes keys off the run's list, and restricts the run to the list. Those who take part with them, and nodes
that work for them, are withdrawn at once, as if they had left: their points and their stake stay theirs,
and what they trained stays in the model. Only the run's owner may.`,
		Example: "  entrain run disallow my-run 1f0c...e2",
		Args:    needRunAndMore, ValidArgsFunction: c.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			keys, err := parseKeys(args[1:])
			if err == nil && len(keys) == 0 {
				err = errors.New("say whose keys")
			}
			if err != nil {
				return err
			}
			if err := c.admit(cmd.Context(), a, host.Admit{Run: args[0], Listed: true, Remove: keys}); err != nil {
				return err
			}
			c.say("took %d keys off the list of run %q", len(keys), args[0])
			return nil
		},
	}
	a.flags(cmd)
	return cmd
}

// admit submits a change of who may take part.
func (c console) admit(ctx context.Context, a acting, m host.Admit) error {
	err := c.act(ctx, a, func(ledger.Chain, key.Public) (host.Body, error) { return m, nil })
	if err != nil {
		return fmt.Errorf("list of run %q: %w", m.Run, err)
	}
	return nil
}

func runAllowedCommand(c console) *cobra.Command {
	var chain []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "allowed RUN",
		Short: "Show who may take part in a run",
		Long: `Shows whether a run takes anybody or only listed keys, the list, and which nodes work for whom, until when.
RUN@HOST asks a replica at HOST.`,
		Example: "  entrain run allowed my-run\n  entrain run allowed my-run@chain.example.org --json | jq .delegations",
		Args:    cobra.ExactArgs(1), ValidArgsFunction: c.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			on, err := onchain.ParseTarget(args[0], &chain)
			if err != nil {
				return err
			}
			client, err := c.dial(cmd.Context(), chain, nil)
			if err != nil {
				return err
			}
			list, err := client.Admission(cmd.Context(), on.Run)
			if err := errors.Join(err, client.Close()); err != nil {
				return fmt.Errorf("list of run %q: %w", on.Run, err)
			}
			if asJSON {
				return c.object(list)
			}
			return c.showAdmission(on.Run, list)
		},
	}
	chainFlag(cmd, &chain)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

func (c console) showAdmission(run string, a host.Admission) error {
	if a.Listed {
		c.print("run %q takes only listed keys, and nodes that work for them\n", run)
	} else {
		c.print("run %q takes anybody\n", run)
	}
	if a.Program != "" {
		c.print("who joins needs entrain %s or newer\n", a.Program)
	}
	for _, k := range a.Allowed {
		c.print("listed  %s\n", k)
	}
	for _, d := range a.Delegations {
		until := time.UnixMilli(int64(d.ExpiresMs)).Format(time.RFC3339)
		if d.Revoked {
			until += ", revoked"
		}
		c.print("node    %s works for %s until %s\n", d.Node, d.Owner, until)
	}
	return nil
}

func runRequireCommand(c console) *cobra.Command {
	var a acting
	cmd := &cobra.Command{
		Use:   "require RUN VERSION",
		Short: "Say which release of entrain a run takes from now on",
		Long: `Says which release of entrain is the oldest that may join the run from now on, such as v1.2.0; "any" takes it
back to what the specification says. Whoever joins with an older one is told to get a newer one. Members stay,
also those with an older program, until they leave: programs look at this themselves, when they join.

Raise it when all members that you know have been upgraded, one at a time. Only the run's owner may.`,
		Example: "  entrain run require my-run v1.2.0\n  entrain run require my-run any",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("say the name of a run and a release, or any: %s", cmd.UseLine())
			}
			return needRun(cmd, args[:1])
		},
		ValidArgsFunction: c.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			program := args[1]
			if program == "any" {
				program = ""
			} else if _, err := spec.ParseVersion(program); err != nil {
				return err
			}
			body := host.Require{Run: args[0], Program: program}
			if err := c.act(cmd.Context(), a, func(ledger.Chain, key.Public) (host.Body, error) { return body, nil }); err != nil {
				return fmt.Errorf("release that run %q requires: %w", args[0], err)
			}
			c.say("who joins run %q from now on needs entrain %s", args[0], cmp.Or(program, "as its specification says")+map[bool]string{true: " or newer"}[program != ""])
			return nil
		},
	}
	a.flags(cmd)
	return cmd
}

// print writes to the standard output. A pipe that is closed ends the program by its signal.
func (c console) print(format string, args ...any) { fmt.Fprintf(c.out, format, args...) }

// needRunAndMore wants the name of a run, and looks no further.
func needRunAndMore(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("say the name of a run: %s", cmd.UseLine())
	}
	return needRun(cmd, args[:1])
}

// parseKeys reads public keys, and returns them once each and in order, as transactions want them.
func parseKeys(texts []string) ([]key.Public, error) {
	var keys []key.Public
	for _, s := range texts {
		k, err := parseKey(s)
		if err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	if len(keys) > host.AdmitKeysMax {
		return nil, fmt.Errorf("%d keys at once, at most %d", len(keys), host.AdmitKeysMax)
	}
	slices.SortFunc(keys, key.Public.Compare)
	return slices.Compact(keys), nil
}
