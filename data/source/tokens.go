package source

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Token files of other programs.
//
// llm.c (dev/data/data_common.py): 256 int32, of which the first three are magic 20240520, version
// 1 and the number of tokens, which follow as uint16. For Llama 3 the magic is 20240801, the
// version is 7, and the tokens are uint32.
//
// Megatron-LM (megatron/core/datasets/indexed_dataset.py): x.bin holds tokens, x.idx describes
// them:
//
//	"MMIDIDX\0\0" | version 1, U64 | type, U8: 4 int32, 8 uint16
//	sequences, U64 | documents + 1, U64
//	length of each sequence, I32 | byte in x.bin at which each begins, I64
//	number of the first sequence of each document, and of all, I64

// tokenLayout describes where the tokens in a file are.
type tokenLayout struct {
	header    uint64 // bytes before them
	size      int    // of a token
	tokens    uint64
	documents uint64 // where the file says so
}

func readTokenLayout(path string, format Format, size uint64) (l tokenLayout, err error) {
	switch format {
	case Uint16:
		l.size = 2
	case Uint32:
		l.size = 4
	case LLMC:
		if l, err = readLLMC(path); err != nil {
			return l, fmt.Errorf("%q: %w", path, err)
		}
	case Megatron:
		if l, err = readMegatron(megatronName(path, ".idx")); err != nil {
			return l, fmt.Errorf("%q: %w", megatronName(path, ".idx"), err)
		}
	}
	if format == Uint16 || format == Uint32 {
		if size%uint64(l.size) != 0 {
			return l, fmt.Errorf("%q has %d bytes, not a multiple of a token's %d", path, size, l.size)
		}
		l.tokens = size / uint64(l.size)
	}
	if want := l.header + l.tokens*uint64(l.size); want != size {
		return l, fmt.Errorf("%q has %d bytes; %d tokens of %d bytes behind %d others are %d", path, size, l.tokens, l.size, l.header, want)
	}
	return l, nil
}

// llmcTokenBytes returns the size of a token for a magic number and a version.
func llmcTokenBytes(magic, version uint32) (int, bool) {
	switch [2]uint32{magic, version} {
	case [2]uint32{20240520, 1}:
		return 2, true
	case [2]uint32{20240801, 7}:
		return 4, true
	}
	return 0, false
}

func readLLMC(path string) (l tokenLayout, err error) {
	f, err := os.Open(path)
	if err != nil {
		return l, err
	}
	defer f.Close()
	var b [1024]byte
	if _, err := io.ReadFull(f, b[:]); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return l, fmt.Errorf("it ends within the %d bytes of llm.c's header", len(b))
	} else if err != nil {
		return l, err
	}
	magic, version := binary.LittleEndian.Uint32(b[:]), binary.LittleEndian.Uint32(b[4:])
	size, ok := llmcTokenBytes(magic, version)
	if !ok {
		return l, fmt.Errorf("magic number %d and version %d are not llm.c's 20240520, 1 or 20240801, 7", magic, version)
	}
	return tokenLayout{header: uint64(len(b)), size: size, tokens: uint64(binary.LittleEndian.Uint32(b[8:]))}, nil
}

// megatronName returns the name of one of the two files, given either.
func megatronName(path, ending string) string {
	return strings.TrimSuffix(path, filepath.Ext(path)) + ending
}

const megatronMagic = "MMIDIDX\x00\x00"

// readMegatron reads an index. It accepts only what every writer of such files produces: sequences
// that follow each other without gaps.
func readMegatron(path string) (l tokenLayout, err error) {
	f, err := os.Open(path)
	if err != nil {
		return l, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return l, err
	}
	var head [34]byte
	if _, err := io.ReadFull(f, head[:]); err != nil || string(head[:9]) != megatronMagic {
		return l, errors.New("it does not begin with MMIDIDX, so it is not an index of Megatron-LM")
	}
	if version := binary.LittleEndian.Uint64(head[9:]); version != 1 {
		return l, fmt.Errorf("unknown version %d, want 1", version)
	}
	switch head[17] {
	case 4:
		l.size = 4
	case 8:
		l.size = 2
	default:
		return l, fmt.Errorf("tokens of type %d are not supported, only 4 (int32) and 8 (uint16)", head[17])
	}
	sequences, documents := binary.LittleEndian.Uint64(head[18:]), binary.LittleEndian.Uint64(head[26:])
	const most = 1 << 40 // keeps the next line from overflowing
	if sequences > most || documents == 0 || documents > most || uint64(info.Size()) != uint64(len(head))+12*sequences+8*documents {
		return l, fmt.Errorf("it has %d bytes, which does not match %d sequences and %d documents", info.Size(), sequences, documents-1)
	}
	l.documents = documents - 1
	at := int64(len(head))
	lengths := io.NewSectionReader(f, at, 4*int64(sequences))
	pointers := io.NewSectionReader(f, at+4*int64(sequences), 8*int64(sequences))
	l.tokens, err = checkSequences(newInts(lengths, 4), newInts(pointers, 8), sequences, uint64(l.size))
	if err != nil {
		return l, err
	}
	return l, checkDocuments(newInts(io.NewSectionReader(f, at+12*int64(sequences), 8*int64(documents)), 8), documents, sequences)
}

// checkSequences sums the lengths and compares them with the starts of the sequences.
func checkSequences(lengths, pointers *ints, n, size uint64) (tokens uint64, err error) {
	for i := range n {
		length, err := lengths.next()
		if err != nil {
			return 0, err
		}
		pointer, err := pointers.next()
		if err != nil {
			return 0, err
		}
		if length < 0 || pointer < 0 || uint64(pointer) != tokens*size {
			return 0, fmt.Errorf("sequence %d of %d tokens begins at byte %d, want %d: sequences must be consecutive", i, length, pointer, tokens*size)
		}
		tokens += uint64(length)
	}
	return tokens, nil
}

// checkDocuments checks that the documents cover all sequences, in order.
func checkDocuments(firsts *ints, n, sequences uint64) error {
	last := int64(0)
	for i := range n {
		first, err := firsts.next()
		if err != nil {
			return err
		}
		if first < last || i == 0 && first != 0 || i == n-1 && first != int64(sequences) {
			return fmt.Errorf("document %d begins with sequence %d of %d, after %d", i, first, sequences, last)
		}
		last = first
	}
	return nil
}

// ints reads little-endian integers of a size.
type ints struct {
	r    io.Reader
	size int
	buf  []byte
}

func newInts(r io.Reader, size int) *ints { return &ints{r: r, size: size} }

func (n *ints) next() (int64, error) {
	if len(n.buf) == 0 {
		b := make([]byte, 64<<10)
		k, err := io.ReadFull(n.r, b)
		if k == 0 {
			return 0, fmt.Errorf("the file was truncated: %w", err)
		}
		n.buf = b[:k-k%n.size]
	}
	b := n.buf
	n.buf = n.buf[n.size:]
	if n.size == 4 {
		return int64(int32(binary.LittleEndian.Uint32(b))), nil
	}
	return int64(binary.LittleEndian.Uint64(b)), nil
}

// tokenReader reads a file of tokens.
type tokenReader struct {
	*os.File
	source *File
	cut    uint64 // the first token that is held out
	at     uint64 // the next token
}

func (s *File) openTokens(at Position) (reader, error) {
	f, err := os.Open(s.Path)
	if err != nil {
		return nil, err
	}
	return &tokenReader{f, s, s.layout.tokens - share(s.layout.tokens, s.heldOut), at.Offset / uint64(s.layout.size)}, nil
}

func (r *tokenReader) next() (*Piece, error) {
	l := r.source.layout
	to := r.cut
	if r.at >= r.cut {
		to = l.tokens
	}
	if r.at == to {
		return nil, io.EOF
	}
	n := min(pieceBytes/uint64(l.size), to-r.at)
	b := make([]byte, n*uint64(l.size))
	if _, err := r.ReadAt(b, int64(l.header+r.at*uint64(l.size))); err != nil {
		return nil, r.source.short(err)
	}
	p := &Piece{heldOut: r.at >= r.cut, tokens: make([]uint32, n)}
	decode(p.tokens, b, l.size)
	r.at += n
	p.End = Position{Offset: r.at * uint64(l.size), Read: l.header + r.at*uint64(l.size)}
	return p, nil
}

// decode sets dst to the tokens whose little-endian bytes are b, each of size bytes.
func decode(dst []uint32, b []byte, size int) {
	if size == 2 {
		for i := range dst {
			dst[i] = uint32(binary.LittleEndian.Uint16(b[2*i:]))
		}
		return
	}
	for i := range dst {
		dst[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
}
