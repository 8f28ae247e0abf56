package host

import (
	"github.com/entrain-network/entrain/host/wide"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

func (p *pool) append(dst []byte) []byte {
	dst = p.terms.append(dst)
	dst = append(dst, p.opener[:]...)
	dst = wire.AppendU8(dst, uint8(p.stage))
	for _, n := range []uint64{p.deposit, p.usedMs, p.idle, p.held, p.back, p.fee, p.unpaid} {
		dst = wire.AppendU64(dst, n)
	}
	dst = wire.AppendU16(dst, p.rest)
	dst = p.shared.Append(dst)
	dst = wire.AppendU16(dst, uint16(len(p.lenders)))
	for _, l := range p.lenders {
		dst = append(dst, l.key[:]...)
		dst = wire.AppendU64(dst, l.lent)
		dst = l.paid.Append(dst)
	}
	return dst
}

// parsePool reads what append wrote, and computes the sums.
func parsePool(r *wire.Reader, chain string) *pool {
	p := &pool{terms: readCreatePool(r)}
	p.name, p.address = p.terms.Name, PoolAddress(chain, p.terms.Name)
	copy(p.opener[:], r.Bytes(len(p.opener)))
	p.stage = poolStage(r.U8())
	for _, n := range []*uint64{&p.deposit, &p.usedMs, &p.idle, &p.held, &p.back, &p.fee, &p.unpaid} {
		*n = r.U64()
	}
	p.rest = r.U16()
	p.shared = wide.Read(r)
	n := r.U16()
	if n > LendersMax {
		r.Fail(wire.ErrTooLong)
	}
	for range n {
		var l lender
		copy(l.key[:], r.Bytes(len(l.key)))
		l.lent = r.U64()
		l.paid = wide.Read(r)
		if r.Err() != wire.OK {
			return p
		}
		if l.lent == 0 || l.lent > SupplyMax-p.lent {
			r.Fail(wire.ErrOutOfRange)
			return p
		}
		if k := len(p.lenders); k > 0 && p.lenders[k-1].key.Compare(l.key) >= 0 {
			r.Fail(wire.ErrNotCanonical)
		}
		p.lent += l.lent
		p.lenders = append(p.lenders, l)
	}
	if r.Err() == wire.OK && (p.terms.fault() != nil || p.opener == (key.Public{}) || !p.consistent()) {
		r.Fail(wire.ErrNotCanonical)
	}
	return p
}

// consistent reports whether the numbers can be those of a pool.
func (p *pool) consistent() bool {
	fresh := p.back == 0 && p.fee == 0 && p.unpaid == 0 && p.rest == 0 && p.shared == wide.Uint{}
	switch p.stage {
	case poolLends:
		if !fresh || p.idle != p.lent {
			return false
		}
	case poolWorks:
		if p.held != 0 || p.lent == 0 {
			return false
		}
	case poolClosed:
		if p.held != 0 || p.idle != 0 {
			return false
		}
	default:
		return false
	}
	if p.rest >= wholeBP || p.idle > p.lent || p.back > p.lent || p.lent == 0 && (p.unpaid != 0 || p.shared != wide.Uint{}) {
		return false
	}
	left := p.unpaid
	for _, l := range p.lenders {
		part := p.shared.Part(l.lent, p.lent)
		if part.Less(l.paid) {
			return false
		}
		due := part.Minus(l.paid)
		if due.Hi != 0 || due.Lo > left {
			return false
		}
		left -= due.Lo
	}
	return left < max(1, uint64(len(p.lenders)))
}

// overfull reports whether the pool holds more than most tokens.
func (p *pool) overfull(most uint64) bool {
	for _, n := range []uint64{p.deposit, p.idle, p.held, p.fee, p.unpaid} {
		if n > most {
			return true
		}
		most -= n
	}
	return false
}
