package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/participant"
)

// release and commit are set by .ci/release: go build -ldflags "-X main.release=v1.2.0 ...". Other
// builds say what Go knows.
var release, commit string

func version() participant.Program { return participant.ThisProgram(release, commit) }

func versionCommand(c console) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version of this program",
		Long:    "Prints the version of this program, the commit it was built from, and the kernels it computes with here.",
		Example: "  entrain version",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(c.out, version())
			return err
		},
	}
}

// howToUpgrade is what a user does about a program that is too old. The program never replaces
// itself: the holder of the key to its updates would command every machine of a run.
const howToUpgrade = `stop entrain, install the newest release as you did this one (README.md, "Getting it"), and start it again:
state directories stay as they are`

func upgradeCommand(c console) *cobra.Command {
	var chain []string
	var check bool
	cmd := &cobra.Command{
		Use: "upgrade [--check RUN | RUN@HOST | TICKET]", Short: "Say how to upgrade, or whether a run requires it",
		Long: `Says how to install a newer release. With --check it reports whether a run takes this version: its
specification or its owner may require a newer one. The exit status is then 0 for yes and 1 for no.

The program does not replace itself.`,
		Example: "  entrain upgrade\n  entrain upgrade --check my-run@203.0.113.5",
		Args:    cobra.MaximumNArgs(1), ValidArgsFunction: c.completeRuns, SuggestFor: []string{"update"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if check != (len(args) == 1) {
				return errors.New("say which run with --check: entrain upgrade --check RUN")
			}
			if !check {
				_, err := fmt.Fprintf(c.out, "This is entrain %s. To upgrade, %s.\n", version().Version, howToUpgrade)
				return err
			}
			to, err := onchain.ParseTarget(args[0], &chain)
			if err != nil {
				return err
			}
			return c.onRun(cmd.Context(), chain, to, func(l ledger.Chain, on onchain.Run) error {
				old, err := participant.Outdated(cmd.Context(), l, on, version().Version)
				if err == nil && old != "" {
					err = fmt.Errorf("%s: %s", old, howToUpgrade)
				}
				if err == nil {
					c.say("run %q takes entrain %s", on.Spec.Name, version().Version)
				}
				return err
			})
		},
	}
	chainFlag(cmd, &chain)
	cmd.Flags().BoolVar(&check, "check", false, "only check whether the run takes this version")
	return cmd
}
