package gguf

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/exact8"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/tensor"
)

// Every binary16 number but the infinities comes back as itself, and between two neighbours the nearer one is taken, of equally near ones the even.
func TestHalf(t *testing.T) {
	value := func(h uint16) float64 {
		exponent, fraction := int(h>>10), float64(h&0x3ff)
		if exponent == 0 {
			return math.Ldexp(fraction, -24)
		}
		return math.Ldexp(1024+fraction, exponent-25)
	}
	for h := uint16(0); h < 0x7c00; h++ {
		v := value(h)
		if got := half(float32(v)); got != h {
			t.Fatalf("half(%g) = %#x, want %#x", v, got, h)
		}
		if got := half(float32(-v)); v != 0 && got != h|0x8000 {
			t.Fatalf("half(%g) = %#x, want %#x", -v, got, h|0x8000)
		}
		next := math.Ldexp(1, 16)
		if h < 0x7bff {
			next = value(h + 1)
		}
		middle := float32((v + next) / 2)
		even := h + h&1
		if got := half(middle); got != even {
			t.Fatalf("half(%g), between two numbers, = %#x, want the even one %#x", middle, got, even)
		}
		if got := half(math.Nextafter32(middle, 0)); got != h {
			t.Fatalf("half just below %g = %#x, want %#x", middle, got, h)
		}
		if got := half(math.Nextafter32(middle, 1e6)); got != h+1 {
			t.Fatalf("half just above %g = %#x, want %#x", middle, got, h+1)
		}
	}
	if got := half(math.MaxFloat32); got != 0x7c00 {
		t.Errorf("half of the largest number = %#x, want infinity", got)
	}
}

func TestBrain(t *testing.T) {
	for _, c := range []struct {
		v    uint32
		want uint16
	}{{0x3f800000, 0x3f80}, {0x3f808000, 0x3f80}, {0x3f818000, 0x3f82}, {0x3f808001, 0x3f81}, {0xbf80ffff, 0xbf81}} {
		if got := brain(math.Float32frombits(c.v)); got != c.want {
			t.Errorf("brain of bits %#x = %#x, want %#x", c.v, got, c.want)
		}
	}
}

// file is a parsed file: what the format says, written down a second time.
type file struct {
	pairs   map[string]any
	tensors map[string]read
	order   []string
}

type read struct {
	dims []uint64
	typ  uint32
	data []byte // from its offset to the end of the file
}

type parser struct {
	t *testing.T
	b []byte
}

func (p *parser) take(n int) []byte {
	p.t.Helper()
	if n > len(p.b) {
		p.t.Fatalf("%d bytes wanted, %d left", n, len(p.b))
	}
	b := p.b[:n]
	p.b = p.b[n:]
	return b
}

func (p *parser) u32() uint32    { return binary.LittleEndian.Uint32(p.take(4)) }
func (p *parser) u64() uint64    { return binary.LittleEndian.Uint64(p.take(8)) }
func (p *parser) string() string { return string(p.take(int(p.u64()))) }

func (p *parser) value(typ uint32) any {
	switch typ {
	case 4, 5:
		return p.u32()
	case 6:
		return math.Float32frombits(p.u32())
	case 7:
		return p.take(1)[0] == 1
	case 8:
		return p.string()
	case 9:
		of, n := p.u32(), p.u64()
		list := make([]any, n)
		for i := range list {
			list[i] = p.value(of)
		}
		return list
	}
	p.t.Fatalf("value of type %d", typ)
	return nil
}

func parse(t *testing.T, b []byte) file {
	t.Helper()
	p := parser{t, b}
	if string(p.take(4)) != "GGUF" || p.u32() != 3 {
		t.Fatal("not a GGUF file of version 3")
	}
	tensors, pairs := p.u64(), p.u64()
	f := file{pairs: map[string]any{}, tensors: map[string]read{}}
	for range pairs {
		key := p.string()
		if _, twice := f.pairs[key]; twice {
			t.Errorf("key %q is there twice", key)
		}
		f.pairs[key] = p.value(p.u32())
	}
	offsets := map[string]uint64{}
	for range tensors {
		name := p.string()
		r := read{dims: make([]uint64, p.u32())}
		for i := range r.dims {
			r.dims[i] = p.u64()
		}
		r.typ = p.u32()
		offsets[name] = p.u64()
		f.tensors[name] = r
		f.order = append(f.order, name)
	}
	p.take((32 - (len(b)-len(p.b))%32) % 32)
	for name, r := range f.tensors {
		if offsets[name]%32 != 0 {
			t.Errorf("tensor %q lies at %d, no multiple of 32", name, offsets[name])
		}
		r.data = p.b[offsets[name]:]
		f.tensors[name] = r
	}
	return f
}

const tokenizerForTest = `{"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":[["a","b"]]},
	"added_tokens":[{"id":3,"content":"<|end|>","special":true}],
	"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"ByteLevel","use_regex":true}]}}`

func testModel(tied bool) Model {
	c := llama.Config{Vocab: 5, Hidden: 64, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 16, FFN: 96, Context: 32, Theta: 10000, Eps: 1e-5, Tied: tied}
	m := Model{
		Name: "test", Layout: c.Layout(), Tokenizer: []byte(tokenizerForTest),
		Config: checkpoint.Config{Vocab: 5, Hidden: 64, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 16, FFN: 96, Context: 32, Theta: 10000, Eps: 1e-5, Tied: tied},
	}
	m.Params = make([]float32, m.Layout.Len())
	for i := range m.Params {
		m.Params[i] = float32(i%2039)/512 - 2
	}
	return m
}

func write(t *testing.T, m Model, typ Type) file {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, m, typ); err != nil {
		t.Fatal(err)
	}
	return parse(t, b.Bytes())
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	for _, tied := range []bool{false, true} {
		m := testModel(tied)
		f := write(t, m, F32)
		if _, has := f.tensors["output.weight"]; has == tied {
			t.Errorf("tied %v: there is an output matrix: %v", tied, has)
		}
		if len(f.tensors) != len(m.Layout.Tensors()) {
			t.Errorf("%d tensors of %d", len(f.tensors), len(m.Layout.Tensors()))
		}
		for _, from := range m.Layout.Tensors() {
			name, _ := tensorName(from.Name)
			got, ok := f.tensors[name]
			if !ok {
				t.Fatalf("%q is not there as %q", from.Name, name)
			}
			shape := slices.Clone(from.Shape)
			slices.Reverse(shape)
			if fmt.Sprint(shape) != fmt.Sprint(got.dims) {
				t.Errorf("%q has dimensions %v, want %v", name, got.dims, shape)
			}
			for i := range from.Len {
				at := from.Offset + i
				if cols := from.Shape[len(from.Shape)-1]; strings.Contains(name, "attn_q") || strings.Contains(name, "attn_k") {
					// Row 2i+j of a head is Hugging Face's row i of half j.
					row, col := i/cols, i%cols
					head, in := row/16, row%16
					at = from.Offset + (head*16+in%2*8+in/2)*cols + col
				}
				if v := math.Float32frombits(binary.LittleEndian.Uint32(got.data[4*i:])); v != m.Params[at] {
					t.Fatalf("element %d of %q is %g, want %g", i, name, v, m.Params[at])
				}
			}
		}
	}
}

func TestWhatIsSaidOfTheModel(t *testing.T) {
	end := uint32(3)
	m := testModel(false)
	m.Config.EOS = &end
	f := write(t, m, BF16)
	for key, want := range map[string]any{
		"general.architecture": "llama", "general.name": "test", "general.file_type": uint32(32),
		"llama.attention.head_count": uint32(4), "llama.attention.head_count_kv": uint32(2), "llama.rope.dimension_count": uint32(16),
		"llama.rope.freq_base": float32(10000), "llama.attention.layer_norm_rms_epsilon": float32(1e-5),
		"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2", "tokenizer.ggml.eos_token_id": uint32(3),
		"tokenizer.ggml.add_bos_token": false,
	} {
		if got := f.pairs[key]; got != want {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
	if got := fmt.Sprint(f.pairs["tokenizer.ggml.tokens"], f.pairs["tokenizer.ggml.token_type"], f.pairs["tokenizer.ggml.merges"]); got != "[a b ab <|end|> [PAD4]] [1 1 1 3 5] [a b]" {
		t.Errorf("the vocabulary is %s", got)
	}
	if _, has := f.pairs["tokenizer.ggml.bos_token_id"]; has {
		t.Error("there is a first token, which the model does not have")
	}
}

func TestQuantizedBlocks(t *testing.T) {
	m := testModel(false)
	f := write(t, m, Q8_0)
	from := m.Layout.Tensors()[0]
	got := f.tensors["token_embd.weight"]
	if got.typ != 8 || f.tensors["output_norm.weight"].typ != 0 {
		t.Fatalf("the embedding has type %d, the norm %d", got.typ, f.tensors["output_norm.weight"].typ)
	}
	for b := range from.Len / 32 {
		data := got.data[34*b:]
		scale := math.Ldexp(1024+float64(binary.LittleEndian.Uint16(data)&0x3ff), int(binary.LittleEndian.Uint16(data)>>10)-25)
		for i := range 32 {
			v, want := scale*float64(int8(data[2+i])), float64(m.Params[from.Offset+32*b+i])
			if math.Abs(v-want) > 0.57*scale { // half a step, and 127 times the rounding of the scale
				t.Fatalf("element %d is %g for %g, with a scale of %g", 32*b+i, v, want, scale)
			}
		}
	}
}

// The file of a model in 8 bits holds the weights that the model computes with: a product with the
// unit matrix gives them. A block too small for binary16 is as near as ggml's own.
func TestBlocksOfAModelInEightBitsAreThoseItComputesWith(t *testing.T) {
	m := testModel(false)
	m.Config.Numerics = "exact8"
	from, _ := m.Layout.Find("model.layers.1.mlp.down_proj.weight")
	rows, cols := from.Shape[0], from.Shape[1]
	weights := from.Of(m.Params)
	for i := range weights { // the greatest of a block is 2^-18 to 2
		weights[i] = float32(math.Ldexp(1-float64(i*37%61)/31, i/32%20-18))
		if i%32 == 7 {
			weights[i] = float32(math.Ldexp(-1, i/32%20-18))
		}
	}
	copy(weights, make([]float32, 32))
	for i := range 32 {
		weights[32+i] = float32(i-16) * 0x1p-30
	}
	unit, want := make([]float32, cols*cols), make([]float32, rows*cols)
	for i := range cols {
		unit[i*cols+i] = 1
	}
	exact8.Gemm(rows, cols, cols, weights, cols, 1, unit, cols, 1, want, cols, false)
	got := write(t, m, Q8_0).tensors["blk.1.ffn_down.weight"]
	if got.typ != 8 {
		t.Fatalf("the type is %d", got.typ)
	}
	for b := range len(weights) / 32 {
		data := got.data[34*b:]
		bits := binary.LittleEndian.Uint16(data)
		scale := math.Ldexp(float64(bits&0x3ff), -24)
		if bits>>10 > 0 {
			scale = math.Ldexp(1024+float64(bits&0x3ff), int(bits>>10)-25)
		}
		for i := range 32 {
			v, want := scale*float64(int8(data[2+i])), float64(want[32*b+i])
			if v != want && !(b == 1 && math.Abs(v-want) <= 0x1p-26) {
				t.Fatalf("element %d of block %d is %g, want %g", i, b, v, want)
			}
		}
	}
}

func TestRowsThatBlocksDoNotFill(t *testing.T) {
	c := llama.Config{Vocab: 5, Hidden: 48, Layers: 1, Heads: 4, KVHeads: 4, HeadDim: 12, FFN: 96, Context: 32, Theta: 10000, Eps: 1e-5}
	m := testModel(false)
	m.Layout = c.Layout()
	m.Params = make([]float32, m.Layout.Len())
	m.Config = checkpoint.Config{Vocab: 5, Hidden: 48, Layers: 1, Heads: 4, KVHeads: 4, HeadDim: 12, FFN: 96, Context: 32, Theta: 10000, Eps: 1e-5}
	f := write(t, m, Q8_0)
	if got := f.tensors["blk.0.attn_v.weight"].typ; got != 1 {
		t.Errorf("rows of 48 have type %d, want F16", got)
	}
	if got := f.tensors["blk.0.ffn_down.weight"].typ; got != 8 {
		t.Errorf("rows of 96 have type %d, want Q8_0", got)
	}
}

func TestTokenizersThatAreRefused(t *testing.T) {
	for name, s := range map[string]string{
		"no JSON":        `{`,
		"another kind":   `{"model":{"type":"Unigram"}}`,
		"beyond":         `{"model":{"type":"BPE","vocab":{"a":5}}}`,
		"added beyond":   `{"model":{"type":"BPE"},"added_tokens":[{"id":9,"content":"x"}]}`,
		"below zero":     `{"model":{"type":"BPE","vocab":{"a":-1}}}`,
		"strange merge":  `{"model":{"type":"BPE","merges":[7]},"pre_tokenizer":{"type":"ByteLevel"}}`,
		"unknown splits": `{"model":{"type":"BPE","merges":["a b"]},"pre_tokenizer":{"type":"Split","pattern":{"Regex":"x"}}}`,
	} {
		m := testModel(false)
		m.Tokenizer = []byte(s)
		if err := Write(io.Discard, m, F32); err == nil {
			t.Errorf("%s: is written", name)
		}
	}
}

func TestTypesByName(t *testing.T) {
	for _, typ := range []Type{F32, F16, BF16, Q8_0} {
		if got, err := ParseType(typ.String()); err != nil || got != typ {
			t.Errorf("%s reads as %v, %v", typ, got, err)
		}
	}
	if _, err := ParseType("q4_0"); err == nil {
		t.Error("an unknown type is read")
	}
}

// What relatives of Llama have besides: names of tensors, an order of rows, stretched frequencies.
func TestRelativesOfLlama(t *testing.T) {
	for _, c := range []struct {
		change  func(c *llama.Config)
		arch    string
		tensors []string
		context uint32
	}{
		{func(c *llama.Config) { c.Bias = true }, "qwen2", []string{"blk.1.attn_q.bias", "blk.0.attn_v.bias"}, 32},
		{func(c *llama.Config) { c.QKNorm = true }, "qwen3", []string{"blk.1.attn_q_norm.weight", "blk.0.attn_k_norm.weight"}, 32},
		{func(c *llama.Config) { c.Window = 20 }, "llama", nil, 20},
		// llama.cpp refuses a qwen2 with other heads or with frequencies, and a qwen3 with frequencies.
		{func(c *llama.Config) { c.Bias, c.HeadDim = true, 24 }, "llama", []string{"blk.1.attn_q.bias"}, 32},
		{func(c *llama.Config) { c.Bias, c.Rope = true, llama.Rope{Factor: 8, Low: 1, High: 4, Original: 16} }, "llama", []string{"rope_freqs.weight"}, 32},
		{func(c *llama.Config) { c.Rope = llama.Rope{Factor: 8, Low: 1, High: 4, Original: 16} }, "llama", []string{"rope_freqs.weight"}, 32},
	} {
		m := testModel(false)
		l := llama.Config{Vocab: 5, Hidden: 64, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 16, FFN: 96, Context: 32, Theta: 10000, Eps: 1e-5}
		c.change(&l)
		m.Layout = l.Layout()
		m.Config.HeadDim, m.Config.Bias, m.Config.QKNorm, m.Config.Window, m.Config.Rope = l.HeadDim, l.Bias, l.QKNorm, l.Window, checkpoint.Rope(l.Rope)
		m.Params = make([]float32, m.Layout.Len())
		for i := range m.Params {
			m.Params[i] = float32(i%2039)/512 - 2
		}
		f := write(t, m, F32)
		if f.pairs["general.architecture"] != c.arch || f.pairs[c.arch+".context_length"] != c.context {
			t.Errorf("%s: architecture %v, context %v", c.arch, f.pairs["general.architecture"], f.pairs[c.arch+".context_length"])
		}
		for _, name := range c.tensors {
			if _, ok := f.tensors[name]; !ok {
				t.Errorf("%s: no tensor %q", c.arch, name)
			}
		}
		from, _ := m.Layout.Find("model.layers.0.self_attn.q_proj.weight")
		if same := bytes.HasPrefix(f.tensors["blk.0.attn_q.weight"].data, tensor.Bytes(from.Of(m.Params))); same != (c.arch != "llama") {
			t.Errorf("%s: rows of queries are as they were: %v", c.arch, same)
		}
		if from, ok := m.Layout.Find("model.layers.0.self_attn.k_proj.bias"); ok && c.arch == "llama" { // its second half after the first
			x, got := from.Of(m.Params), f.tensors["blk.0.attn_k.bias"].data
			if want := []float32{x[0], x[l.HeadDim/2], x[1], x[l.HeadDim/2+1]}; !bytes.HasPrefix(got, tensor.Bytes(want)) {
				t.Errorf("biases of keys are not in the order of their rows")
			}
		}
		if l.Rope.Factor > 0 {
			for i := range 8 {
				plain := l
				plain.Rope = llama.Rope{}
				want := float64(plain.Frequency(i) / l.Frequency(i))
				got := float64(math.Float32frombits(binary.LittleEndian.Uint32(f.tensors["rope_freqs.weight"].data[4*i:])))
				if math.Abs(got-want) > 1e-5*want {
					t.Errorf("frequency %d is divided by %g, want %g", i, got, want)
				}
			}
		}
	}
}

// A Qwen3 can have its frequencies divided by one factor, and not otherwise.
func TestAQwen3WithScaledAngles(t *testing.T) {
	m := testModel(false)
	l := llama.Config{Vocab: 5, Hidden: 64, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 16, FFN: 96, Context: 32, Theta: 10000, Eps: 1e-5, QKNorm: true}
	m.Layout = l.Layout()
	m.Params = make([]float32, m.Layout.Len())
	m.Config.QKNorm, m.Config.Rope = true, checkpoint.Rope{Factor: 4, Low: 1, High: 2, Original: 1}
	f := write(t, m, F32)
	if _, ok := f.tensors["rope_freqs.weight"]; ok || f.pairs["qwen3.rope.scaling.type"] != "linear" || f.pairs["qwen3.rope.scaling.factor"] != float32(4) {
		t.Errorf("scaled by %v %v, with a tensor: %v", f.pairs["qwen3.rope.scaling.type"], f.pairs["qwen3.rope.scaling.factor"], ok)
	}
	m.Config.Rope = checkpoint.Rope{Factor: 8, Low: 1, High: 4, Original: 16}
	if err := Write(io.Discard, m, F32); err == nil || !strings.Contains(err.Error(), "export to another type") {
		t.Errorf("as in Llama 3: %v", err)
	}
}
