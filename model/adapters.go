package model

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/checkpoint/depot"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
)

// baseFile is the file in a state directory that says where the frozen model is, to which the run's
// adapters belong.
const (
	baseFile = "base"
	pathMax  = 1 << 16
)

// RememberBase notes in a state directory that the frozen model of its run is in dir.
func RememberBase(state, dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	return atomicfile.WriteBytes(filepath.Join(state, baseFile), 0o600, []byte(dir+"\n"))
}

// onBase returns the frozen model with the adapters m merged into it. The frozen model is the
// checkpoint asked, or the one that the state directory around m or the checkpoint m names.
func (m Model) onBase(asked string) (Model, error) {
	from := m.Saved.Config.LoRA
	places := []string{asked}
	if asked == "" {
		state := filepath.Dir(filepath.Dir(m.Dir))
		if b, err := atomicfile.ReadBounded(filepath.Join(state, baseFile), pathMax); err == nil {
			places = append(places, strings.TrimSpace(string(b)))
		}
		if !depot.IsAddress(from.Location) {
			places = append(places, from.Location)
		}
	}
	fault := fmt.Errorf("%q holds adapters of the model with the parameters %s, which is not on this machine", m.Dir, from.Base)
	for _, place := range places {
		if place == "" {
			continue
		}
		path, saved, err := OpenCheckpoint(place)
		if err == nil && saved.Config.LoRA != nil {
			err = fmt.Errorf("%q holds adapters too", place)
		}
		var base Model
		if err == nil {
			base, err = read(path, saved)
		}
		if err == nil && base.Hash() != from.Base {
			err = fmt.Errorf("%q has the parameters %s", place, base.Hash())
		}
		if err == nil {
			return m.merge(base)
		}
		if !errors.Is(err, os.ErrNotExist) {
			fault = fmt.Errorf("%w: %w", fault, err)
		}
	}
	return Model{}, fmt.Errorf("%w; name a copy with: entrain model export --base DIR, and use what it writes", fault)
}

// merge returns base with the adapters m.
func (m Model) merge(base Model) (Model, error) {
	pool := exact.NewPool(runtime.GOMAXPROCS(0))
	defer pool.Close()
	whole, want := base.Config, m.Config.Base()
	whole.Numerics, whole.Context = want.Numerics, want.Context
	if whole != want {
		return Model{}, fmt.Errorf("%q: the adapters belong to a model of a different shape than %q", m.Dir, base.Dir)
	}
	a, err := llama.NewAdapted(m.Config, pool, base.Params)
	if err != nil {
		return Model{}, fmt.Errorf("%q: %w", m.Dir, err)
	}
	m.Config, m.Params, m.Merged = want, a.Merge(m.Params), true
	config := m.Saved.Config
	config.LoRA = nil
	m.Saved.Config = config
	return m, nil
}
