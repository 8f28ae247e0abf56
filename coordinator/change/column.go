package change

import (
	"math"
	"slices"

	"github.com/entrain-network/entrain/wire"
)

// The kinds of a column, and what is added if its values are the new ones.
const (
	same       = 0
	palette    = 1
	sparse     = 2
	literal    = 3
	split      = 4
	classed    = 5
	exceptions = 6
	divided    = 7
	beside     = 8
	fresh      = 16

	paletteMax = 255
	besideMin  = 256 // bits of a column that are worth a look at those beside it
)

// Append appends the change from one picture to another of the same run, as light as it is.
func Append(dst []byte, from, to *Picture) []byte {
	c := column{classes: classes{}}
	checks := to.renewed(from)
	to = to.clone()
	ended := from.ended(checks)
	to.exchange(checks)
	from = from.without(checks)
	for _, t := range from.tables() {
		for _, at := range t.columns() {
			c.before, c.now = t.read(from.b[at:], c.before[:0]), t.read(to.b[at:], c.now[:0])
			c.word, c.others = t.word, t.beside(from.b, at)
			if dst = c.append(dst); t.accepted {
				c.classes.divide(c.now)
			}
		}
		if t.checks {
			c.classes.divide(ended)
		}
	}
	return dst
}

// column is one word of all records of a table, or one byte of these words.
type column struct {
	word        uint32 // bytes of a value, 0 for a bit
	before, now []uint32
	values      []uint32          // differences, or the new values
	others      func() [][]uint32 // what the words beside it were before
	classes     classes
}

func (c *column) append(dst []byte) []byte {
	if slices.Equal(c.before, c.now) {
		return append(dst, same)
	}
	mode, values, bits := c.best()
	if c.word == 4 && bits > float64(len(c.now)) {
		sum := 0.0
		c.parts(func(part *column) {
			_, _, bits := part.best()
			sum += bits
		})
		if sum < bits {
			dst = append(dst, split)
			c.parts(func(part *column) { dst = part.append(dst) })
			return dst
		}
	}
	return c.write(dst, mode, values)
}

// best returns how the column takes the fewest bits, roughly, without a split.
func (c *column) best() (mode uint8, values []uint32, bits float64) {
	c.values = c.values[:0]
	mask := uint32(1)<<(max(8*c.word, 1)-1)<<1 - 1
	for i, v := range c.now {
		c.values = append(c.values, (v-c.before[i])&mask)
	}
	bits = math.Inf(1)
	for _, of := range []struct {
		mode   uint8
		values []uint32
	}{{0, c.values}, {fresh, c.now}} {
		if kind, cost := c.cost(of.values); cost < bits {
			mode, values, bits = of.mode|kind, of.values, cost
		}
	}
	return mode, values, bits
}

// parts calls f with the columns of the words' bytes.
func (c *column) parts(f func(*column)) {
	part := column{word: 1, before: make([]uint32, len(c.before)), now: make([]uint32, len(c.now)), classes: c.classes}
	for shift := 0; shift < 32; shift += 8 {
		for i := range c.now {
			part.before[i], part.now[i] = c.before[i]>>shift&0xff, c.now[i]>>shift&0xff
		}
		f(&part)
	}
}

// cost returns the best kind for values, and roughly how many bits they take.
func (c *column) cost(values []uint32) (kind uint8, bits float64) {
	each, n := float64(max(8*c.word, 1)), float64(len(values))
	set := 0
	for _, v := range values {
		if v != 0 {
			set++
		}
	}
	kind, bits = literal, n*each
	if cost := entropy(set, len(values)) + float64(set)*each; cost < bits {
		kind, bits = sparse, cost
	}
	if times, few := count(values); few {
		cost := each * float64(len(times))
		for _, k := range times {
			cost += float64(k) * math.Log2(n/float64(k))
		}
		if cost <= bits {
			kind, bits = palette, cost
		}
	}
	for _, by := range []uint8{classed, divided, beside} {
		if by == beside && (c.others == nil || bits < besideMin) {
			break
		}
		d := c.division(by)
		usual, others := d.usual(values)
		if d.count == 1 {
			continue
		}
		times, _ := count(usual)
		cost := each*float64(len(times)) + 2*float64(d.count) + entropy(others, len(values)) + float64(others)*each
		if by == classed && others > 0 {
			by = exceptions
		}
		if cost < bits {
			kind, bits = by, cost
		}
	}
	return kind, bits
}

// division returns the classes of a kind.
func (c *column) division(kind uint8) division {
	d := c.classes.among(len(c.before))
	if kind == divided || kind == beside {
		d = d.by(c.before, dividedMax)
	}
	if kind == beside {
		for _, values := range c.others() {
			d = d.by(values, dividedMax)
		}
	}
	return d
}

// entropy returns the bits that say which k of n records are meant.
func entropy(k, n int) float64 {
	if k == 0 || k == n {
		return 0
	}
	p := float64(k) / float64(n)
	return -float64(n) * (p*math.Log2(p) + (1-p)*math.Log2(1-p))
}

// count returns how often each value occurs; few reports whether they fit a palette.
func count(values []uint32) (times map[uint32]int, few bool) {
	times = map[uint32]int{}
	for i := 0; i < len(values); {
		from := i
		for i < len(values) && values[i] == values[from] {
			i++
		}
		if times[values[from]] += i - from; len(times) > paletteMax {
			return times, false
		}
	}
	return times, true
}

func (c *column) write(dst []byte, mode uint8, values []uint32) []byte {
	dst = append(dst, mode)
	switch mode &^ fresh {
	case palette:
		dst = c.writePalette(dst, values)
	case sparse:
		dst = c.writeSparse(dst, values, func(int) uint32 { return 0 })
	case literal:
		dst = c.writePlanes(dst, values)
	default:
		d := c.division(mode &^ fresh)
		usual, _ := d.usual(values)
		for _, v := range usual {
			dst = c.writeWord(dst, v)
		}
		if mode&^fresh != classed {
			dst = c.writeSparse(dst, values, func(i int) uint32 { return usual[d.of[i]] })
		}
	}
	c.classes.divide(values)
	return dst
}

// writeSparse writes the values that are not the usual ones.
func (c *column) writeSparse(dst []byte, values []uint32, usual func(i int) uint32) []byte {
	set := make([]byte, (len(values)+7)/8)
	var list []uint32
	for i, v := range values {
		if v != usual(i) {
			set[i/8] |= 1 << (i % 8)
			list = append(list, v)
		}
	}
	return c.writePlanes(append(dst, set...), list)
}

// writePalette lists the values, 0 first if it is one, so that columns in which the same members
// stay as they are have the same places.
func (c *column) writePalette(dst []byte, values []uint32) []byte {
	var list []uint32
	place := map[uint32]uint32{}
	put := func(v uint32) {
		if _, known := place[v]; !known {
			place[v] = uint32(len(list))
			list = append(list, v)
		}
	}
	if slices.Contains(values, 0) {
		put(0)
	}
	for _, v := range values {
		put(v)
	}
	dst = append(dst, uint8(len(list)))
	for _, v := range list {
		dst = c.writeWord(dst, v)
	}
	bits := bitsOf(len(list))
	if bits == 0 {
		return dst
	}
	at := len(dst)
	dst = append(dst, make([]byte, packed(len(values), bits))...)
	for i, v := range values {
		dst[at+i*bits/8] |= byte(place[v] << (i * bits % 8))
	}
	return dst
}

// bitsOf returns the bits of a place among values.
func bitsOf(values int) int {
	switch {
	case values <= 1:
		return 0
	case values <= 2:
		return 1
	case values <= 4:
		return 2
	case values <= 16:
		return 4
	}
	return 8
}

// packed returns the bytes of places.
func packed(places, bits int) int { return (places*bits + 7) / 8 }

func (c *column) writeWord(dst []byte, v uint32) []byte {
	if c.word < 4 {
		return append(dst, byte(v))
	}
	return wire.AppendU32(dst, v)
}

func (c *column) writePlanes(dst []byte, values []uint32) []byte {
	for k := range max(c.word, 1) {
		for _, v := range values {
			dst = append(dst, byte(v>>(8*k)))
		}
	}
	return dst
}
