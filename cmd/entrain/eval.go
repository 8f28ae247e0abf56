package main

import (
	"context"
	"io"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/eval"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/model"
	"github.com/entrain-network/entrain/view"
)

func evalCommand(c console) *cobra.Command {
	var specs []string
	var device string
	var limit int
	var asJSON bool
	var from checkpointSource
	cmd := &cobra.Command{
		Use:   "eval CHECKPOINT --task NAME...",
		Short: "Score a model on multiple-choice tasks",
		Long: `Scores the model of a checkpoint directory, or of a participant's state directory, whose newest checkpoint is
used, on multiple-choice tasks, as EleutherAI's lm-evaluation-harness does, with the same examples: acc counts
the items whose right choice has the greatest log-likelihood, acc_norm those whose right choice has the
greatest per character. --json also prints the log-likelihood of every choice.

` + aboutAddresses + `

NAME fetches a task's records from Hugging Face once, into the user's cache directory; NAME:N puts N solved
examples before each question. NAME=FILE, or NAME:N=FILE,EXAMPLES, reads them from files instead: a JSON
record a line, with the fields of the data set; examples are its train split, of mmlu its dev split. Tasks:

  ` + strings.Replace(strings.Join(eval.Tasks(), ", "), ", openbookqa", ",\n  openbookqa", 1),
		Example: `  entrain model eval ./checkpoint --task hellaswag --task arc_challenge:25
  entrain model eval ./checkpoint --task hellaswag=hellaswag_val.jsonl --task piqa=piqa_valid.jsonl
  entrain model eval ./state --task mmlu=anatomy.jsonl --items 100 --json
  entrain model eval https://models.example.org/my-run --task arc_challenge=ARC-Challenge-Test.jsonl`,
		Args:              needCheckpoint,
		ValidArgsFunction: completeDirs,
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := c.taskFiles(cmd.Context(), specs)
			if err != nil {
				return err
			}
			work, err := model.ReadTasks(files, limit)
			if err != nil {
				return err
			}
			dir, release, err := from.local(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			defer release()
			pool := exact.NewPool(runtime.GOMAXPROCS(0))
			defer pool.Close()
			scorer, free, err := model.NewScorer(dir, pool, device, c.tell)
			if err != nil {
				return err
			}
			defer free()
			var results []eval.Result
			for _, t := range work {
				r, err := scorer.Run(cmd.Context(), t.Name, t.Items, view.Counted(t.Name, len(t.Items), c.say))
				if err != nil {
					return err
				}
				results = append(results, r)
			}
			return c.print(asJSON, results, func(w io.Writer) error { return eval.WriteTable(w, results) })
		},
	}
	from.flags(cmd)
	f := cmd.Flags()
	f.StringArrayVar(&specs, "task", nil, "`NAME[:N][=FILE]` of a task; may be repeated")
	f.IntVar(&limit, "items", 0, "score only the first `number` of records of each task; 0: all")
	jsonFlag(cmd, &asJSON)
	textDeviceFlag(cmd, &device)
	return cmd
}

// taskFiles names the files of tasks, which it fetches if need be.
func (c console) taskFiles(ctx context.Context, specs []string) ([]string, error) {
	return c.dataFetcher().TaskFiles(ctx, specs)
}

// dataFetcher fetches data sets.
func (c console) dataFetcher() model.Fetcher {
	f := model.Fetcher{Getenv: c.env, Progress: c.progress(), Say: c.say}
	f.Cache, _ = c.places.Checkpoints(c.env) // without a cache it refuses
	return f
}
