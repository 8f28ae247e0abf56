package distro

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/entrain-network/entrain/codec/internal/subset"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/tensor"
)

// ballot is what one payload says of one block: +1, -1 or 0 for each coefficient.
type ballot []int

// payloadOf writes payloads of one block each.
func payloadOf(c *Codec, b ballot) []byte {
	var v subset.Signed
	for p, s := range b {
		if s == 0 {
			continue
		}
		v.Positions[v.N] = uint16(p)
		if s < 0 {
			v.Negative |= 1 << v.N
		}
		v.N++
	}
	code := c.table()[0].shape.Code(&v)
	return c.appendPayload(nil, code[:c.words])
}

// What VotesMax makes of a set of payloads is what a codec without it makes of payloads that say
// just that.
func TestVotesAreCountedAsIfOthersHadBeenCast(t *testing.T) {
	const side, n = 8, 64
	layout := tensor.NewLayout([]tensor.Spec{{Name: "w", Shape: []int{side, side}}})
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{Block: side, TopK: n, WeightDecay: .1, VotesMax: rapid.IntRange(0, 5).Draw(t, "max")}
		kernels := exact.Kernels()
		pool := exact.NewPoolOf(1, kernels[rapid.IntRange(0, len(kernels)-1).Draw(t, "kernel")])
		defer pool.Close()
		robust, plain := mustNew(t, layout, cfg, pool), mustNew(t, layout, Config{Block: side, TopK: n, WeightDecay: .1}, pool)

		sums := make(ballot, n)
		var cast [][]byte
		for m := range rapid.IntRange(1, 9).Draw(t, "members") {
			// Few coefficients at some times, so that both ways of transforming back are taken.
			own := make(ballot, n)
			for range rapid.IntRange(0, 6).Draw(t, fmt.Sprint("votes of ", m)) {
				own[rapid.IntRange(0, 9).Draw(t, "at")] = 2*rapid.IntRange(0, 1).Draw(t, "up") - 1
			}
			for p, s := range own {
				sums[p] += s
			}
			cast = append(cast, payloadOf(robust, own))
		}
		var instead [][]byte
		for turn := range 9 {
			as := make(ballot, n)
			for p, s := range sums {
				size := max(s, -s)
				if cfg.VotesMax > 0 {
					size = min(size, cfg.VotesMax)
				}
				if turn < size {
					as[p] = s / max(s, -s)
				}
			}
			instead = append(instead, payloadOf(plain, as))
		}
		got, want := splitmix(5, n), splitmix(5, n)
		if err := robust.Apply(got, cast, .01); err != nil {
			t.Fatal(err)
		}
		if err := plain.Apply(want, instead, .01); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%+v: the votes %v are not counted as they should be", cfg, sums)
		}
	})
}

func mustNew(t *rapid.T, layout tensor.Layout, cfg Config, pool *exact.Pool) *Codec {
	c, err := New(layout, cfg, pool)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Payloads say the same with any rule of counting: a run's rule may be told by its specification
// alone.
func TestVotesDoNotChangePayloads(t *testing.T) {
	plain := newCodec(t, Config{Block: 8, TopK: 3, Decay: .9}, nil, mixed...)
	robust := newCodec(t, Config{Block: 8, TopK: 3, Decay: .9, VotesMax: 5}, nil, mixed...)
	grad := splitmix(3, plain.n)
	a, err := plain.Encode(nil, make([]float32, plain.n), grad, .1)
	if err != nil {
		t.Fatal(err)
	}
	b, err := robust.Encode(nil, make([]float32, plain.n), grad, .1)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(a, b) {
		t.Error("the payload of one gradient depends on how votes are counted")
	}
}
