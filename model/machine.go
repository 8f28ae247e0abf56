package model

import (
	"errors"
	"fmt"

	"github.com/entrain-network/entrain/engine/vulkan"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
)

// A Machine says what computes a model's logits. It changes the speed, never a bit.
type Machine struct {
	Pool   *exact.Pool
	Device string            // as --device names it: instead of the pool, until its first failure
	Tell   func(text string) // told which device is used, or why not; may be nil on a pool alone
	Texts  int               // that the device reads at the same time; 0: one
	Rows   int               // tokens that it reads at once; 0: a block of its products
}

// deviceRows is the number of rows in a block of a device's products: fewer take as long.
const deviceRows = 64

// NewDecoder returns a decoder of a model. The caller calls free at the end.
func (m Machine) NewDecoder(cfg llama.Config, params []float32) (d *llama.Decoder, free func(), err error) {
	devices, err := vulkan.Choose(m.Device, vulkan.Cache(), cfg.Numerics, m.Tell)
	if err != nil {
		return nil, nil, err
	}
	if len(devices) > 0 {
		if d, free, err = m.on(devices, cfg, params); err == nil {
			m.Tell(fmt.Sprintf("computing on %v", devices))
			return d, free, nil
		}
		devices.Close()
		if m.Device != vulkan.Auto {
			return nil, nil, fmt.Errorf("--device %s: %w", m.Device, err)
		}
		m.Tell(fmt.Sprintf("%v is not used: %v", devices, err))
	}
	d, err = llama.NewDecoder(cfg, params, m.Pool, 1)
	return d, func() {}, err
}

// on returns a decoder on a device.
func (m Machine) on(devices vulkan.Devices, cfg llama.Config, params []float32) (*llama.Decoder, func(), error) {
	if len(devices) > 1 {
		return nil, nil, errors.New("one device reads texts, not several")
	}
	rows, texts := m.Rows, m.Texts
	if rows == 0 {
		rows = deviceRows
	}
	w, err := devices[0].NewWriter(cfg, params, rows, max(texts, 1))
	if err != nil {
		return nil, nil, err
	}
	d, err := llama.NewDecoderOn(cfg, params, m.Pool, w, func(err error) {
		m.Tell(fmt.Sprintf("%v is left out until the next start, and the processors read again what it has read: %v", devices, err))
	})
	free := func() {
		w.Close()
		devices.Close()
	}
	if err != nil {
		w.Close()
		return nil, nil, err
	}
	return d, free, nil
}
