package tensor

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestALayoutPlacesTensorsOneAfterAnother(t *testing.T) {
	l := NewLayout([]Spec{{"b", []int{2, 3}}, {"a", []int{4}}, {"scalar", nil}})
	if l.Len() != 11 {
		t.Fatalf("Len() = %d, want 11", l.Len())
	}
	flat := make([]float32, l.Len())
	for i := range flat {
		flat[i] = float32(i)
	}
	for _, want := range []struct {
		name          string
		offset, count int
	}{{"b", 0, 6}, {"a", 6, 4}, {"scalar", 10, 1}} {
		got, ok := l.Find(want.name)
		if !ok || got.Offset != want.offset || got.Len != want.count {
			t.Errorf("Find(%q) = %+v, %v; want offset %d, length %d", want.name, got, ok, want.offset, want.count)
		}
		if part := got.Of(flat); len(part) != want.count || cap(part) != want.count || part[0] != float32(want.offset) {
			t.Errorf("Of(%q) = %v with capacity %d", want.name, part, cap(part))
		}
	}
	if _, ok := l.Find("c"); ok {
		t.Error(`Find("c") found a tensor that is not there`)
	}
}

func TestALayoutKeepsItsOwnShapes(t *testing.T) {
	shape := []int{2, 3}
	l := NewLayout([]Spec{{"a", shape}})
	shape[0] = 99
	if got := l.Tensors()[0].Shape[0]; got != 2 {
		t.Errorf("shape changed to %d with the caller's slice", got)
	}
}

func TestCheckRefusesWhatIsNoLayout(t *testing.T) {
	big := maxElements/4 + 1
	if math.MaxInt == math.MaxInt32 {
		big = 1 << 28
	}
	for _, c := range []struct {
		specs []Spec
		want  string
	}{
		{[]Spec{{"", []int{1}}}, "name has 0 bytes"},
		{[]Spec{{strings.Repeat("x", maxNameBytes+1), []int{1}}}, "name has 257 bytes"},
		{[]Spec{{"a", []int{1}}, {"b", []int{1}}, {"a", []int{2}}}, `two tensors are named "a"`},
		{[]Spec{{"a", []int{3, 0}}}, "must be positive"},
		{[]Spec{{"a", []int{-1}}}, "must be positive"},
		{[]Spec{{"a", []int{1, 1, 1, 1, 1, 1, 1, 1, 1}}}, "9 dimensions"},
		{[]Spec{{"a", []int{math.MaxInt, math.MaxInt}}}, "more than"},
		{[]Spec{{"a", []int{big, 2}}, {"b", []int{big, 2}}}, "above"},
		{make([]Spec, MaxTensors+1), "65537 tensors"},
	} {
		if err := Check(c.specs); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Check = %v, want an error with %q", err, c.want)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("NewLayout accepted what Check refuses")
		}
	}()
	NewLayout([]Spec{{"a", []int{0}}})
}

func TestBytesAreLittleEndian(t *testing.T) {
	x := []float32{1, -2.5, float32(math.Copysign(0, -1)), math.Float32frombits(0x7fc12345)}
	want := []byte{0, 0, 0x80, 0x3f, 0, 0, 0x20, 0xc0, 0, 0, 0, 0x80, 0x45, 0x23, 0xc1, 0x7f}
	for name, got := range map[string][]byte{"Bytes": Bytes(x), "AppendBytes": AppendBytes([]byte{7}, x)[1:], "encode": encode(nil, x)} {
		if !bytes.Equal(got, want) {
			t.Errorf("%s = % x, want % x", name, got, want)
		}
	}
	if got := Bytes(nil); len(got) != 0 {
		t.Errorf("Bytes(nil) has %d bytes", len(got))
	}
}

// The path of big-endian machines and that of little-endian ones read and write the same bytes.
func TestSetBytesInvertsBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "b")
		b = b[:len(b)/4*4]
		x, y := make([]float32, len(b)/4), make([]float32, len(b)/4)
		SetBytes(x, b)
		decode(y, b)
		if !bytes.Equal(Bytes(x), b) || !bytes.Equal(encode(nil, y), b) {
			t.Fatalf("% x became % x and % x", b, Bytes(x), encode(nil, y))
		}
	})
}

func TestSetBytesPanicsOnAWrongLength(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("SetBytes took 7 bytes for 2 floats")
		}
	}()
	SetBytes(make([]float32, 2), make([]byte, 7))
}
