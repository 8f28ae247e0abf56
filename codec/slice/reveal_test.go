package slice

import (
	"bytes"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/tensor"
)

// The root is what package merkle makes of the definition, and each proof is one that merkle.Check
// accepts.
func TestRootIsThatOfTheDefinition(t *testing.T) {
	c := mixedCodec(t)
	sealed := anySealed(c, 1)
	values := sealed[codec.HeaderLen:]
	var groups []merkle.Hash
	for _, v := range tensor.NewLayout(mixed).Tensors() {
		var leaves []merkle.Hash
		for at := v.Offset; at < v.Offset+v.Len; at += 16 {
			leaves = append(leaves, merkle.Leaf(values[at:min(at+16, v.Offset+v.Len)]))
		}
		n := (len(leaves) + 4) / 5
		for g := range n {
			size := len(leaves) / (n - g)
			if len(leaves)%(n-g) != 0 {
				size++
			}
			groups = append(groups, merkle.Root(leaves[:size]))
			leaves = leaves[size:]
		}
	}
	if got, want := c.Root(sealed), merkle.Root(groups); got != want {
		t.Errorf("root %v, want %v", got, want)
	}
}

func TestRangesTakeOneLeafOfEachGroup(t *testing.T) {
	c := mixedCodec(t)
	tensors := tensor.NewLayout(mixed).Tensors()
	counts := map[int]int{} // draws by first position
	const draws = 20000
	for i := range uint64(draws) {
		ranges := c.Ranges(seedOfNumber(i))
		for k, r := range ranges {
			counts[r.From]++
			v := tensors[r.Tensor]
			if r.From < v.Offset || r.To > v.Offset+v.Len || r.Len() < 1 || k > 0 && r.From < ranges[k-1].To {
				t.Fatalf("range %+v of tensor %+v after %+v", r, v, ranges[max(0, k-1)])
			}
		}
		for ti, v := range tensors {
			got := 0
			for _, r := range ranges {
				if r.Tensor == ti {
					got++
				}
			}
			if leaves := (v.Len + 15) / 16; 5*got < leaves {
				t.Fatalf("%d leaves of %d of tensor %s, fewer than one in 5", got, leaves, v.Name)
			}
		}
	}
	for _, g := range c.plan.groups {
		for i := range g.leaves {
			want := float64(draws) / float64(g.leaves)
			if got := float64(counts[c.plan.leafRange(&g, i).From]); math.Abs(got-want) > 5*math.Sqrt(want) {
				t.Errorf("leaf %d of group %+v was drawn %v times, want about %v", i, g, got, want)
			}
		}
	}
}

// Two groups' draws are independent, as are two windows': a member who knows what was drawn knows
// nothing of what will be.
func TestDrawsAreIndependent(t *testing.T) {
	c := newCodec(t, []tensor.Spec{{Name: "w", Shape: []int{4 * 4 * 16}}}, Config{Compression: 4, Leaf: 16}, nil)
	var groups, windows [4][4]int
	last := 0
	const draws = 16000
	for i := range uint64(draws) {
		r := c.Ranges(seedOfNumber(i))
		a, b := r[0].From/16, r[1].From/16-4
		groups[a][b]++
		windows[last][a]++
		last = a
	}
	for i := range 4 {
		for k := range 4 {
			for _, got := range []int{groups[i][k], windows[i][k]} {
				if want := draws / 16.0; math.Abs(float64(got)-want) > 5*math.Sqrt(want) {
					t.Errorf("leaf %d after leaf %d: %d times, want about %v", k, i, got, want)
				}
			}
		}
	}
}

// anyShape draws a layout and how it is cut.
func anyShape(t *rapid.T) ([]tensor.Spec, Config) {
	var specs []tensor.Spec
	for i := range rapid.IntRange(1, 4).Draw(t, "tensors") {
		specs = append(specs, tensor.Spec{Name: string(rune('a' + i)), Shape: []int{rapid.IntRange(1, 3000).Draw(t, "size")}})
	}
	return specs, Config{
		Compression: rapid.Uint32Range(1, 40).Draw(t, "compression"), Leaf: rapid.Uint32Range(LeafMin, 70).Draw(t, "leaf"), Decay: 1,
	}
}

func TestRevealsOpenToTheRoot(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		specs, cfg := anyShape(r)
		c, err := New(tensor.NewLayout(specs), cfg, nil)
		if err != nil {
			r.Fatal(err)
		}
		seed, sealed := seedOfNumber(rapid.Uint64().Draw(r, "seed")), anySealed(c, rapid.Uint64().Draw(r, "values"))
		reveal := c.Reveal([]byte("before"), sealed, seed)
		if string(reveal[:6]) != "before" || len(reveal) != 6+c.RevealLen() || c.PayloadMax() != c.RevealLen() {
			r.Fatalf("reveal of %d bytes, want %d, PayloadMax %d", len(reveal)-6, c.RevealLen(), c.PayloadMax())
		}
		if least, most := uint64(max(c.RevealLen(), c.StateSliceLen())), cfg.ObjectMax(tensor.NewLayout(specs)); most < least || most > 20*least {
			r.Fatalf("objects of up to %d bytes, said to be at most %d", least, most)
		}
		reveal = reveal[6:]
		if err := c.Check(reveal); err != nil {
			r.Fatal(err)
		}
		root, from, err := c.Open(reveal)
		if err != nil || root != c.Root(sealed) || from != seed {
			r.Fatalf("opens to %v of seed %v, %v; want %v of %v", root, from, err, c.Root(sealed), seed)
		}
		values := c.Values(nil, reveal)
		for _, v := range c.Ranges(seed) {
			for _, b := range sealed[codec.HeaderLen+v.From : codec.HeaderLen+v.To] {
				if values[0] != float32(int8(b))*unit {
					r.Fatalf("value %v for byte %d", values[0], int8(b))
				}
				values = values[1:]
			}
		}
		if len(values) != 0 {
			r.Fatalf("%d values too many", len(values))
		}
	})
}

// Who has kept only what another seed draws cannot answer.
func TestRevealsOfAnotherSeedDoNotPass(t *testing.T) {
	c := mixedCodec(t)
	sealed := anySealed(c, 4)
	mine := bytes.Clone(sealed)
	clear(mine[codec.HeaderLen:])
	for _, r := range c.Ranges(seedOfNumber(1)) {
		copy(mine[codec.HeaderLen+r.From:codec.HeaderLen+r.To], sealed[codec.HeaderLen+r.From:])
	}
	root, seed, err := c.Open(c.Reveal(nil, mine, seedOfNumber(2)))
	if err != nil || seed != seedOfNumber(2) || root == c.Root(sealed) {
		t.Errorf("root %v, seed %v, error %v", root, seed, err)
	}
	forged := c.Reveal(nil, sealed, seedOfNumber(1))
	seed = seedOfNumber(2)
	copy(forged[codec.HeaderLen:], seed[:])
	if root, _, err := c.Open(forged); err == nil && root == c.Root(sealed) {
		t.Error("the slice of one seed passes for that of another")
	}
}

func FuzzOpen(f *testing.F) {
	c := mixedCodec(f)
	seed := seedOfNumber(1)
	f.Add(c.Reveal(nil, anySealed(c, 1), seed))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, reveal []byte) {
		root, seed, err := c.Open(reveal)
		if (err == nil) != (c.Check(reveal) == nil) {
			t.Fatalf("Open says %v, Check %v", err, c.Check(reveal))
		}
		if err != nil {
			return
		}
		// What is well formed is what Reveal writes: put its values and proofs down again.
		again := append(append([]byte(nil), reveal[:codec.HeaderLen]...), seed[:]...)
		again = append(again, reveal[len(again):]...)
		if r, _, err := c.Open(again); err != nil || r != root {
			t.Fatalf("opened again: %v, %v; want %v", r, err, root)
		}
		if n := len(c.Values(nil, reveal)); n != c.sliceLen(seed) {
			t.Fatalf("%d values of a slice of %d", n, c.sliceLen(seed))
		}
		params := normals(1, c.n)
		if err := c.Apply(params, [][]byte{reveal}, .01); err != nil || exact.Finite(params) >= 0 {
			t.Fatalf("applied: %v, finite up to %d", err, exact.Finite(params))
		}
	})
}
