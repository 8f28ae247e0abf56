package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/entrain-network/entrain/tensor"
)

func putUint64(b []byte, v uint64) { binary.LittleEndian.PutUint64(b, v) }

// entriesOf places tensors in a file, sorted by name. For one dtype the order is that of Hugging
// Face's own writer, so both write the same bytes.
func entriesOf(tensors []tensor.Tensor, d DType) []Entry {
	sorted := slices.SortedFunc(slices.Values(tensors), func(a, b tensor.Tensor) int { return strings.Compare(a.Name, b.Name) })
	entries := make([]Entry, len(sorted))
	var at uint64
	for i, t := range sorted {
		end := at + uint64(t.Len)*d.size()
		entries[i] = Entry{t.Name, d, t.Shape, at, end}
		at = end
	}
	return entries
}

// writeSafetensors writes tensors of layout, whose elements are in flat, as F32 or BF16.
func writeSafetensors(w io.Writer, tensors []tensor.Tensor, flat []float32, d DType) error {
	if d != F32 && d != BF16 {
		return fmt.Errorf("cannot write %s, only F32 and BF16", d)
	}
	entries := entriesOf(tensors, d)
	if _, err := w.Write(appendHeader(nil, entries)); err != nil {
		return err
	}
	at := make(map[string]tensor.Tensor, len(tensors))
	for _, t := range tensors {
		at[t.Name] = t
	}
	var buf []byte
	for _, e := range entries {
		for piece := range slices.Chunk(at[e.Name].Of(flat), pieceBytes/4) {
			b := tensor.Bytes(piece)
			if d == BF16 {
				buf = appendBF16(buf[:0], piece)
				b = buf
			}
			if _, err := w.Write(b); err != nil {
				return err
			}
		}
	}
	return nil
}

// readHeader reads the header of a safetensors file of fileBytes bytes and returns the file's
// tensors, in the order in which their bytes follow in r. It refuses what parseHeader refuses, a
// header above headerBytesMax, and one that leaves the tensors unaligned.
func readHeader(r io.Reader, fileBytes uint64) ([]Entry, error) {
	var length [8]byte
	if fileBytes < 8 {
		return nil, fmt.Errorf("file of %d bytes is too short for a safetensors file", fileBytes)
	}
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, fmt.Errorf("read header: %w", short(err))
	}
	n := binary.LittleEndian.Uint64(length[:])
	switch {
	case n > headerBytesMax:
		return nil, fmt.Errorf("header of %d bytes is above the limit of %d", n, headerBytesMax)
	case n > fileBytes-8:
		return nil, fmt.Errorf("header of %d bytes does not fit the file of %d", n, fileBytes)
	case n%8 != 0:
		return nil, fmt.Errorf("header of %d bytes is not a multiple of 8: save the file again with a current version of safetensors", n)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, fmt.Errorf("read header: %w", short(err))
	}
	return parseHeader(b, fileBytes-8-n)
}

// ReadSafetensors reads a safetensors file of fileBytes bytes into flat: each of its tensors must
// be in layout, with the same shape. It calls found for each, which may refuse one, such as a
// tensor already found in another file. It reads the file to its end.
func ReadSafetensors(r io.Reader, fileBytes uint64, layout tensor.Layout, flat []float32, found func(Entry) error) error {
	entries, err := readHeader(r, fileBytes)
	if err != nil {
		return err
	}
	buf := make([]byte, pieceBytes)
	for _, e := range entries {
		t, ok := layout.Find(e.Name)
		if !ok && strings.HasSuffix(e.Name, ".rotary_emb.inv_freq") {
			// the frequencies of rotary embeddings, which old versions of transformers saved
			if _, err := io.CopyN(io.Discard, r, int64(e.End-e.Begin)); err != nil {
				return fmt.Errorf("skip tensor %q: %w", e.Name, short(err))
			}
			continue
		}
		parts, shape := []tensor.Tensor{t}, t.Shape
		if !ok {
			parts, shape = joined(layout, e.Name)
		}
		if len(parts) == 0 {
			if e.Name == headTensor {
				return fmt.Errorf("it has %q, but the model's head is its embedding: set tie_word_embeddings in %s to false", e.Name, ConfigFile)
			}
			return fmt.Errorf("the model has no tensor %q", e.Name)
		}
		if !slices.Equal(shape, e.Shape) {
			return fmt.Errorf("tensor %q has shape %v, the model's has %v", e.Name, e.Shape, shape)
		}
		for _, t := range parts {
			e.Name = t.Name
			if err := found(e); err != nil {
				return err
			}
			for piece := range slices.Chunk(t.Of(flat), pieceBytes/4) {
				b := buf[:uint64(len(piece))*e.DType.size()]
				if _, err := io.ReadFull(r, b); err != nil {
					return fmt.Errorf("read tensor %q: %w", e.Name, short(err))
				}
				e.DType.decode(piece, b)
			}
		}
	}
	if n, err := io.ReadFull(r, buf[:1]); n > 0 || !errors.Is(err, io.EOF) {
		if err == nil {
			err = fmt.Errorf("file is longer than %d bytes", fileBytes)
		}
		return err
	}
	return nil
}

// headTensor is missing in models whose head is the embedding.
const headTensor = "lm_head.weight"

// joined returns the tensors of layout whose rows a Phi-3 has in one tensor, one after the other,
// and the shape of that; none if it joins none.
func joined(layout tensor.Layout, name string) (parts []tensor.Tensor, shape []int) {
	for all, names := range map[string][]string{
		".self_attn.qkv_proj.weight": {".self_attn.q_proj.weight", ".self_attn.k_proj.weight", ".self_attn.v_proj.weight"},
		".mlp.gate_up_proj.weight":   {".mlp.gate_proj.weight", ".mlp.up_proj.weight"},
	} {
		layer, ok := strings.CutSuffix(name, all)
		for i := 0; ok && i < len(names); i++ {
			t, found := layout.Find(layer + names[i])
			if !found {
				return nil, nil
			}
			if parts = append(parts, t); shape == nil {
				shape = []int{0, t.Shape[1]}
			}
			shape[0] += t.Shape[0]
		}
	}
	return parts, shape
}

// short converts both end-of-file errors of ReadFull to one.
func short(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
