package bench

import (
	"context"
	"fmt"

	"github.com/entrain-network/entrain/codec/distro"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/merkle/parallel"
	"github.com/entrain-network/entrain/tensor"
)

// Exchange is the speed of what surrounds training, in bytes of binary32 parameters a second.
type Exchange struct {
	Model        string `json:"model"` // a preset, whose layout is compressed
	Params       int    `json:"params"`
	Payloads     int    `json:"payloads"` // applied at once
	PayloadBytes int    `json:"payload_bytes"`
	Encode       Pair   `json:"encode_bytes_per_second"`
	Check        Pair   `json:"check_bytes_per_second"` // strict decoding of one payload
	// of all payloads: decoding, adding up, the step
	Apply Pair `json:"apply_bytes_per_second"`
	Hash  Pair `json:"hash_bytes_per_second"` // of the parameters
}

// exchangePayloads is the number of payloads that are applied.
const exchangePayloads = 32

// exchangeConfig is the codec's: blocks of 64 by 64, of each the 8 largest coefficients.
var exchangeConfig = distro.Config{Block: 64, TopK: 8, Decay: 0.999, WeightDecay: 0.1, ClipNorm: 1}

const exchangeRate = 1e-4

// measureExchange measures the codec and the hash. Gradients are random, half of each being what
// all members have in common.
func (b *bench) measureExchange(ctx context.Context, r *Report) error {
	e := Exchange{Model: b.exchange, Payloads: exchangePayloads}
	b.progress("exchange of " + e.Model)
	cfg, err := llama.Preset(e.Model)
	if err != nil {
		return err
	}
	layout := cfg.Layout()
	e.Params = layout.Len()
	codecs := map[*exact.Pool]*distro.Codec{}
	for _, pool := range []*exact.Pool{b.one, b.all} {
		if codecs[pool], err = distro.New(layout, exchangeConfig, pool); err != nil {
			return err
		}
	}
	payloads, grad, err := memberPayloads(ctx, codecs[b.all], e.Params)
	if err != nil {
		return err
	}
	e.PayloadBytes = len(payloads[0])
	params, state, size := random("params", e.Params), make([]float32, e.Params), float64(4*e.Params)
	encode := b.both(size, func(p *exact.Pool) func() error {
		var payload []byte
		return func() (err error) {
			payload, err = codecs[p].Encode(payload[:0], state, grad, exchangeRate)
			return err
		}
	})
	check := b.both(size, func(p *exact.Pool) func() error {
		return func() error { return codecs[p].Check(payloads[0]) }
	})
	apply := b.both(size, func(p *exact.Pool) func() error {
		return func() error { return codecs[p].Apply(params, payloads, exchangeRate) }
	})
	hash := b.hash(params)
	if err := b.alternate(ctx, encode, check, apply, hash); err != nil {
		return err
	}
	e.Encode, e.Check, e.Apply, e.Hash = encode.rate(), check.rate(), apply.rate(), hash.rate()
	r.Exchange = e
	return nil
}

// memberPayloads encodes each member's first gradient, and returns the last of these gradients too.
func memberPayloads(ctx context.Context, c *distro.Codec, n int) (payloads [][]byte, grad []float32, err error) {
	common, state := random("common", n), make([]float32, n)
	for m := range exchangePayloads {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		grad = random(fmt.Sprint("member ", m), n)
		for i := range grad {
			grad[i] += common[i]
		}
		clear(state)
		payload, err := c.Encode(nil, state, grad, exchangeRate)
		if err != nil {
			return nil, nil, err
		}
		payloads = append(payloads, payload)
	}
	return payloads, grad, nil
}

// hash returns the trials of the parameters' hash, as a participant computes it.
func (b *bench) hash(params []float32) pair {
	return b.both(float64(4*len(params)), func(p *exact.Pool) func() error {
		return func() error {
			merkle.Root(parallel.Leaves(p, tensor.Bytes(params)))
			return nil
		}
	})
}
