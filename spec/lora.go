package spec

import (
	"errors"
	"fmt"

	"github.com/entrain-network/entrain/llama"
)

// LoRA makes adapters the run's parameters. The model that model.from names is frozen: members have
// it before they take part, and exchange only adapters. docs/numerics.md defines what they compute.
type LoRA struct {
	Rank int `toml:"rank"` // of each adapter, 1 to 1024, at most the smaller side of its matrix
	// Alpha divided by rank multiplies the adapters. The default is twice the rank.
	Alpha float64 `toml:"alpha,omitempty"`
	// Targets are the matrices of every layer that have adapters, among q_proj, k_proj, v_proj,
	// o_proj, gate_proj, up_proj and down_proj. The default is all of them.
	Targets []string `toml:"targets,omitempty"`
}

// config returns the adapters of a model.
func (l *LoRA) config() (llama.LoRA, error) {
	if l == nil {
		return llama.LoRA{}, nil
	}
	if l.Rank < 1 || l.Rank > llama.MaxRank {
		return llama.LoRA{}, fmt.Errorf("lora.rank: %d must be 1 to %d", l.Rank, llama.MaxRank)
	}
	c, err := llama.NewLoRA(l.Rank, l.Alpha, l.Targets)
	if err != nil {
		return c, fmt.Errorf("lora.targets: %w", err)
	}
	return c, nil
}

// checkLoRA returns the faults that adapters have together with other keys.
func (s Spec) checkLoRA() (faults []error) {
	if s.Model.LoRA == nil {
		return nil
	}
	if s.Model.From == "" {
		faults = append(faults, errors.New("model.lora: adapters belong to a trained model; name its checkpoint with: entrain run create --from DIR"))
	}
	if s.Resume != nil {
		faults = append(faults, errors.New("resume: a run of adapters cannot be resumed; merge them into their model and begin new ones: entrain model export"))
	}
	return faults
}
