package score

import (
	"slices"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// Alpha is the default weight of a member's newest score in its moving average. The first scores
// count equally until that weight has fallen to Alpha. Alpha is small enough that one lucky window
// pays little, and large enough that a member that stops working stops earning within a scoring
// period or two. Boltzmann's 0.001, a half-life of 693 evaluations, keeps paying for weeks after
// the work has ended.
const Alpha = 0.2

// countMax caps the count of evaluations. Beyond it, a new score weighs Alpha or 1/countMax,
// whichever is larger.
const countMax = 1 << 10

// bookMax bounds the members of a book.
const bookMax = 1 << 16

// Averages are stored in 1/unit of the fixed-point numbers, so that small steps are not lost.
const unit = 1 << 16

// Average is a book's record of one member.
type Average struct {
	Member key.Public
	Mean   int32  // in units of 1/unit of a fixed-point score
	Count  uint32 // evaluations so far, up to countMax
	Last   uint32 // window of the last evaluation
	Proven uint32 // newest window in which the member's Work was wrong; 0: none
}

// Value returns the average in the fixed-point form sent to the chain.
func (a Average) Value() int16 {
	half := int64(unit / 2)
	if a.Mean < 0 {
		half = -half
	}
	return int16((int64(a.Mean) + half) / unit)
}

// Book holds the moving averages of members, sorted by key. The zero Book is empty. Members are
// identified by key rather than place, because the place of a member that left is reused.
type Book struct{ list []Average }

// Find returns a member's average, if the member was ever evaluated.
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

// Note records an evaluation for a window. Each window counts once: evaluating the same window
// again, as after a crash, changes nothing.
//
// alpha is the weight of a new score once there are enough of them; 0 stands for Alpha.
//
// Wrong work is not averaged. It resets the mean to -1, from where the mean rises as slowly as if
// it had never been higher. Otherwise a cheat that fakes every fifth result would still be paid for
// four.
func (b *Book) Note(member key.Public, window uint32, s float64, v Verdict, alpha float64) {
	i, ok := b.at(member)
	if !ok {
		if len(b.list) >= bookMax {
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

// part returns the weight of the newest of n scores, in units of 1/unit.
func part(count uint32, alpha float64) int64 {
	if !(alpha > 0 && alpha <= 1) {
		alpha = Alpha
	}
	return max(unit/int64(count), int64(float64(alpha*unit)+0.5))
}

// Keep drops the members for which keep returns false.
func (b *Book) Keep(keep func(key.Public) bool) {
	b.list = slices.DeleteFunc(b.list, func(a Average) bool { return !keep(a.Member) })
}

// averageBytes is the length of an encoded average.
const averageBytes = 32 + 4 + 4 + 4 + 4

// Append appends the book's encoding: the U32 number of averages, then each average, sorted by key,
// as key, U32 mean (two's complement), U32 count, U32 last, U32 proven.
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

// ReadBook reads a book. It sets the reader's error if the bytes are not in the form that Append
// writes.
func ReadBook(r *wire.Reader) Book {
	n := r.U32()
	if n > bookMax {
		r.Fail(wire.ErrTooLong)
	} else if uint64(n)*averageBytes > uint64(r.Len()) {
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
