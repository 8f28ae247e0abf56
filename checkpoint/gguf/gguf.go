// Package gguf writes a model in the format of llama.cpp, version 3, for use with llama.cpp and
// compatible programs.
//
// The format is defined in ggml-org/ggml, docs/gguf.md. All numbers are little-endian; a string is
// its length in a U64 followed by its bytes:
//
//	"GGUF"  U32 3  U64 tensors  U64 pairs
//	pairs:   string key, U32 type, value
//	tensors: string name, U32 dimensions, U64 each (the last dimension first), U32 type,
//	         U64 offset of its data
//	zeros to a multiple of 32, where offsets start; the tensors' data, each at a multiple of 32
//
// llama.cpp differs from Hugging Face's layout in three ways. It has its own names of tensors. In a
// Llama or Mistral it orders the rows of the query and key projections differently, because its
// rotary embedding rotates adjacent pairs of a head where Hugging Face's rotates the two halves. (A
// Qwen2 that its qwen2 does not take, with other heads or stretched frequencies, is a Llama with
// biases to it.) And a tensor says by how much the rotary frequencies are stretched. It knows no
// window of Mistral's, so the file states a context in which a window would not matter.
package gguf

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/tensor"
)

// A Model is the contents of a file.
type Model struct {
	Name      string
	Config    checkpoint.Config
	Layout    tensor.Layout // of Params, with the names of Hugging Face's Llama
	Params    []float32
	Tokenizer []byte // tokenizer.json
	Chat      string // chat_template.jinja, "" if there is none
}

// A Type is the encoding of matrix elements in a file. Vectors, which are few, are always F32.
type Type uint32

// The types, with ggml's numbers.
const (
	F32  Type = 0  // exactly the model
	F16  Type = 1  // IEEE-754 binary16
	Q8_0 Type = 8  // blocks of 32 elements: a binary16 scale and 32 signed bytes
	BF16 Type = 30 // the upper half of binary32
)

// ParseType is the inverse of Type.String.
func ParseType(s string) (Type, error) {
	for _, t := range []Type{F32, F16, BF16, Q8_0} {
		if t.String() == s {
			return t, nil
		}
	}
	return 0, fmt.Errorf("type %q: want f32, f16, bf16 or q8_0", s)
}

// String returns the type's name in ParseType's notation.
func (t Type) String() string {
	switch t {
	case F32:
		return "f32"
	case F16:
		return "f16"
	case BF16:
		return "bf16"
	case Q8_0:
		return "q8_0"
	}
	return fmt.Sprintf("type %d", uint32(t))
}

// fileType is general.file_type, llama.cpp's enum llama_ftype.
func (t Type) fileType() uint32 {
	switch t {
	case F16:
		return 1
	case Q8_0:
		return 7
	case BF16:
		return 32
	}
	return 0
}

// bytes returns the length of n elements.
func (t Type) bytes(n int) int {
	switch t {
	case F32:
		return 4 * n
	case Q8_0:
		return n / block * blockBytes
	}
	return 2 * n
}

const align = 32

// entry is one tensor of the file.
type entry struct {
	name   string
	from   tensor.Tensor
	typ    Type
	heads  int // number of heads whose rows are reordered; 0: no reordering
	offset int
	values []float32
}

// config is a checkpoint's Config.
type config checkpoint.Config

// architecture returns llama.cpp's name of the architecture.
func (c config) architecture() string {
	switch {
	case c.Bias && c.Heads*c.HeadDim == c.Hidden && c.Rope == (checkpoint.Rope{}):
		return "qwen2" // which takes no others, while a llama may have biases
	case c.QKNorm:
		return "qwen3"
	}
	return "llama"
}

// context returns the tokens up to which llama.cpp computes the same.
func (c config) context() int {
	if c.Window > 0 {
		return min(c.Context, c.Window)
	}
	return c.Context
}

// linear returns the one factor of all rotary frequencies, and whether that is how they are
// stretched: no pair turns more than Original times in Original tokens.
func (c config) linear() (float64, bool) {
	r := c.Rope
	return r.Factor, r != (checkpoint.Rope{}) && float64(r.Original) <= r.Low
}

// stretches returns the factors by which llama.cpp divides the rotary frequencies, nil for none.
func (c config) stretches() []float32 {
	r := c.Rope
	if r == (checkpoint.Rope{}) {
		return nil
	}
	list := make([]float32, c.HeadDim/2)
	for i := range list {
		turns := float64(r.Original) * math.Pow(c.Theta, -float64(2*i)/float64(c.HeadDim)) / (2 * math.Pi)
		smooth := max(0, min(1, (turns-r.Low)/(r.High-r.Low)))
		list[i] = float32(1 / ((1-smooth)/r.Factor + smooth))
	}
	return list
}

// Write writes the model. Matrices whose rows t cannot hold are written as F16, such as Q8_0 rows
// whose length is not a multiple of 32. A model in exact8 keeps, in Q8_0, the weights it computes
// with.
func Write(w io.Writer, m Model, t Type) error {
	if err := m.Config.Check(); err != nil {
		return fmt.Errorf("write gguf: %w", err)
	}
	if m.Layout.Len() != len(m.Params) {
		panic("gguf: parameters do not have the length of their layout")
	}
	if _, linear := config(m.Config).linear(); m.Config.QKNorm && m.Config.Rope != (checkpoint.Rope{}) && !linear {
		return errors.New("write gguf: llama.cpp has no Qwen3 whose rotary embeddings are scaled as in Llama 3: export to another type, such as hf-f32")
	}
	head, err := m.pairs(t)
	if err != nil {
		return fmt.Errorf("write gguf: %w", err)
	}
	entries, err := m.entries(t)
	if err != nil {
		return fmt.Errorf("write gguf: %w", err)
	}
	front := append([]byte("GGUF"), 3, 0, 0, 0)
	front = binary.LittleEndian.AppendUint64(front, uint64(len(entries)))
	front = binary.LittleEndian.AppendUint64(front, head.count)
	front = append(front, head.b...)
	for _, e := range entries {
		front = appendString(front, e.name)
		front = binary.LittleEndian.AppendUint32(front, uint32(len(e.from.Shape)))
		for i := range e.from.Shape {
			front = binary.LittleEndian.AppendUint64(front, uint64(e.from.Shape[len(e.from.Shape)-1-i]))
		}
		front = binary.LittleEndian.AppendUint32(front, uint32(e.typ))
		front = binary.LittleEndian.AppendUint64(front, uint64(e.offset))
	}
	out := bufio.NewWriterSize(w, 1<<20)
	if _, err := out.Write(pad(front)); err != nil {
		return fmt.Errorf("write gguf: %w", err)
	}
	for _, e := range entries {
		if err := e.write(out, m.Config); err != nil {
			return fmt.Errorf("write gguf: %w", err)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write gguf: %w", err)
	}
	return nil
}

// pad appends zeros to a multiple of align.
func pad(b []byte) []byte {
	for len(b)%align != 0 {
		b = append(b, 0)
	}
	return b
}

// entries returns the tensors in layout order, with their offsets.
func (m Model) entries(t Type) ([]entry, error) {
	var list []entry
	offset := 0
	if s := config(m.Config).stretches(); s != nil && !m.Config.QKNorm {
		list = append(list, entry{name: "rope_freqs.weight", from: tensor.Tensor{Shape: []int{len(s)}, Len: len(s)}, values: s, typ: F32})
		offset += (F32.bytes(len(s)) + align - 1) / align * align
	}
	adjacent := config(m.Config).architecture() == "llama" // pairs that are rotated
	for _, from := range m.Layout.Tensors() {
		e := entry{from: from, typ: t, offset: offset, values: m.Params[from.Offset : from.Offset+from.Len]}
		var ok bool
		if e.name, ok = tensorName(from.Name); !ok {
			return nil, fmt.Errorf("a Llama has no tensor %q", from.Name)
		}
		switch {
		case len(from.Shape) < 2:
			e.typ = F32
		case t == Q8_0 && from.Shape[1]%block != 0:
			e.typ = F16
		}
		switch {
		case !adjacent:
		case strings.HasSuffix(e.name, "attn_q.weight"), strings.HasSuffix(e.name, "attn_q.bias"):
			e.heads = m.Config.Heads
		case strings.HasSuffix(e.name, "attn_k.weight"), strings.HasSuffix(e.name, "attn_k.bias"):
			e.heads = m.Config.KVHeads
		}
		list = append(list, e)
		offset += (e.typ.bytes(from.Len) + align - 1) / align * align
	}
	return list, nil
}

// names maps Hugging Face's names of tensors, outside the layers and below "model.layers.N.".
var names = map[string]string{
	"model.embed_tokens.weight": "token_embd.weight",
	"model.norm.weight":         "output_norm.weight",
	"lm_head.weight":            "output.weight",

	"input_layernorm.weight":          "attn_norm.weight",
	"self_attn.q_proj.weight":         "attn_q.weight",
	"self_attn.k_proj.weight":         "attn_k.weight",
	"self_attn.v_proj.weight":         "attn_v.weight",
	"self_attn.q_proj.bias":           "attn_q.bias",
	"self_attn.k_proj.bias":           "attn_k.bias",
	"self_attn.v_proj.bias":           "attn_v.bias",
	"self_attn.q_norm.weight":         "attn_q_norm.weight",
	"self_attn.k_norm.weight":         "attn_k_norm.weight",
	"self_attn.o_proj.weight":         "attn_output.weight",
	"post_attention_layernorm.weight": "ffn_norm.weight",
	"mlp.gate_proj.weight":            "ffn_gate.weight",
	"mlp.up_proj.weight":              "ffn_up.weight",
	"mlp.down_proj.weight":            "ffn_down.weight",
}

// tensorName translates the name of a tensor.
func tensorName(name string) (string, bool) {
	rest, inLayer := strings.CutPrefix(name, "model.layers.")
	if !inLayer {
		to, ok := names[name]
		return to, ok
	}
	number, part, _ := strings.Cut(rest, ".")
	to, ok := names[part]
	return "blk." + number + "." + to, ok
}

// write writes the tensor's data, row by row.
func (e entry) write(w io.Writer, c checkpoint.Config) error {
	headDim := c.HeadDim
	rows, cols := 1, e.from.Len
	if len(e.from.Shape) == 2 {
		rows, cols = e.from.Shape[0], e.from.Shape[1]
	} else if e.heads > 0 { // a bias
		rows, cols = cols, 1
	}
	if e.heads > 0 && rows != e.heads*headDim {
		return fmt.Errorf("tensor %q has %d rows, not %d heads of %d", e.from.Name, rows, e.heads, headDim)
	}
	var b []byte
	written := 0
	for r := range rows {
		from := r
		if e.heads > 0 {
			from = interleaved(r, headDim)
		}
		b = e.typ.append(b[:0], e.values[from*cols:(from+1)*cols], c.Numerics != "")
		if _, err := w.Write(b); err != nil {
			return err
		}
		written += len(b)
	}
	_, err := w.Write(make([]byte, (align-written%align)%align))
	return err
}

// interleaved returns the row in Hugging Face's order that is row r of llama.cpp's order, which
// alternates the rows of a head's two halves.
func interleaved(r, headDim int) int {
	head, in := r/headDim, r%headDim
	return head*headDim + in%2*(headDim/2) + in/2
}
