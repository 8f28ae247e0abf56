package model

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/entrain-network/entrain/eval"
	"github.com/entrain-network/entrain/exact"
)

// NamedItems are the items of a task to be scored.
type NamedItems struct {
	Name  string
	Items []eval.Item
}

// ReadTasks reads tasks, each given as NAME=FILE, or as NAME:N=FILE,EXAMPLES with N examples before
// each question; at most limit records of each, unless that is 0.
func ReadTasks(specs []string, limit int) ([]NamedItems, error) {
	if len(specs) == 0 {
		return nil, errors.New("say what to score: --task NAME=FILE")
	}
	var work []NamedItems
	for _, s := range specs {
		name, path, ok := strings.Cut(s, "=")
		name, shots, few := strings.Cut(name, ":")
		if !ok {
			return nil, fmt.Errorf("--task %q: want NAME=FILE, or NAME:N=FILE,EXAMPLES", s)
		}
		path, examples, _ := strings.Cut(path, ",")
		items, err := readItems(name, path, limit)
		if err != nil {
			return nil, err
		}
		if few {
			n, err := strconv.Atoi(shots)
			if err != nil || examples == "" {
				return nil, fmt.Errorf("--task %q: want NAME:N=FILE,EXAMPLES: a number, and a file of examples, the task's train split (dev of mmlu)", s)
			}
			pool, err := readItems(name, examples, 0)
			if err != nil {
				return nil, err
			}
			if items, err = eval.Shots(name, items, pool, n); err != nil {
				return nil, fmt.Errorf("--task %q: %w", s, err)
			}
			name += ":" + shots
		}
		work = append(work, NamedItems{name, items})
	}
	return work, nil
}

func readItems(task, path string, limit int) ([]eval.Item, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	items, err := eval.Read(task, file, limit)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return items, nil
}

// NewScorer reads the model of a checkpoint, to score tasks with on a device, as --device names it,
// or on pool. tell is told why a device is not used. The caller calls free at the end.
func NewScorer(dir string, pool *exact.Pool, device string, tell func(text string)) (s *eval.Scorer, free func(), err error) {
	m, err := Open(dir)
	if err != nil {
		return nil, nil, err
	}
	words, err := m.Tokenizer()
	if err != nil {
		return nil, nil, err
	}
	d, free, err := Machine{Pool: pool, Device: device, Tell: tell, Rows: scoredRows}.NewDecoder(m.Config, m.Params)
	if err != nil {
		return nil, nil, fmt.Errorf("checkpoint %q: %w", m.Dir, err)
	}
	return &eval.Scorer{Tokenizer: words, Context: m.Config.Context, Model: d.Generator()}, free, nil
}

// scoredRows is the number of tokens that a device reads at once: enough for its largest products.
const scoredRows = 512
