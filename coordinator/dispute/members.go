package dispute

import (
	"github.com/entrain-network/entrain/coordinator/internal/record"
)

// Fault drops member i if it has already failed in some way n times in a row, which is the limit.
// It returns the new count, at most 255.
func (s Cases) Fault(env Env, i record.Member, n uint8) uint8 {
	if n >= s.h().MissedMax() {
		s.Leave(i, record.StatusDropped, env.NowMs)
		s.absent(env, i)
	}
	if n < 255 {
		n++
	}
	return n
}

// skip counts a check that member i was to make and did not.
func (s Cases) skip(i record.Member, env Env) {
	b := s.Place(i)
	b.SetSkipped(s.Fault(env, i, b.Skipped()))
}

// Pending reports whether member i has a part in an open check or dispute.
func (s Cases) Pending(i record.Member) bool { return s.Busy()[i>>3]>>(i&7)&1 == 1 }

// Busy returns the bitmap of the members that have a part in an open check or dispute.
func (s Cases) Busy() []byte {
	list := make([]byte, s.Layout.Bitmap)
	add := func(i record.Member) { list[i>>3] |= 1 << (i & 7) }
	for k := s.NextCheck(0); k < s.Layout.ChecksMax; k = s.NextCheck(k + 1) {
		add(s.Check(k).Member())
		add(s.Check(k).Verifier())
	}
	for k := range uint32(record.DisputesMax) {
		d := s.dispute(k)
		if d.free() {
			continue
		}
		add(d.accused())
		if d.b.Accuser() != NoMember {
			add(d.b.Accuser())
		}
		for i := range d.ties() {
			add(d.tie(i).Member)
		}
	}
	return list
}

// KeepUp returns the members of a list that compute member i's share in about its time, in a part
// of the list. It returns the whole list if there are none, or if shares are equal.
func (s Cases) KeepUp(list []record.Member, i record.Member) []record.Member {
	if s.h().Sharing() == record.SharingEqual {
		return list
	}
	n := 0
	for _, v := range list {
		if Nearly(s.Place(v).Speed(), s.Place(i).Speed()) {
			list[n], n = v, n+1
		}
	}
	if n == 0 {
		return list
	}
	return list[:n]
}

// Nearly reports whether a member of this speed needs at most twice the time of another.
func Nearly(speed, other uint32) bool { return 2*uint64(speed) >= uint64(other) }
