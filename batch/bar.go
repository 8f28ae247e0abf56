package batch

// Bar finds who gets the parts that are left over by rounding: those that lost most, and of those
// that lost just as much as the last of them the first. It is found a byte at a time, so in passes
// over all that lost; the first of them is of the highest byte.
type Bar struct {
	Least uint64 // the least loss that gets a part, up to the byte of the last pass
	Over  uint32 // how many of those that lost so much get one; or All
}

// All is the Over of a Bar that is found, if it gives parts to all that lost so much.
const All = 1 << 31

// NewBar returns a bar for this many parts left over, which are fewer than those that lost.
func NewBar(over uint32) Bar {
	if over == 0 {
		return Bar{Least: 1<<64 - 1, Over: All}
	}
	return Bar{Over: over}
}

// Found reports whether no more passes are needed.
func (b *Bar) Found() bool { return b.Over == All }

// Count counts a loss in the pass of the byte at shift.
func (b *Bar) Count(counts *[256]uint32, lost uint64, shift uint32) {
	if lost>>shift>>8 == b.Least>>shift>>8 {
		counts[uint8(lost>>shift)]++
	}
}

// Pass ends the pass of the byte at shift.
func (b *Bar) Pass(counts *[256]uint32, shift uint32) {
	key := uint32(255)
	for ; key > 0 && counts[key] < b.Over; key-- {
		b.Over -= counts[key]
	}
	b.Least |= uint64(key) << shift
	if counts[key] <= b.Over {
		b.Over = All
	}
}

// Takes reports whether the next one that lost so much gets a part, after the last pass.
func (b *Bar) Takes(lost uint64) bool {
	switch {
	case lost > b.Least:
		return true
	case lost < b.Least || b.Over == 0:
		return false
	case b.Over != All:
		b.Over--
	}
	return true
}
