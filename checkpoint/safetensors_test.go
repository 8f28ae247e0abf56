package checkpoint

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// pythonLayout is the tensors of testdata/python.safetensors, in another order than the file's.
func pythonLayout() (tensor.Layout, []float32) {
	layout := tensor.NewLayout([]tensor.Spec{
		{Name: "z.weight", Shape: []int{2, 3}}, {Name: "a.weight", Shape: []int{4}}, {Name: "é<&>", Shape: []int{1, 2, 1}}, {Name: "m.bias", Shape: []int{1}},
	})
	negativeZero := float32(math.Copysign(0, -1))
	return layout, []float32{0, .25, .5, .75, 1, 1.25, negativeZero, -.25, -.5, -.75, 2.5, 2.5, negativeZero}
}

func equalBits(a, b []float32) bool {
	return bytes.Equal(tensor.Bytes(a), tensor.Bytes(b))
}

func readVector(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func anything(Entry) error { return nil }

func TestWriterMakesTheBytesOfThePythonLibrary(t *testing.T) {
	layout, flat := pythonLayout()
	var b bytes.Buffer
	if err := writeSafetensors(&b, layout.Tensors(), flat, F32); err != nil {
		t.Fatal(err)
	}
	if want := readVector(t, "python.safetensors"); !bytes.Equal(b.Bytes(), want) {
		t.Errorf("got  %q\nwant %q", b.Bytes(), want)
	}
}

func TestReaderReadsFilesOfThePythonLibrary(t *testing.T) {
	layout, want := pythonLayout()
	got := make([]float32, layout.Len())
	b := readVector(t, "python.safetensors")
	if err := ReadSafetensors(bytes.NewReader(b), uint64(len(b)), layout, got, anything); err != nil {
		t.Fatal(err)
	}
	if !equalBits(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}

	mixed := tensor.NewLayout([]tensor.Spec{{Name: "full", Shape: []int{2, 3}}, {Name: "brain", Shape: []int{3, 2}}, {Name: "half", Shape: []int{6}}})
	got = make([]float32, mixed.Len())
	b = readVector(t, "mixed.safetensors")
	if err := ReadSafetensors(bytes.NewReader(b), uint64(len(b)), mixed, got, anything); err != nil {
		t.Fatal(err)
	}
	for i, v := range got {
		if v != float32(i%6)/4 {
			t.Errorf("element %d is %v", i, v)
		}
	}
}

// random returns n floats of all sizes.
func random(n int) []float32 {
	source := prng.New(wire.Hash{}, "checkpoint test")
	x := make([]float32, n)
	for i := range x {
		for x[i] == 0 || math.IsInf(float64(x[i]), 0) || x[i] != x[i] {
			x[i] = math.Float32frombits(uint32(source.Uint64()))
		}
	}
	return x
}

func TestPythonLibraryReadsOurFiles(t *testing.T) {
	if err := exec.Command("python3", "-c", "import safetensors").Run(); err != nil {
		t.Skip("python3 with the safetensors package is not installed: pip install safetensors")
	}
	layout := tensor.NewLayout([]tensor.Spec{{Name: "b", Shape: []int{300, 7}}, {Name: "a", Shape: []int{5}}, {Name: "odd", Shape: []int{1, 3}}})
	flat := random(layout.Len())
	for _, d := range []DType{F32, BF16} {
		path := filepath.Join(t.TempDir(), "model.safetensors")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := writeSafetensors(f, layout.Tensors(), flat, d); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, e := range layout.Tensors() {
			data := tensor.AppendBytes(nil, e.Of(flat))
			if d == BF16 {
				data = appendBF16(nil, e.Of(flat))
			}
			shape := strings.ReplaceAll(fmt.Sprint(e.Shape), " ", ", ")
			want = append(want, fmt.Sprintf("%s %s %s %s", e.Name, d, shape, hex.EncodeToString(data)))
		}
		sort.Strings(want)
		out, err := exec.Command("python3", "testdata/read.py", path).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %s", err, out)
		}
		if got := strings.TrimSpace(string(out)); got != strings.Join(want, "\n") {
			t.Errorf("%s: python reads\n%.300s\nwant\n%.300s", d, got, strings.Join(want, "\n"))
		}
	}
}

// file is a safetensors file of a header and so many bytes of data.
func file(header string, data int) []byte {
	for len(header)%8 != 0 {
		header += " "
	}
	b := make([]byte, 8)
	putUint64(b, uint64(len(header)))
	return append(append(b, header...), make([]byte, data)...)
}

func TestHeadersThatAreRefused(t *testing.T) {
	const a = `"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}`
	if _, err := readHeader(bytes.NewReader(file("{"+a+"}", 8)), uint64(len(file("{"+a+"}", 8)))); err != nil {
		t.Fatalf("a good header is refused: %v", err)
	}
	huge := make([]byte, 16)
	putUint64(huge, headerBytesMax+1)
	beyond := make([]byte, 16)
	putUint64(beyond, 16)
	unaligned := file("{"+a+"}", 8)
	putUint64(unaligned, uint64(len(unaligned)-8-8-1))
	for _, c := range []struct {
		name string
		file []byte
		want string
	}{
		{"empty file", nil, "too short"},
		{"header above the limit", huge, "limit"},
		{"header beyond the file", beyond, "does not fit"},
		{"unaligned header", unaligned, "multiple of 8"},
		{"no header", file("", 0), "begin"},
		{"array", file(`["a"]`, 0), "begin"},
		{"not UTF-8", file("{\"\xff\":1}", 0), "UTF-8"},
		{"cut off", file(`{`+a, 8), "EOF"},
		{"two values", file(`{`+a+`} {}`, 8), "continues"},
		{"byte after it", file(`{`+a+"}\x00", 8), "continues"},
		{"repeated tensor", file(`{`+a+`,"a":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}}`, 16), `"a"`},
		{"repeated by an escape", file(`{`+a+`,"\u0061":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}}`, 16), `"a"`},
		{"repeated field", file(`{"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, 8), "repeated"},
		{"unknown field", file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1}}`, 8), "unknown"},
		{"field in other case", file(`{"a":{"DType":"F32","shape":[2],"data_offsets":[0,8]}}`, 8), "unknown"},
		{"missing field", file(`{"a":{"dtype":"F32","shape":[2]}}`, 8), "missing"},
		{"unknown dtype", file(`{"a":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}}`, 8), "I64"},
		{"dtype of another type", file(`{"a":{"dtype":7,"shape":[2],"data_offsets":[0,8]}}`, 8), "want a string"},
		{"negative shape", file(`{"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}}`, 8), "an integer"},
		{"shape of a float", file(`{"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}}`, 8), "an integer"},
		{"shape of text", file(`{"a":{"dtype":"F32","shape":["2"],"data_offsets":[0,8]}}`, 8), "want a number"},
		{"zero dimension", file(`{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}`, 0), "positive"},
		{"nine dimensions", file(`{"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,2],"data_offsets":[0,8]}}`, 8), "too long"},
		{"overflowing shape", file(`{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}}`, 8), "elements"},
		{"overflowing number", file(`{"a":{"dtype":"F32","shape":[18446744073709551616],"data_offsets":[0,8]}}`, 8), "range"},
		{"three offsets", file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8,9]}}`, 8), "too long"},
		{"one offset", file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}}`, 8), "two numbers"},
		{"offsets backwards", file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}}`, 8), "bytes 8 to 0"},
		{"gap at the front", file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}}`, 16), "want 0 to 8"},
		{"gap", file(`{`+a+`,"b":{"dtype":"F32","shape":[1],"data_offsets":[12,16]}}`, 16), "want 8 to 12"},
		{"overlap", file(`{`+a+`,"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, 8), "want 8 to 12"},
		{"size that is not the shape's", file(`{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}`, 8), "want 0 to 12"},
		{"bytes behind the last", file(`{`+a+`}`, 9), "8 of 9"},
		{"bytes missing", file(`{`+a+`}`, 7), "8 of 7"},
		{"metadata of TensorFlow", file(`{"__metadata__":{"format":"tf"},`+a+`}`, 8), `"tf"`},
		{"metadata repeated", file(`{"__metadata__":{},"__metadata__":{},`+a+`}`, 8), "repeated"},
		{"metadata of numbers", file(`{"__metadata__":{"format":1},`+a+`}`, 8), "want a string"},
		{"deep nesting", file(`{"a":`+strings.Repeat("[", 100_000), 8), "want"},
	} {
		_, err := readHeader(bytes.NewReader(c.file), uint64(len(c.file)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", c.name, err, c.want)
		}
	}
}

func TestFilesThatAreNotTheModelAreRefused(t *testing.T) {
	layout := tensor.NewLayout([]tensor.Spec{{Name: "a", Shape: []int{2}}})
	flat := make([]float32, 2)
	good := file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, 8)
	for _, c := range []struct {
		name string
		file []byte
		size int
		want string
	}{
		{"other tensor", file(`{"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, 8), 0, `no tensor "b"`},
		{"other shape", file(`{"a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}}`, 8), 0, "[1 2]"},
		{"shorter than said", good[:len(good)-3], 3, "EOF"},
		{"longer than said", append(slices.Clone(good), 0), -1, "longer"},
	} {
		err := ReadSafetensors(bytes.NewReader(c.file), uint64(len(c.file)+c.size), layout, flat, anything)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", c.name, err, c.want)
		}
	}
}

func FuzzReadHeader(f *testing.F) {
	for _, name := range []string{"python.safetensors", "mixed.safetensors"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add(file(`{"__metadata__":{"format":"pt"},"a":{"dtype":"BF16","shape":[],"data_offsets":[0,2]}}`, 2))
	f.Fuzz(func(t *testing.T, b []byte) {
		entries, err := readHeader(bytes.NewReader(b), uint64(len(b)))
		if err != nil {
			return
		}
		// What is accepted is a layout, and a header written from it is read back the same.
		specs := make([]tensor.Spec, len(entries))
		var data uint64
		for i, e := range entries {
			specs[i] = tensor.Spec{Name: e.Name, Shape: e.Shape}
			data = e.End
		}
		layout := tensor.NewLayout(specs)
		if err := ReadSafetensors(bytes.NewReader(b), uint64(len(b)), layout, make([]float32, layout.Len()), anything); err != nil {
			t.Fatalf("%q: accepted, but not read: %v", b, err)
		}
		header := appendHeader(nil, entries)
		again, err := readHeader(bytes.NewReader(header), uint64(len(header))+data)
		if err != nil || fmt.Sprint(again) != fmt.Sprint(entries) {
			t.Fatalf("%v is read back as %v, %v", entries, again, err)
		}
	})
}

func TestEveryHalfIsItsValue(t *testing.T) {
	for h := range 1 << 16 {
		exponent, fraction := h>>10&31, float64(h&0x3ff)
		want := math.Ldexp(1+fraction/1024, exponent-15)
		switch {
		case exponent == 0:
			want = math.Ldexp(fraction/1024, -14)
		case exponent == 31 && fraction == 0:
			want = math.Inf(1)
		case exponent == 31:
			want = math.NaN()
		}
		if h>>15 == 1 {
			want = -want
		}
		got := float64(halfToFloat(uint16(h)))
		if got != want && !(got != got && want != want) || math.Signbit(got) != (h>>15 == 1) {
			t.Fatalf("%#04x is %v, want %v", h, got, want)
		}
	}
}

func TestBF16IsTheNearest(t *testing.T) {
	widen := func(b uint16) float64 {
		var f [1]float32
		BF16.decode(f[:], []byte{byte(b), byte(b >> 8)})
		return float64(f[0])
	}
	for _, v := range random(100_000) {
		b := floatToBF16(v)
		got := widen(b)
		if math.IsInf(got, 0) {
			if math.Abs(float64(v)) < 3.3961775e38 { // halfway between the largest bfloat16 and 2^128
				t.Fatalf("%v overflows", v)
			}
			continue
		}
		// No neighbour is nearer, and of two equally near ones the even is taken.
		for _, n := range []uint16{b - 1, b + 1} {
			other := math.Abs(widen(n) - float64(v))
			if own := math.Abs(got - float64(v)); other < own || other == own && b&1 == 1 {
				t.Fatalf("%v became %v, %v is nearer", v, got, widen(n))
			}
		}
	}
	for bits, want := range map[uint32]uint16{
		0x3f808000: 0x3f80, 0x3f818000: 0x3f82, 0x3f808001: 0x3f81, 0x80000000: 0x8000, 0x7f7fffff: 0x7f80, 0x7f800000: 0x7f80, 0xff800000: 0xff80, 0x7f800001: 0x7fc0,
	} {
		if got := floatToBF16(math.Float32frombits(bits)); got != want {
			t.Errorf("%#08x became %#04x, want %#04x", bits, got, want)
		}
	}
}
