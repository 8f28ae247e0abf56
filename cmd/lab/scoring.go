package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/lab/study"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/view"
)

// scoringFlags are the flags of lab scoring.
type scoringFlags struct {
	study.ScoringOptions
	miners, validators, sample int
}

// scoringCommand measures the work of validators as a share of the miners'.
func scoringCommand(c console) *cobra.Command {
	var o scoringFlags
	cmd := &cobra.Command{
		Use:   "scoring [PRESET]",
		Short: "Measure the cost of scoring as a share of training",
		Long: `Measures in turn a miner's step (gradient, update, and the hash it commits to) and a validator's
evaluation of it (the gradient again, the comparison on the slice, the losses before and after).
Shows the work of all validators as a share of training, if each evaluates --sample results a
window.`,
		Example: "  lab scoring\n  lab scoring 10m --share 16 --miners 64 --validators 4 --sample 4",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			preset := "nano"
			if len(args) == 1 {
				preset = args[0]
			}
			return c.scoring(cmd, preset, o)
		},
	}
	f := cmd.Flags()
	f.Uint32Var(&o.Share, "share", 8, "`sequences` of a miner in a window")
	f.IntVar(&o.Sequence, "sequence", 128, "`tokens` of a sequence")
	f.Uint32Var(&o.Losses, "losses", 4, "`sequences` of the test of losses; 0: none")
	f.IntVar(&o.Threads, "threads", runtime.GOMAXPROCS(0), "threads")
	f.IntVar(&o.Rounds, "rounds", 5, "`times` to measure both")
	f.IntVar(&o.miners, "miners", 16, "`number` of miners, for the share of training")
	f.IntVar(&o.validators, "validators", 2, "`number` of validators")
	f.IntVar(&o.sample, "sample", 2, "`results` that a validator evaluates in a window")
	return cmd
}

func (c console) scoring(cmd *cobra.Command, preset string, o scoringFlags) (err error) {
	if o.Model, err = llama.Preset(preset); err != nil {
		return err
	}
	if err := checkThreads(o.Threads); err != nil {
		return err
	}
	switch {
	case o.Share < 1 || o.Share > numberMax || o.Rounds < 1 || o.Rounds > numberMax:
		return fmt.Errorf("--share %d --rounds %d: want at least 1 of each, at most %d", o.Share, o.Rounds, numberMax)
	case o.miners < 1 || o.validators < 1 || o.sample < 1 || o.sample > o.miners:
		return fmt.Errorf("--miners %d --validators %d --sample %d: want at least 1 of each, and no more results than miners", o.miners, o.validators, o.sample)
	}
	r, err := study.MeasureScoring(cmd.Context(), o.ScoringOptions)
	if err != nil {
		return err
	}
	share := r.Relative * float64(o.sample*o.validators) / float64(o.miners)
	_, err = fmt.Fprintf(c.out, "%s, %s parameters, shares of %d x %d tokens, %s: a step %.4f s, an evaluation %.4f s, %.2f of a step\n"+
		"%d validators that evaluate %d of %d results a window compute %.1f %% of what the miners do\n",
		preset, view.Thousands(uint64(r.Params)), r.Share, r.Sequence, threadsText(r.Threads), r.Step, r.Evaluation, r.Relative, o.validators, o.sample, o.miners, 100*share)
	return err
}
