package study

import (
	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/codec/distro"
	"github.com/entrain-network/entrain/codec/slice"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/wire"
)

// SliceBytes holds sizes of uploads in a window, for a model and a compression.
type SliceBytes struct {
	Model       string
	Params      int
	Compression uint32
	Leaf        uint32
	// one byte for one in Compression parameters
	Ideal  int
	Values int // values in a reveal; small tensors send at least a leaf
	Reveal int // values, proofs and header
	State  int // largest state slice
	Dense  int // whole update in binary32
	// payload of codec distro with default settings
	Distro int
}

// MeasureSliceBytes computes the sizes for presets and compressions, without training.
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

// sliceValues returns the most parameters that a window draws.
func sliceValues(s *slice.Codec) int {
	return (s.StateSliceLen() - codec.HeaderLen - len(wire.Hash{})) / 4
}
