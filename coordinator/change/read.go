package change

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/entrain-network/entrain/wire"
)

// Read returns the picture that a change leads to. What it does is in proportion to the picture's
// size, whatever is in b.
func Read(from *Picture, b []byte) (*Picture, error) {
	p := from.clone()
	var checks, ended []uint32
	r := wire.NewReader(b)
	c := column{classes: classes{}}
	for _, t := range p.tables() {
		for _, at := range t.columns() {
			c.others = t.beside(from.b, at)
			if c.parse(&r, t, p.b[at:]); r.Err() != wire.OK {
				return nil, r.Err()
			}
			if t.accepted {
				c.before = t.read(p.b[at:], c.before[:0])
				c.classes.divide(c.before)
			}
			if t.checks && at == t.at {
				checks = p.renewed(from)
				ended, from = from.ended(checks), from.without(checks)
				p = p.without(checks)
			}
		}
		if t.checks {
			c.classes.divide(ended)
		}
	}
	if err := r.Done().OrNil(); err != nil {
		return nil, err
	}
	p.exchange(checks)
	return p, nil
}

// parse reads a column and changes the words at the beginning of b and every stride.
func (c *column) parse(r *wire.Reader, t table, b []byte) {
	mode := r.U8()
	switch {
	case r.Err() != wire.OK || mode == same:
		return
	case mode == split && t.word == 4:
		c.others = nil
		for k := range uint32(4) {
			c.parse(r, table{count: t.count, stride: t.stride, word: 1}, b[k:])
		}
		return
	}
	c.word = t.word
	n := int(t.count)
	c.values = slices.Grow(c.values[:0], n)[:n]
	clear(c.values)
	switch mode &^ fresh {
	case palette:
		c.readPalette(r)
	case sparse:
		c.readSparse(r)
	case literal:
		c.readPlanes(r, c.values)
	case classed, exceptions, divided, beside:
		if mode&^fresh == beside && c.others == nil {
			r.Fail(wire.ErrNotCanonical)
			return
		}
		c.before = t.read(b, c.before[:0])
		d := c.division(mode &^ fresh)
		usual := c.readWords(r, d.count)
		if r.Err() != wire.OK {
			return
		}
		for i := range c.values {
			c.values[i] = usual[d.of[i]]
		}
		if mode&^fresh != classed {
			c.readSparse(r)
		}
	default:
		r.Fail(wire.ErrNotCanonical)
	}
	if r.Err() == wire.OK {
		c.classes.divide(c.values)
		t.change(b, c.values, mode&fresh != 0)
	}
}

func (c *column) readWords(r *wire.Reader, n int) []uint32 {
	list := make([]uint32, n)
	for i := range list {
		if c.word < 4 {
			list[i] = uint32(r.U8())
		} else {
			list[i] = r.U32()
		}
	}
	return list
}

func (c *column) readPalette(r *wire.Reader) {
	list := c.readWords(r, int(r.U8()))
	size := bitsOf(len(list))
	places := r.Bytes(packed(len(c.values), size))
	if r.Err() != wire.OK || len(list) == 0 {
		r.Fail(wire.ErrNotCanonical)
		return
	}
	for i := range c.values {
		place := 0
		if size > 0 {
			place = int(places[i*size/8]) >> (i * size % 8) & (1<<size - 1)
		}
		if place >= len(list) {
			r.Fail(wire.ErrNotCanonical)
			return
		}
		c.values[i] = list[place]
	}
}

// readSparse reads the values that are not what c.values has.
func (c *column) readSparse(r *wire.Reader) {
	set := r.Bytes((len(c.values) + 7) / 8)
	if r.Err() != wire.OK {
		return
	}
	count := 0
	for _, b := range set {
		count += bits.OnesCount8(b)
	}
	if count > len(c.values) {
		r.Fail(wire.ErrNotCanonical)
		return
	}
	list := make([]uint32, count)
	c.readPlanes(r, list)
	for i := range c.values {
		if set[i/8]>>(i%8)&1 == 1 && len(list) > 0 {
			c.values[i], list = list[0], list[1:]
		}
	}
}

func (c *column) readPlanes(r *wire.Reader, values []uint32) {
	for k := range max(c.word, 1) {
		plane := r.Bytes(len(values))
		if r.Err() != wire.OK {
			return
		}
		for i, v := range plane {
			values[i] |= uint32(v) << (8 * k)
		}
	}
}

// read appends the words at the beginning of b and every stride.
func (t table) read(b []byte, values []uint32) []uint32 {
	for i := range t.count {
		switch t.word {
		case 0:
			values = append(values, uint32(b[i/8]>>(i%8)&1))
		case 1:
			values = append(values, uint32(b[i*t.stride]))
		default:
			values = append(values, binary.LittleEndian.Uint32(b[i*t.stride:]))
		}
	}
	return values
}

// change changes these words by the values, or into them.
func (t table) change(b []byte, values []uint32, fresh bool) {
	for i, v := range values {
		i := uint32(i)
		before := uint32(0)
		switch {
		case fresh:
		case t.word == 0:
			before = uint32(b[i/8]) >> (i % 8)
		case t.word == 1:
			before = uint32(b[i*t.stride])
		default:
			before = binary.LittleEndian.Uint32(b[i*t.stride:])
		}
		switch v += before; t.word {
		case 0:
			b[i/8] = b[i/8]&^(1<<(i%8)) | byte(v&1)<<(i%8)
		case 1:
			b[i*t.stride] = byte(v)
		default:
			binary.LittleEndian.PutUint32(b[i*t.stride:], v)
		}
	}
}
