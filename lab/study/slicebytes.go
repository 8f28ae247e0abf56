package study

import (
	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/codec/distro"
	"github.com/entrain-network/entrain/codec/slice"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/wire"
)

// SliceBytes is what a member uploads in a window, for a model and a compression.
type SliceBytes struct {
	Model       string `json:"model"`
	Params      int    `json:"params"`
	Compression uint32 `json:"compression"`
	Leaf        uint32 `json:"leaf"`
	// a byte for one in Compression parameters, and nothing else
	Ideal  int `json:"ideal_bytes"`
	Values int `json:"value_bytes"`  // of the reveal: small tensors send a leaf at least
	Reveal int `json:"reveal_bytes"` // values, proofs and header
	State  int `json:"state_bytes"`  // of a state slice, at most
	Dense  int `json:"dense_bytes"`  // of a whole update in binary32
	// of a payload of codec distro with the settings of a run that says nothing else
	Distro int `json:"distro_bytes"`
}

// MeasureSliceBytes computes, without training, the bytes of presets at these compressions.
func MeasureSliceBytes(models []string, compressions []uint32) ([]SliceBytes, error) {
	var all []SliceBytes
	for _, name := range models {
		cfg, err := llama.Preset(name)
		if err != nil {
			return nil, err
		}
		layout := cfg.Layout()
		d, err := distro.New(layout, distro.Config{Block: 64, TopK: 32}, nil)
		if err != nil {
			return nil, err
		}
		for _, c := range compressions {
			s, err := slice.New(layout, slice.Config{Compression: c, Leaf: leafValues}, nil)
			if err != nil {
				return nil, err
			}
			all = append(all, SliceBytes{
				Model: name, Params: layout.Len(), Compression: c, Leaf: leafValues, Ideal: layout.Len() / int(c), Values: sliceValues(s),
				Reveal: s.RevealLen(), State: s.StateSliceLen(), Dense: 4 * layout.Len(), Distro: d.PayloadMax(),
			})
		}
	}
	return all, nil
}

// sliceValues is how many parameters a window draws, at most.
func sliceValues(s *slice.Codec) int {
	return (s.StateSliceLen() - codec.HeaderLen - len(wire.Hash{})) / 4
}
