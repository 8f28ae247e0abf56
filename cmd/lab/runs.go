package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/lab/study"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/model"
)

// runFlags are the flags of the commands that train a model again and again.
type runFlags struct {
	study.LearningOptions
	model string // "" for that of the study
	rates map[string]string
}

// add adds the flags, with the default model.
func (r *runFlags) add(cmd *cobra.Command, model string) {
	f := cmd.Flags()
	otherwise := ""
	if model == "" {
		otherwise = " (default: 2 layers of 64)"
	}
	f.StringVar(&r.model, "model", model, "`preset` of the model, or its config.json; tokens are bytes"+otherwise)
	f.StringToStringVar(&r.rates, "rates", nil, "only these methods, at these learning rates: `method=rate,...`")
	f.IntVar(&r.Steps, "steps", 1200, "`steps` that a run trains, of --batch sequences each")
	f.IntVar(&r.Batch, "batch", 16, "`sequences` of a step, of all members together")
	f.IntVar(&r.Threads, "threads", min(2, runtime.GOMAXPROCS(0)), "threads")
	f.StringVar(&r.Text, "data", "", "text or JSONL `file` to train on (default: Newton's Opticks)")
	f.Uint64Var(&r.HeldOut, "held-out", 1<<20, "measure the loss on at most this `number` of held-out sequences")
	f.StringVar(&r.Results, "results", "", "`file` that keeps the results of runs")
	_ = cmd.MarkFlagFilename("data")
	_ = cmd.MarkFlagFilename("results", "jsonl")
}

// prepareRuns checks the flags, and fills in the model, those of the rows that --rates names, and
// the progress.
func (c console) prepareRuns(r *runFlags, rows []study.LearningRow) (err error) {
	if r.Batch < 1 || r.Batch > numberMax || r.Steps < 1 || r.Steps > numberMax {
		return fmt.Errorf("--steps %d --batch %d: want 1 to %d of each", r.Steps, r.Batch, numberMax)
	}
	if r.HeldOut < 1 || r.HeldOut > numberMax {
		return fmt.Errorf("--held-out %d: want 1 to %d", r.HeldOut, numberMax)
	}
	if err := checkThreads(r.Threads); err != nil {
		return err
	}
	if r.model != "" {
		if r.Model, err = modelNamed(r.model); err != nil {
			return fmt.Errorf("--model: %w", err)
		}
	}
	if r.Rows, err = r.only(rows); err != nil {
		return err
	}
	r.Progress = func(what string) { c.say("training: %s", what) }
	return nil
}

// only returns the rows of the methods that --rates names, at its rates.
func (r *runFlags) only(all []study.LearningRow) (rows []study.LearningRow, err error) {
	if len(r.rates) == 0 {
		return all, nil
	}
	rates, methods := map[study.Method]float64{}, map[study.Method]bool{}
	for _, row := range all {
		methods[row.Method] = true
	}
	for name, text := range r.rates {
		m := study.Method(name)
		if !methods[m] {
			return nil, fmt.Errorf("--rates %s: the methods are %s", name, slices.Sorted(maps.Keys(methods)))
		}
		if rates[m], err = strconv.ParseFloat(text, 32); err != nil || !(rates[m] > 0 && rates[m] <= 1) {
			return nil, fmt.Errorf("--rates %s=%s: want a learning rate above 0, at most 1", name, text)
		}
	}
	for _, row := range all {
		if rate, ok := rates[row.Method]; ok {
			row.Rate, row.Fixed = rate, true
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// modelNamed returns the model of a preset or a file.
func modelNamed(name string) (llama.Config, error) {
	if filepath.Ext(name) != ".json" {
		return llama.Preset(name)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return llama.Config{}, err
	}
	c, err := checkpoint.ParseConfig(b)
	if err != nil {
		return llama.Config{}, fmt.Errorf("%s: %w", name, err)
	}
	return model.LlamaConfig(c), nil
}
