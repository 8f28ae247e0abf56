package host

import (
	"math/bits"
	"slices"

	"github.com/entrain-network/entrain/host/wide"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// pool holds the tokens of lenders, with which an operator's machines stake. They can only become
// stake of members that the runs pay at the pool's address. Income at the address belongs to the
// lenders, less the operator's commission.
//
// While the pool lends, tokens come and go. With the first stake it starts to work, and each
// lender's share is fixed. All income is shared from then on: first until all that was lent is
// back, free of commission; the commission applies to the rest. A lender is due its share of all
// that was ever shared, rounded down, less what it was paid. A closed pool stakes no more and
// shares what was not staked; stake that is still out comes back later.
//
// In numbers: deposit + idle + held + fee + unpaid are the tokens in the pool. Unpaid is what
// lenders are due, plus fewer tokens than there are lenders, left by rounding.
type pool struct {
	name    string
	address key.Public
	terms   CreatePool // as set by its operator
	opener  key.Public // the operator
	stage   poolStage
	deposit uint64 // the operator's, for the place in the table; returned when the pool is removed
	usedMs  uint64 // time of creation, or of the last stake

	lent    uint64    // the sum of the lenders'
	idle    uint64    // part of lent that was not staked yet
	held    uint64    // income before the first stake, shared at it
	back    uint64    // part of the income that replaced what was lent
	rest    uint16    // fraction of the commission, in 10,000ths of a token
	fee     uint64    // commission that the operator has not collected
	shared  wide.Uint // shared among the lenders, ever
	unpaid  uint64    // part of shared that they have not collected
	lenders []lender
}

type lender struct {
	key  key.Public
	lent uint64
	paid wide.Uint // ever
}

type poolStage uint8

const (
	poolLends  poolStage = 1
	poolWorks  poolStage = 2
	poolClosed poolStage = 3
)

func (s poolStage) String() string {
	switch s {
	case poolLends:
		return "lending"
	case poolWorks:
		return "working"
	}
	return "closed"
}

// PoolAddress returns the key at which the chain's runs pay the pool of that name. It is a hash:
// no secret key is known for it.
func PoolAddress(chain, name string) key.Public {
	return key.Public(wire.Sum("entrain/ledger/pool", wire.AppendString(nil, chain), []byte(name)))
}

const wholeBP = 10_000 // basis points in one

func (p *pool) find(k key.Public) (int, bool) {
	return slices.BinarySearchFunc(p.lenders, k, func(l lender, k key.Public) int { return l.key.Compare(k) })
}

// lentBy returns what k has lent.
func (p *pool) lentBy(k key.Public) uint64 {
	if i, ok := p.find(k); ok {
		return p.lenders[i].lent
	}
	return 0
}

// tokens returns all that is in the pool.
func (p *pool) tokens() uint64 { return p.deposit + p.idle + p.held + p.fee + p.unpaid }

// ownEnough reports whether the operator's part is as large as the terms say, if it lent own of
// all.
func (p *pool) ownEnough(own, all uint64) bool {
	oh, ol := bits.Mul64(own, wholeBP)
	ah, al := bits.Mul64(all, uint64(p.terms.OwnBP))
	return oh > ah || oh == ah && ol >= al
}

// mayLend returns nil if k may lend amount, or a *TxError.
func (p *pool) mayLend(k key.Public, amount uint64) error {
	own := p.lentBy(p.opener)
	if k == p.opener {
		own += amount
	}
	_, known := p.find(k)
	switch {
	case p.stage != poolLends:
		return refuse(CodePoolStage, "pool ", quote(p.name), " is ", p.stage, ": it takes loans only before its first stake")
	case amount == 0 || !known && amount < p.terms.Least:
		return refuse(CodeAmount, "a lender of pool ", quote(p.name), " starts with at least ", max(1, p.terms.Least), ", not ", amount)
	case !known && len(p.lenders) >= LendersMax:
		return refuse(CodePoolTerms, "pool ", quote(p.name), " has ", LendersMax, " lenders, and no room for more")
	case !p.ownEnough(own, p.lent+amount):
		return refuse(CodePoolTerms, "the operator of pool ", quote(p.name), " would lend ", own, " of ", p.lent+amount, ", less than ", p.terms.OwnBP, " basis points of it")
	}
	return nil
}

// lend takes what mayLend allowed.
func (p *pool) lend(k key.Public, amount uint64) {
	i, ok := p.find(k)
	if !ok {
		p.lenders = slices.Insert(p.lenders, i, lender{key: k})
	}
	p.lenders[i].lent += amount
	p.lent += amount
	p.idle += amount
}

// due returns what k can collect.
func (p *pool) due(k key.Public) uint64 {
	if p.stage == poolLends {
		return p.lentBy(k)
	}
	n := uint64(0)
	if k == p.opener {
		n = p.fee
	}
	if i, ok := p.find(k); ok {
		n += p.share(p.lenders[i])
	}
	return n
}

// share returns what a lender is due of all that was shared.
func (p *pool) share(l lender) uint64 { return p.shared.Part(l.lent, p.lent).Minus(l.paid).Lo }

// mayCollect returns nil if k can collect what it is due now, or a *TxError.
func (p *pool) mayCollect(k key.Public) error {
	due := p.due(k)
	if due == 0 {
		return refuse(CodeNothingDue, "pool ", quote(p.name), " owes ", k, " nothing now")
	}
	if p.stage == poolLends && k == p.opener && !p.ownEnough(0, p.lent-due) {
		return refuse(CodePoolTerms, "others have lent to pool ", quote(p.name), " because its operator has: close it instead")
	}
	return nil
}

// collect pays out what k is due. Before the first stake, that is its loan.
func (p *pool) collect(k key.Public) uint64 {
	due := p.due(k)
	i, lends := p.find(k)
	if p.stage == poolLends {
		p.lenders = slices.Delete(p.lenders, i, i+1)
		p.lent -= due
		p.idle -= due
		return due
	}
	if k == p.opener {
		p.fee = 0
	}
	if lends {
		share := p.share(p.lenders[i])
		p.lenders[i].paid = p.lenders[i].paid.Plus(share)
		p.unpaid -= share
	}
	return due
}

// come takes what was paid at the pool's address.
func (p *pool) come(amount uint64) {
	switch {
	case amount == 0:
	case p.stage == poolLends:
		p.held += amount
	case p.lent == 0: // closed before there was a lender
		p.fee += amount
	default:
		capital := min(amount, p.lent-p.back)
		p.back += capital
		hi, lo := bits.Mul64(amount-capital, uint64(p.terms.CommissionBP))
		lo, carry := bits.Add64(lo, uint64(p.rest), 0)
		commission, rest := bits.Div64(hi+carry, lo, wholeBP)
		p.rest = uint16(rest)
		p.fee += commission
		p.shared = p.shared.Plus(amount - commission)
		p.unpaid += amount - commission
	}
}

// stake takes out of the pool what becomes stake, and so ends the lending.
func (p *pool) stake(amount, nowMs uint64) {
	p.idle -= amount
	p.usedMs = nowMs
	p.settle(poolWorks)
}

// settle moves the pool to a later stage, and shares what that releases.
func (p *pool) settle(to poolStage) {
	if p.stage >= to {
		return
	}
	p.stage = to
	n := p.held
	p.held = 0
	if to == poolClosed {
		n += p.idle
		p.idle = 0
	}
	p.come(n)
}

// spent reports whether nothing is due to anyone.
func (p *pool) spent() bool {
	for _, l := range p.lenders {
		if p.share(l) > 0 {
			return false
		}
	}
	return p.fee == 0
}

// mayClose reports whether k may close the pool: its operator at any time, a lender when nothing
// was staked for PoolQuietMs.
func (p *pool) mayClose(k key.Public, nowMs uint64) bool {
	_, lends := p.find(k)
	return k == p.opener || lends && nowMs >= p.usedMs && nowMs-p.usedMs >= PoolQuietMs
}
