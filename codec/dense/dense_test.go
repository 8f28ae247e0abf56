package dense

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/tensor"
)

func layoutOf(n int) tensor.Layout {
	return tensor.NewLayout([]tensor.Spec{{Name: "w", Shape: []int{n}}})
}

func newCodec(t testing.TB, n int, cfg Config) *Codec {
	t.Helper()
	c, err := New(layoutOf(n), cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func encode(t testing.TB, c *Codec, grad ...float32) []byte {
	t.Helper()
	p, err := c.Encode(nil, nil, grad, .1)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Check(p); err != nil {
		t.Fatal(err)
	}
	return p
}

// The golden bytes of version 1: a change of them is a change of the format.
func TestPayload(t *testing.T) {
	c := newCodec(t, 4, Config{})
	const want = "65444e31" + "76378f1a7daa61db" + "0000803f" + "000020c0" + "00000000" + "00000000"
	if got := hex.EncodeToString(encode(t, c, 1, -2.5, 0, float32(math.Copysign(0, -1)))); got != want {
		t.Errorf("payload %s, want %s", got, want)
	}
	if c.StateLen() != 0 || c.PayloadMax() != 28 {
		t.Errorf("state of %d, payload of %d, want 0 and 28", c.StateLen(), c.PayloadMax())
	}
}

func TestApplyStepsByTheMean(t *testing.T) {
	c := newCodec(t, 3, Config{WeightDecay: .5})
	payloads := [][]byte{encode(t, c, 1, -2, 0), encode(t, c, 3, 0, 0)}
	params := []float32{8, 8, 8}
	if err := c.Apply(params, payloads, .25); err != nil {
		t.Fatal(err)
	}
	if want := []float32{7 - .5, 7 + .25, 7}; !slices.Equal(params, want) {
		t.Errorf("parameters %v, want %v", params, want)
	}
	if err := c.Apply(params, nil, .25); err != nil || params[2] != 7 {
		t.Errorf("without payloads: parameters %v, error %v", params, err)
	}
}

func TestEncodeClips(t *testing.T) {
	c := newCodec(t, 2, Config{ClipNorm: 1})
	params := []float32{0, 0}
	if err := c.Apply(params, [][]byte{encode(t, c, 30, -40)}, 1); err != nil {
		t.Fatal(err)
	}
	if math.Abs(float64(params[0])+.6) > 1e-7 || math.Abs(float64(params[1])-.8) > 1e-7 {
		t.Errorf("a step along a gradient clipped to norm 1 is %v, want -0.6, 0.8", params)
	}
}

func TestErrorsChangeNothing(t *testing.T) {
	c := newCodec(t, 2, Config{})
	good := encode(t, c, 1, 2)
	with := func(at int, b ...byte) []byte {
		p := bytes.Clone(good)
		copy(p[at:], b)
		return p
	}
	for _, v := range []struct {
		payload []byte
		want    string
	}{
		{good[:19], "payload has 19 bytes, want 20 for this layout"},
		{with(0, 'x'), `payload begins with "xDN1", not "eDN1"`},
		{with(5, good[5]+1), "payload is for layout "},
		{with(12, 0, 0, 0x80, 0x7f), "element 0 is +Inf"},
		{with(16, 1, 0, 0x80, 0xff), "element 1 is NaN"},
		{with(16, 0, 0, 0, 0x80), "element 1 is -0"},
		{with(16, 1, 0, 0x80, 0x5d), "element 1 is 1.15292"},
	} {
		params := []float32{1, 2}
		err := c.Apply(params, [][]byte{good, v.payload}, .1)
		if err == nil || !strings.HasPrefix(err.Error(), "dense: payload 1 of 2: "+v.want) || params[0] != 1 || params[1] != 2 {
			t.Errorf("error %v and parameters %v, want %s", err, params, v.want)
		}
		if err := c.Check(v.payload); err == nil || !strings.HasPrefix(err.Error(), "dense: "+v.want) {
			t.Errorf("Check says %v, want %s", err, v.want)
		}
	}
	if err := c.Check(with(16, 0, 0, 0x80, 0x5d)); err != nil {
		t.Errorf("the largest element: %v", err)
	}
	for _, cfg := range []Config{{WeightDecay: 2}, {ClipNorm: -1}} {
		if _, err := New(layoutOf(1), cfg, nil); err == nil {
			t.Errorf("%+v is accepted", cfg)
		}
	}
}

func FuzzDecode(f *testing.F) {
	c := newCodec(f, 3, Config{})
	f.Add(encode(f, c, 1, -2.5, 0))
	f.Add(encode(f, c, 1e-45, 1<<60, 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= codec.HeaderLen {
			copy(b, c.header[:])
		}
		if c.Check(b) != nil {
			return
		}
		params := make([]float32, 3)
		if err := c.Apply(params, [][]byte{b}, 1); err != nil {
			t.Fatal(err)
		}
		again := bytes.Clone(c.header[:])
		for _, x := range params { // the gradient with its sign changed; a step never leaves -0
			again = tensor.AppendBytes(again, []float32{0 - x})
		}
		if !bytes.Equal(again, b) {
			t.Errorf("%x decodes to %v, which is %x", b, params, again)
		}
	})
}

func ExampleCodec() {
	layout := tensor.NewLayout([]tensor.Spec{{Name: "w", Shape: []int{2}}})
	c, err := New(layout, Config{}, exact.NewPool(1))
	if err != nil {
		panic(err)
	}
	params := []float32{1, 1}
	var payloads [][]byte
	for _, grad := range [][]float32{{1, 0}, {3, -2}} { // of two members
		p, err := c.Encode(nil, nil, grad, 0.5)
		if err != nil {
			panic(err)
		}
		payloads = append(payloads, p)
	}
	if err := c.Apply(params, payloads, 0.5); err != nil {
		panic(err)
	}
	fmt.Println(params)
	// Output: [0 1.5]
}
