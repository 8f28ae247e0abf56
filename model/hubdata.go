package model

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/checkpoint/depot"
	"github.com/entrain-network/entrain/data/source"
	"github.com/entrain-network/entrain/eval"
)

// hubTask is where lm-evaluation-harness takes the records of a task from: a data set on the hub, a
// part of it, and the splits of the questions and of the examples.
type hubTask struct{ set, part, questions, examples string }

var hubTasks = map[string]hubTask{
	"arc_challenge":  {"allenai/ai2_arc", "ARC-Challenge", "test", "train"},
	"arc_easy":       {"allenai/ai2_arc", "ARC-Easy", "test", "train"},
	"boolq":          {"aps/super_glue", "boolq", "validation", "train"},
	"commonsense_qa": {"tau/commonsense_qa", "", "validation", "train"},
	"hellaswag":      {"Rowan/hellaswag", "", "validation", "train"},
	"mmlu":           {"cais/mmlu", "all", "test", "dev"},
	"openbookqa":     {"allenai/openbookqa", "main", "test", "train"},
	"piqa":           {"baber/piqa", "", "validation", "train"},
	"sciq":           {"allenai/sciq", "", "test", "train"},
	"social_iqa":     {"lighteval/siqa", "", "validation", "train"},
	"winogrande":     {"allenai/winogrande", "winogrande_xl", "validation", "train"},
}

// taskBytesMax bounds the files of a task: the largest, HellaSwag's examples, have some 25 MB.
const taskBytesMax = 1 << 28

// TaskFiles gives tasks that are named without a file, NAME or NAME:N, the files that the hub has
// for them: fetched once, into the cache, as JSON lines.
func (f Fetcher) TaskFiles(ctx context.Context, specs []string) ([]string, error) {
	specs = slices.Clone(specs)
	for i, s := range specs {
		if _, file, given := strings.Cut(s, "="); file != "" {
			continue
		} else if given {
			return nil, fmt.Errorf("--task %q: name a file after =, or fetch one without =", s)
		}
		name, _, few := strings.Cut(s, ":")
		at, ok := hubTasks[name]
		if !ok {
			return nil, fmt.Errorf("--task %q: choose from %s, or want NAME=FILE", s, strings.Join(eval.Tasks(), ", "))
		}
		specs[i] += "="
		splits := []string{at.questions}
		if few {
			splits = append(splits, at.examples)
		}
		for k, split := range splits {
			file, err := f.split(ctx, at, split)
			if err != nil {
				return nil, fmt.Errorf("--task %q: %w", s, err)
			}
			if specs[i] += file; k+1 < len(splits) {
				specs[i] += ","
			}
		}
	}
	return specs, nil
}

// Dataset returns a directory with the tables that a split of the data set hf://owner/name has,
// fetched once, into the cache. Other paths stay as they are.
func (f Fetcher) Dataset(ctx context.Context, address, split string) (string, error) {
	name, ok := strings.CutPrefix(address, "hf://")
	if !ok {
		return address, nil
	}
	if f.Cache.Dir == "" {
		return "", errors.New("there is no directory for what is fetched: set XDG_CACHE_HOME, or fetch the files yourself")
	}
	plain := strings.Map(func(r rune) rune {
		if strings.ContainsRune("/:?=&", r) {
			return '_'
		}
		return r
	}, name)
	dir := filepath.Join(filepath.Dir(f.Cache.Dir), "datasets", plain+"_"+split)
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return dir, err
	}
	f.Say("fetching the %s split of %s; it stays in %s", split, name, dir)
	o := depot.Options{Getenv: f.Getenv, Progress: f.Progress, Say: f.Say, Partial: filepath.Dir(dir)}
	return dir, depot.FetchDataset(ctx, address, dir, o, func(names []string) ([]string, error) { return source.Tables(names, split), nil })
}

// split returns the file of a split in the cache, which it fetches if it is not there.
func (f Fetcher) split(ctx context.Context, at hubTask, split string) (file string, err error) {
	if f.Cache.Dir == "" {
		return "", errors.New("there is no directory for what is fetched; name a FILE")
	}
	base := filepath.Join(filepath.Dir(f.Cache.Dir), "tasks", strings.ReplaceAll(at.set, "/", "_")+"_"+at.part)
	file = filepath.Join(base, split+".jsonl")
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return file, err
	}
	f.Say("fetching the %s split of %s", split, at.set)
	fetched := filepath.Join(base, split+".fetched")
	defer os.RemoveAll(fetched)
	o := depot.Options{Getenv: f.Getenv, BytesMax: taskBytesMax}
	if err := os.RemoveAll(fetched); err != nil { // of a conversion that was interrupted
		return "", err
	}
	err = depot.FetchDataset(ctx, "hf://"+at.set, fetched, o, func(names []string) ([]string, error) { return ofSplit(names, at.part, split) })
	if err != nil {
		return "", err
	}
	entries, err := os.ReadDir(fetched)
	if err != nil {
		return "", err
	}
	var all bytes.Buffer
	for _, e := range entries {
		if err := source.Records(filepath.Join(fetched, e.Name()), &all); err != nil {
			return "", err
		}
	}
	return file, atomicfile.WriteBytes(file, 0o644, all.Bytes())
}

// ofSplit picks the files of a split in a part of a data set, as Hugging Face's program datasets
// names them: PART/SPLIT-00000-of-00001.parquet, or without PART; or SPLIT.jsonl.
func ofSplit(names []string, part, split string) (chosen []string, err error) {
	for _, form := range []string{".parquet", ".jsonl"} {
		for _, name := range names {
			rest, ok := strings.CutPrefix(path.Base(name), split)
			inPart := part == "" || slices.Contains(strings.Split(path.Dir(name), "/"), part)
			if ok && inPart && strings.HasSuffix(rest, form) && (rest == form || rest[0] == '-' || rest[0] == '.') {
				chosen = append(chosen, name)
			}
		}
		if len(chosen) > 0 {
			slices.Sort(chosen)
			return chosen, nil
		}
	}
	return nil, fmt.Errorf("the data set has no files of split %q", split)
}
