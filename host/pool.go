package host

import (
	"math/bits"
	"slices"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// pool is lenders' tokens with which an operator's machines stake. They can become nothing but stake of members whom the
// runs pay at the pool's address, and what comes there is the lenders', less the operator's commission.
//
// While it lends, tokens come and go. With the first stake it works, and each lender's share is fixed. What has come in
// since is shared by it: first until all that was lent is back, free of commission; the commission is on what is above. A
// lender is due so much of all that was ever shared as it lent of what was lent, rounded down, less what it was paid. A
// pool that is closed stakes no more, and shares what was not staked; what is out still comes back.
//
// In numbers: deposit + idle + held + fee + unpaid are the tokens in the pool; unpaid is what is due to the lenders, and
// fewer tokens than there are lenders that rounding has left.
type pool struct {
	name    string
	address key.Public
	terms   CreatePool // as its operator said
	opener  key.Public // the operator
	stage   poolStage
	deposit uint64 // the operator's, for the place in the table; it comes back when the pool is removed
	usedMs  uint64 // when it was created, or staked last

	lent    uint64 // the sum of the lenders'
	idle    uint64 // of it, what was not staked yet
	held    uint64 // came before the first stake, and is shared then
	back    uint64 // of what came, what only made good for what was lent
	rest    uint16 // of the commission, in 10,000ths of a token
	fee     uint64 // of the commission, what the operator has not collected
	shared  wide   // ever, among the lenders
	unpaid  uint64 // of it, what they have not collected
	lenders []lender
}

type lender struct {
	key  key.Public
	lent uint64
	paid wide // ever
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

// PoolAddress returns the key under which a chain's pool of that name is paid. Nobody has the secret to it.
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

// tokens is all that lies in the pool.
func (p *pool) tokens() uint64 { return p.deposit + p.idle + p.held + p.fee + p.unpaid }

// ownEnough tells whether the operator's own part is as large as the terms say, if it lent own of all.
func (p *pool) ownEnough(own, all uint64) bool {
	oh, ol := bits.Mul64(own, wholeBP)
	ah, al := bits.Mul64(all, uint64(p.terms.OwnBP))
	return oh > ah || oh == ah && ol >= al
}

// mayLend tells whether k may lend so much. The error is a *TxError.
func (p *pool) mayLend(k key.Public, amount uint64) error {
	own := p.lentBy(p.opener)
	if k == p.opener {
		own += amount
	}
	_, known := p.find(k)
	switch {
	case p.stage != poolLends:
		return refuse(CodePoolStage, "pool ", quote(p.name), " is ", p.stage, ": lenders come before its first stake")
	case amount == 0 || !known && amount < p.terms.Least:
		return refuse(CodeAmount, amount, ", where a lender of pool ", quote(p.name), " begins with ", max(1, p.terms.Least))
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

// due returns what k could collect.
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
func (p *pool) share(l lender) uint64 { return p.shared.part(l.lent, p.lent).minus(l.paid).lo }

// mayCollect tells whether k may collect what is due to it now. The error is a *TxError.
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

// collect pays out what k is due: all it has lent, before the first stake.
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
		p.lenders[i].paid = p.lenders[i].paid.plus(share)
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
	case p.lent == 0: // closed before anybody lent
		p.fee += amount
	default:
		capital := min(amount, p.lent-p.back)
		p.back += capital
		hi, lo := bits.Mul64(amount-capital, uint64(p.terms.CommissionBP))
		lo, carry := bits.Add64(lo, uint64(p.rest), 0)
		commission, rest := bits.Div64(hi+carry, lo, wholeBP)
		p.rest = uint16(rest)
		p.fee += commission
		p.shared = p.shared.plus(amount - commission)
		p.unpaid += amount - commission
	}
}

// stake takes tokens that have become stake out of the pool, and so ends the lending.
func (p *pool) stake(amount, nowMs uint64) {
	p.idle -= amount
	p.usedMs = nowMs
	p.settle(poolWorks)
}

// settle goes on to a later stage, and shares what it sets free.
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

// spent tells whether nobody is due anything.
func (p *pool) spent() bool {
	for _, l := range p.lenders {
		if p.share(l) > 0 {
			return false
		}
	}
	return p.fee == 0
}

// mayClose tells whether k may close the pool: its operator may at any time, a lender when nothing was staked for long.
func (p *pool) mayClose(k key.Public, nowMs uint64) bool {
	_, lends := p.find(k)
	return k == p.opener || lends && nowMs >= p.usedMs && nowMs-p.usedMs >= PoolQuietMs
}
