package model

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/entrain-network/entrain/eval"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
)

// NamedItems are the items of a task to be scored.
type NamedItems struct {
	Name  string
	Items []eval.Item
}

// ReadTasks reads tasks, each given as NAME=FILE; at most limit records of each, unless that is 0.
func ReadTasks(specs []string, limit int) ([]NamedItems, error) {
	if len(specs) == 0 {
		return nil, errors.New("say what to score: --task NAME=FILE")
	}
	var work []NamedItems
	for _, s := range specs {
		name, path, ok := strings.Cut(s, "=")
		if !ok {
			return nil, fmt.Errorf("--task %q: want NAME=FILE", s)
		}
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		items, err := eval.Read(name, file, limit)
		file.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		work = append(work, NamedItems{name, items})
	}
	return work, nil
}

// NewScorer reads the model of a checkpoint, to score tasks with, on pool.
func NewScorer(dir string, pool *exact.Pool) (*eval.Scorer, error) {
	m, err := Open(dir)
	if err != nil {
		return nil, err
	}
	words, err := m.Tokenizer()
	if err != nil {
		return nil, err
	}
	reader, err := llama.NewGenerator(m.Config, m.Params, pool)
	if err != nil {
		return nil, fmt.Errorf("checkpoint %q: %w", m.Dir, err)
	}
	return &eval.Scorer{Model: reader, Tokenizer: words, Context: m.Config.Context}, nil
}
