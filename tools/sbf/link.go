package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"strings"
)

var le = binary.LittleEndian

// Where a program of version 3 lies in the machine's memory, and what it is given.
const (
	textAt      = 1 << 32
	frameMax    = 4096
	version     = 3
	entrySymbol = "entrypoint"
)

// Relocations of BPF objects (LLVM, "BPF Target relocations").
const (
	relImm64 = 1  // R_BPF_64_64: an address in the two halves of a lddw
	relAbs64 = 2  // R_BPF_64_ABS64: an address in data
	relCall  = 10 // R_BPF_64_32: the target of a call
)

// Operations of BPF that link reads.
const (
	opLoadImm64 = 0x18
	opAddImm    = 0x07
	opMove      = 0xbf
	framePtr    = 10 // the register
)

// program is a linked program: constants from address 0, code from textAt.
type program struct {
	text, constants []byte
	entry           uint64
	frame           int // bytes of the deepest frame
}

// place is where a section went.
type place struct {
	text bool
	off  uint64
}

func (p place) address() uint64 {
	if p.text {
		return textAt + p.off
	}
	return p.off
}

// link makes a program from an object. The machine has no writable globals, so the object may have
// none.
func link(f *elf.File) (*program, error) {
	if f.Machine != elf.EM_BPF || f.Type != elf.ET_REL {
		return nil, fmt.Errorf("is not a relocatable object of BPF but %v, %v", f.Machine, f.Type)
	}
	symbols, err := f.Symbols()
	if err != nil {
		return nil, err
	}
	p := &program{}
	places, err := p.gather(f)
	if err != nil {
		return nil, err
	}
	address := func(s elf.Symbol) (uint64, bool) {
		at, ok := places[s.Section]
		return at.address() + s.Value, ok
	}
	for _, s := range symbols {
		if at, ok := address(s); ok && s.Name == entrySymbol {
			p.entry = at
		}
	}
	if p.entry == 0 {
		return nil, errors.New("has no symbol " + entrySymbol)
	}
	for _, section := range f.Sections {
		into, ok := places[elf.SectionIndex(section.Info)]
		if section.Type != elf.SHT_REL || !ok {
			continue // information for debuggers
		}
		list, err := section.Data()
		if err != nil {
			return nil, err
		}
		for ; len(list) >= 16; list = list[16:] {
			off, info := le.Uint64(list), le.Uint64(list[8:])
			s := symbols[info>>32-1]
			to, defined := address(s)
			if err := p.relocate(into, off, uint32(info), s.Name, to, defined); err != nil {
				return nil, fmt.Errorf("%s: %w", section.Name, err)
			}
		}
	}
	p.frame = deepest(p.text)
	if p.frame > frameMax {
		return nil, fmt.Errorf("has a frame of %d bytes; the machine gives %d", p.frame, frameMax)
	}
	return p, nil
}

// gather places the sections that are loaded.
func (p *program) gather(f *elf.File) (map[elf.SectionIndex]place, error) {
	places := make(map[elf.SectionIndex]place)
	for i, s := range f.Sections {
		if s.Flags&elf.SHF_ALLOC == 0 || s.Size == 0 {
			continue
		}
		if s.Type == elf.SHT_NOBITS || s.Flags&elf.SHF_WRITE != 0 && !strings.HasPrefix(s.Name, ".data.rel.ro") {
			return nil, fmt.Errorf("has the writable section %s of %d bytes: pass what is in it as an argument", s.Name, s.Size)
		}
		data, err := s.Data()
		if err != nil {
			return nil, err
		}
		code := s.Flags&elf.SHF_EXECINSTR != 0
		into := &p.constants
		if code {
			into = &p.text
		}
		*into = padded(*into, int(max(s.Addralign, 8)))
		places[elf.SectionIndex(i)] = place{code, uint64(len(*into))}
		*into = append(*into, data...)
	}
	p.constants = padded(p.constants, 8)
	return places, nil
}

func padded(b []byte, to int) []byte {
	for len(b)%to != 0 {
		b = append(b, 0)
	}
	return b
}

// relocate writes an address into code or constants. A call of what no section defines is one of
// the machine's, by the hash of its name.
func (p *program) relocate(into place, off uint64, kind uint32, name string, to uint64, defined bool) error {
	b := p.constants
	if into.text {
		b = p.text
	}
	b = b[into.off+off:]
	if !defined && kind != relCall {
		return fmt.Errorf("%s is data that nobody defines", name)
	}
	switch {
	case kind == relImm64 && into.text:
		to += uint64(le.Uint32(b[4:])) | uint64(le.Uint32(b[12:]))<<32
		le.PutUint32(b[4:], uint32(to))
		le.PutUint32(b[12:], uint32(to>>32))
	case kind == relAbs64 && !into.text:
		le.PutUint64(b, to+le.Uint64(b))
	case kind == relCall && into.text && defined:
		to += uint64(int64(int32(le.Uint32(b[4:])))+1) * 8
		from := into.address() + off + 8
		le.PutUint32(b[4:], uint32(int64(to-from)>>3))
		b[1] = b[1]&0x0f | 0x10
	case kind == relCall && into.text:
		le.PutUint32(b[4:], murmur3([]byte(name)))
		b[1] &= 0x0f
	default:
		return fmt.Errorf("a relocation of type %d for %s is not known here", kind, name)
	}
	return nil
}

// deepest returns how far below the frame pointer the code reaches, in bytes.
func deepest(text []byte) int {
	least := 0
	for i := 0; i+8 <= len(text); i += 8 {
		op, dst, src, off := text[i], text[i+1]&15, text[i+1]>>4, int(int16(le.Uint16(text[i+2:])))
		switch class := op & 7; {
		case class == 1 && src == framePtr, (class == 2 || class == 3) && dst == framePtr:
			least = min(least, off)
		case op == opAddImm && i >= 8 && text[i-8] == opMove && text[i-7]>>4 == framePtr && text[i-7]&15 == dst:
			least = min(least, int(int32(le.Uint32(text[i+4:]))))
		}
		if op == opLoadImm64 {
			i += 8
		}
	}
	return -least
}

// file returns the program as the machine's loader wants it: two segments, no sections.
func (p *program) file() []byte {
	const headerBytes, segmentBytes = 64, 56
	constantsOff := uint64(headerBytes + 2*segmentBytes)
	textOff := constantsOff + uint64(len(p.constants))
	var b bytes.Buffer
	write := func(v any) {
		if err := binary.Write(&b, le, v); err != nil {
			panic(err) // a buffer takes everything
		}
	}
	write(elf.Header64{
		Ident: [16]byte{0x7f, 'E', 'L', 'F', 2, 1, 1}, Type: uint16(elf.ET_DYN), Machine: uint16(elf.EM_BPF), Version: 1, Entry: p.entry,
		Phoff: headerBytes, Flags: version, Ehsize: headerBytes, Phentsize: segmentBytes, Phnum: 2,
	})
	segment := func(flags elf.ProgFlag, off, at uint64, size int) {
		write(elf.Prog64{
			Type: uint32(elf.PT_LOAD), Flags: uint32(flags), Off: off, Vaddr: at, Paddr: at, Filesz: uint64(size), Memsz: uint64(size),
		})
	}
	segment(elf.PF_R, constantsOff, 0, len(p.constants))
	segment(elf.PF_X, textOff, textAt, len(p.text))
	b.Write(p.constants)
	b.Write(p.text)
	return b.Bytes()
}

// murmur3 is MurmurHash3_x86_32 with seed 0 (Austin Appleby), by which the machine knows its
// functions.
func murmur3(b []byte) uint32 {
	const c1, c2 = 0xcc9e2d51, 0x1b873593
	n, h := uint32(len(b)), uint32(0)
	for ; len(b) >= 4; b = b[4:] {
		h = bits.RotateLeft32(h^bits.RotateLeft32(le.Uint32(b)*c1, 15)*c2, 13)*5 + 0xe6546b64
	}
	k := uint32(0)
	for i := len(b) - 1; i >= 0; i-- {
		k = k<<8 | uint32(b[i])
	}
	h ^= bits.RotateLeft32(k*c1, 15) * c2
	h ^= n
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return h ^ h>>16
}
