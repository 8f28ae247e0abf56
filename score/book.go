package score

import (
	"slices"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// Alpha is the part of a member's newest score in its moving average unless a run says otherwise;
// the first ones count by equal parts until that is less. It is small enough that one lucky window
// pays little, and large enough that a miner which stops working stops earning within a scoring
// period or two. Boltzmann's 0.001, a half-life of 693 evaluations, pays for weeks after the work
// has ended.
const Alpha = 0.2

// countMax is up to where evaluations are counted: what comes later weighs Alpha, or 1/countMax if
// that is more.
const countMax = 1 << 10

// BookMax bounds the members of a book.
const BookMax = 1 << 16

// unit is what an average is counted in: 1/unit of the fixed-point numbers, so that small steps are
// not lost.
const unit = 1 << 16

// Average is what a book knows of one member.
type Average struct {
	Member key.Public
	Mean   int32  // in units of 1/unit of a fixed-point score
	Count  uint32 // evaluations so far, up to countMax
	Last   uint32 // window of the last evaluation
	Proven uint32 // newest window in which its Work was wrong; 0: none
}

// Value is the average as it is told to the chain.
func (a Average) Value() int16 {
	half := int64(unit / 2)
	if a.Mean < 0 {
		half = -half
	}
	return int16((int64(a.Mean) + half) / unit)
}

// Book holds the moving averages of members, in the order of their keys. The zero Book is empty.
// Members are known by key, not by place, since the place of one that left is given to another.
type Book struct{ list []Average }

// All returns the averages, in the order of keys. The caller must not change them.
func (b *Book) All() []Average { return b.list }

// Find returns the average of a member, if it was ever evaluated.
func (b *Book) Find(member key.Public) (Average, bool) {
	i, ok := b.at(member)
	if !ok {
		return Average{}, false
	}
	return b.list[i], true
}

func (b *Book) at(member key.Public) (int, bool) {
	return slices.BinarySearchFunc(b.list, member, func(a Average, k key.Public) int { return a.Member.Compare(k) })
}

// Note enters an evaluation of a window. Each window counts once: a second evaluation of the same
// one, as after a crash, changes nothing.
//
// Alpha is the part that a new score has once there are enough; 0 stands for the constant of that
// name.
//
// Wrong work is not averaged: it sets the mean to -1, from where it takes as long to rise as if it
// had never been higher. Otherwise a cheat whose every fifth result is false would be paid for
// four.
func (b *Book) Note(member key.Public, window uint32, s float64, v Verdict, alpha float64) {
	i, ok := b.at(member)
	if !ok {
		if len(b.list) >= BookMax {
			return
		}
		b.list = slices.Insert(b.list, i, Average{Member: member})
	}
	a := &b.list[i]
	if a.Count > 0 && window <= a.Last {
		return
	}
	a.Last = window
	a.Count = min(a.Count+1, countMax)
	if v == WrongWork {
		a.Mean, a.Count, a.Proven = -One*unit, countMax, window
		return
	}
	a.Mean += int32((int64(Fixed(s))*unit - int64(a.Mean)) * part(a.Count, alpha) / unit)
}

// part is the weight of the newest of so many scores, in units of 1/unit.
func part(count uint32, alpha float64) int64 {
	if !(alpha > 0 && alpha <= 1) {
		alpha = Alpha
	}
	return max(unit/int64(count), int64(float64(alpha*unit)+0.5))
}

// Keep forgets the members for which keep is false.
func (b *Book) Keep(keep func(key.Public) bool) {
	b.list = slices.DeleteFunc(b.list, func(a Average) bool { return !keep(a.Member) })
}

// AverageBytes is the length of an encoded average.
const AverageBytes = 32 + 4 + 4 + 4 + 4

// Append appends the book's encoding: U32 number of averages, then each, in the order of keys, as
// key, U32 mean (two's complement), U32 count, U32 last, U32 proven.
func (b *Book) Append(dst []byte) []byte {
	dst = wire.AppendU32(dst, uint32(len(b.list)))
	for _, a := range b.list {
		dst = append(dst, a.Member[:]...)
		dst = wire.AppendU32(dst, uint32(a.Mean))
		dst = wire.AppendU32(dst, a.Count)
		dst = wire.AppendU32(dst, a.Last)
		dst = wire.AppendU32(dst, a.Proven)
	}
	return dst
}

// ReadBook takes a book off a reader, whose error it sets when the bytes are not what Append
// writes.
func ReadBook(r *wire.Reader) Book {
	n := r.U32()
	if n > BookMax {
		r.Fail(wire.ErrTooLong)
	} else if uint64(n)*AverageBytes > uint64(r.Len()) {
		r.Fail(wire.ErrShort)
	}
	if r.Err() != wire.OK || n == 0 {
		return Book{}
	}
	list := make([]Average, n)
	for i := range list {
		a := &list[i]
		copy(a.Member[:], r.Bytes(len(a.Member)))
		a.Mean, a.Count, a.Last, a.Proven = int32(r.U32()), r.U32(), r.U32(), r.U32()
		if a.Mean > One*unit || a.Mean < -One*unit || a.Count == 0 || a.Count > countMax || a.Proven > a.Last {
			r.Fail(wire.ErrOutOfRange)
		}
		if i > 0 && list[i-1].Member.Compare(a.Member) >= 0 {
			r.Fail(wire.ErrNotCanonical)
		}
	}
	if r.Err() != wire.OK {
		return Book{}
	}
	return Book{list}
}

// Clone returns a copy of the book.
func (b *Book) Clone() Book { return Book{slices.Clone(b.list)} }
