package checkpoint

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/entrain-network/entrain/wire"
)

// A LoRA says that a checkpoint holds adapters of a frozen model, and no other weights. config.json
// then describes the frozen model, and AdapterConfigFile the adapters for PEFT.
type LoRA struct {
	Alpha   float64   `json:"alpha"`
	Base    wire.Hash `json:"base"` // merkle.BlobRoot of the frozen model's float32 parameters
	Rank    int       `json:"rank"`
	Targets []string  `json:"targets"` // matrices of every layer, such as "q_proj"
	// Location is where that model may be, a directory or an address; "" if that is not known.
	Location string `json:"location,omitempty"`
}

// The names that PEFT gives to the files of adapters.
const (
	AdapterConfigFile  = "adapter_config.json"
	AdapterWeightsFile = "adapter_model.safetensors"
)

// locationBytesMax bounds the name of the place of a frozen model.
const locationBytesMax = 4096

func (l *LoRA) check() error {
	switch {
	case l == nil:
		return nil
	case l.Rank < 1 || l.Rank > dimensionMax:
		return fmt.Errorf("the rank of lora is %d, not in 1..%d", l.Rank, dimensionMax)
	case !(l.Alpha > 0 && l.Alpha <= math.MaxFloat32):
		return fmt.Errorf("the alpha of lora is %v, not positive", l.Alpha)
	case len(l.Targets) == 0:
		return errors.New("lora has no targets")
	case len(l.Location) > locationBytesMax:
		return fmt.Errorf("the location of lora has %d bytes, more than %d", len(l.Location), locationBytesMax)
	}
	return nil
}

// adapterJSON is adapter_config.json of PEFT.
type adapterJSON struct {
	Base       string   `json:"base_model_name_or_path"`
	Bias       string   `json:"bias"`
	FanInOut   bool     `json:"fan_in_fan_out"`
	Inference  bool     `json:"inference_mode"`
	Init       bool     `json:"init_lora_weights"`
	Alpha      float64  `json:"lora_alpha"`
	Dropout    float    `json:"lora_dropout"`
	PEFT       string   `json:"peft_type"`
	Rank       int      `json:"r"`
	Targets    []string `json:"target_modules"`
	Task       string   `json:"task_type"`
	UseDoRA    bool     `json:"use_dora"`
	RankStable bool     `json:"use_rslora"`
}

// bytes returns adapter_config.json.
func (l *LoRA) bytes() []byte {
	return indent(adapterJSON{
		Base: strings.TrimPrefix(l.Location, "hf://"), Bias: "none", Inference: true, Init: true, Alpha: l.Alpha, Dropout: "0.0",
		PEFT: "LORA", Rank: l.Rank, Targets: l.Targets, Task: "CAUSAL_LM",
	})
}
