package main

import (
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

// howToUpgrade is what a user does about a program that is too old. The program never replaces
// itself: the holder of the key to its updates would command every machine of a run.
const howToUpgrade = `stop entrain, install the newest release as you did this one (README.md, "Getting it"), and start it again:
state directories stay as they are`

func versionCommand(c console) *cobra.Command {
	var chain []string
	cmd := &cobra.Command{
		Use: "version [RUN | RUN@HOST | TICKET]", Short: "Print the version of this program, or whether a run requires a newer one",
		Long: `Prints the version of this program, the commit it was built from, and the kernels it computes with here.

With RUN it reports whether the run takes this version, and how to upgrade if not: the run's specification or
its owner may require a newer one. The exit status is 0 for yes and 1 for no. The program does not replace
itself.`,
		Example: "  entrain version\n  entrain version my-run@203.0.113.5",
		Args:    between(0, 1, "one run at most"), ValidArgsFunction: c.completeRuns, SuggestFor: []string{"update", "upgrade"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				_, err := fmt.Fprintln(c.out, version())
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
	return cmd
}
