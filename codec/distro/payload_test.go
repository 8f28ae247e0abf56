package distro

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/codec/internal/subset"
	"github.com/entrain-network/entrain/codec/internal/vec"
	"github.com/entrain-network/entrain/tensor"
)

// mixed has blocks of many shapes, whose codes lie at odd bits.
var mixed = []tensor.Spec{
	{Name: "embed", Shape: []int{29, 18}}, {Name: "norm", Shape: []int{18}}, {Name: "experts", Shape: []int{2, 18, 7}}, {Name: "scale"},
}

func mixedCodec(t testing.TB) *Codec {
	t.Helper()
	c, err := New(tensor.NewLayout(mixed), Config{Block: 8, TopK: 3, Decay: .9, WeightDecay: .1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// anyPayload is a payload of random votes, some of fewer coefficients than allowed.
func anyPayload(c *Codec, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 0))
	codes := make([]uint64, len(c.table())*c.words)
	for i, b := range c.table() {
		s := b.shape
		v := subset.Signed{N: max(0, s.K-r.IntN(3)*r.IntN(2))}
		for j, p := range r.Perm(s.h * s.w)[:v.N] {
			k := j
			for ; k > 0 && v.Positions[k-1] > uint16(p); k-- {
				v.Positions[k] = v.Positions[k-1]
			}
			v.Positions[k] = uint16(p)
		}
		v.Negative = r.Uint64() & (1<<uint(v.N) - 1)
		code := s.Code(&v)
		copy(codes[i*c.words:(i+1)*c.words], code[:])
	}
	return c.appendPayload(nil, codes)
}

// decoded returns what a payload says of a block.
func decoded(payload []byte, b *block) *subset.Signed {
	var r [1]subset.Reading
	b.shape.Read(&r[0], payload[codec.HeaderLen:], b.bit)
	b.shape.Decode(new(vec.Kernel), r[:])
	return &r[0].Set
}

func checkVotes(t testing.TB, v *subset.Signed, n, k int) {
	t.Helper()
	if v.N > k {
		t.Fatalf("%d positions, more than %d", v.N, k)
	}
	for i, p := range v.Positions[:v.N] {
		if int(p) >= n || i > 0 && p <= v.Positions[i-1] {
			t.Fatalf("positions %v are not ascending and below %d", v.Positions[:v.N], n)
		}
	}
}

// recode decodes a payload and encodes what it says.
func recode(t testing.TB, c *Codec, payload []byte) []byte {
	t.Helper()
	codes := make([]uint64, len(c.table())*c.words)
	for i, b := range c.table() {
		v := decoded(payload, &b)
		checkVotes(t, v, b.shape.h*b.shape.w, b.shape.K)
		code := b.shape.Code(v)
		copy(codes[i*c.words:(i+1)*c.words], code[:])
	}
	return c.appendPayload(nil, codes)
}

func TestCheckRefuses(t *testing.T) {
	c := mixedCodec(t)
	valid := anyPayload(c, 1)
	if err := c.Check(valid); err != nil {
		t.Fatal(err)
	}
	other, err := New(tensor.NewLayout(mixed), Config{Block: 8, TopK: 3, Decay: .5}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Check(valid); err != nil {
		t.Errorf("settings which do not change the meaning of payloads change their header: %v", err)
	}
	change := func(f func(p []byte) []byte) []byte { return f(bytes.Clone(valid)) }
	last := &c.table()[len(c.table())-1]
	for _, v := range []struct {
		what    string
		payload []byte
		want    string
	}{
		{"the first code out of range", change(func(p []byte) []byte {
			setCode(p, c, 0, c.table()[0].shape.Total)
			return p
		}), "the code of block 0 is out of range"},
		{"the highest number", change(func(p []byte) []byte {
			setCode(p, c, len(c.table())-1, subset.Number{1<<uint(last.shape.Bits) - 1})
			return p
		}), "the code of block 21 is out of range"},
		{"a bit after the end", change(func(p []byte) []byte { p[len(p)-1] |= 0x80; return p }), "bits are not zero"},
	} {
		if err := c.Check(v.payload); err == nil || !strings.Contains(err.Error(), v.want) {
			t.Errorf("%s: error %v, want %s", v.what, err, v.want)
		}
	}
	highest := change(func(p []byte) []byte {
		code := c.table()[0].shape.Total
		code[0]-- // a total is odd
		setCode(p, c, 0, code)
		return p
	})
	if err := c.Check(highest); err != nil {
		t.Errorf("the highest code that stands for something: %v", err)
	}
}

// setCode replaces the code of a block.
func setCode(payload []byte, c *Codec, block int, code subset.Number) {
	b := &c.table()[block]
	for i := range b.shape.Bits {
		at, bit := codec.HeaderLen+(b.bit+i)/8, uint(b.bit+i)%8
		payload[at] = payload[at]&^(1<<bit) | byte(code[i/64]>>uint(i%64)&1)<<bit
	}
}

func TestPayloadsOfOtherSettingsAreRefused(t *testing.T) {
	one := mixedCodec(t)
	for _, cfg := range []Config{{Block: 9, TopK: 3}, {Block: 8, TopK: 4}} {
		c, err := New(tensor.NewLayout(mixed), cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.header == one.header {
			t.Errorf("settings %+v have the header of chunk 8 and top-k 3", cfg)
		}
	}
}

func FuzzDecode(f *testing.F) {
	c := mixedCodec(f)
	f.Add(anyPayload(c, 1))
	f.Add(anyPayload(c, 2))
	f.Add(make([]byte, c.PayloadMax()))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= codec.HeaderLen {
			copy(b, c.header[:]) // what is behind it is what is to be fuzzed; TestCheckRefuses covers the header
		}
		params := make([]float32, c.n)
		err := c.Apply(params, [][]byte{b}, .5)
		if (err == nil) != (c.Check(b) == nil) {
			t.Fatalf("Check says %v, Apply %v", c.Check(b), err)
		}
		if err != nil {
			for i, x := range params {
				if x != 0 {
					t.Fatalf("Apply failed (%v) and changed parameter %d", err, i)
				}
			}
			return
		}
		if again := recode(t, c, b); !bytes.Equal(again, b) {
			t.Errorf("%x decodes but re-encodes as %x", b, again)
		}
	})
}
