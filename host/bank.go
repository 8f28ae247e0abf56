package host

import (
	"slices"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

// bank is who has which of the chain's tokens. The genesis makes all there ever are. Each lies in a purse, in a pool, or in
// the escrow of a run, and no transaction makes or destroys one: Host checks that after every one.
//
// A purse is a key's tokens. One that is empty is forgotten, and none is made with less than floor or left with less, so
// that to fill the table takes a share of the supply.
type bank struct {
	supply   uint64
	purses   []purse                // in order of keys
	pools    []*pool                // in order of names
	inPurses uint64                 // the sum of purses
	inPools  uint64                 // the sum of pools
	buckets  [bucketCount]wire.Hash // of the purses by the first byte of their keys, where not stale
	stale    [bucketCount]bool
	root     wire.Hash // over buckets, when not dirty
	hash     wire.Hash // of the pools, when not dirty
	dirty    bool
}

type purse struct {
	key    key.Public
	tokens uint64 // never 0
}

// newBank gives the genesis' tokens to whom it names.
func newBank(g Genesis) bank {
	b := bank{dirty: true, supply: g.supply()}
	for _, a := range g.Accounts {
		b.purses = append(b.purses, purse{key: a.Key, tokens: a.Amount})
		b.inPurses += a.Amount
	}
	b.allStale()
	return b
}

// floor is the least that a purse holds: PursesMax of them are worth a 256th of the supply.
func (b *bank) floor() uint64 { return max(1, b.supply>>26) }

func (b *bank) find(k key.Public) (int, bool) {
	return slices.BinarySearchFunc(b.purses, k, func(p purse, k key.Public) int { return p.key.Compare(k) })
}

// tokens returns what is in the purse of k.
func (b *bank) tokens(k key.Public) uint64 {
	if i, ok := b.find(k); ok {
		return b.purses[i].tokens
	}
	return 0
}

// mayPay tells whether so many tokens may leave the purse of k. The error is a *TxError.
func (b *bank) mayPay(k key.Public, amount uint64) error {
	have := b.tokens(k)
	if amount > have {
		return refuse(CodeFunds, "it has ", have, ", not ", amount)
	}
	if left := have - amount; amount > 0 && left > 0 && left < b.floor() {
		return refuse(CodeDust, left, " would be left, less than ", b.floor(), ": pay all of it, or leave that much")
	}
	return nil
}

// mayReceive tells whether so many tokens may come to k: a pool takes any, a purse too, a new purse begins with floor. The
// error is a *TxError.
func (b *bank) mayReceive(k key.Public, amount uint64) error {
	if _, ok := b.find(k); ok || amount == 0 || b.poolAt(k) != nil {
		return nil
	}
	switch {
	case k.IsZero():
		return refuse(CodeAmount, "the zero key is nobody's")
	case amount < b.floor():
		return refuse(CodeDust, k, " has nothing yet, and begins with ", b.floor(), " at least")
	case len(b.purses) >= PursesMax:
		return &TxError{Code: CodePursesFull}
	}
	return nil
}

// pay takes tokens out of a purse, as mayPay allowed.
func (b *bank) pay(k key.Public, amount uint64) {
	if amount == 0 {
		return
	}
	i, ok := b.find(k)
	if !ok || b.purses[i].tokens < amount {
		panic(text("host: ", k, " pays ", amount, " tokens that it does not have"))
	}
	b.dirty, b.stale[k[0]] = true, true
	b.inPurses -= amount
	b.purses[i].tokens -= amount
	if b.purses[i].tokens == 0 {
		b.purses = slices.Delete(b.purses, i, i+1)
	}
}

// receive gives tokens to a pool, if k is the address of one, or else puts them into k's purse.
func (b *bank) receive(k key.Public, amount uint64) {
	if amount == 0 {
		return
	}
	b.dirty = true
	if p := b.poolAt(k); p != nil {
		p.come(amount)
		b.inPools += amount
		return
	}
	b.stale[k[0]] = true
	b.inPurses += amount
	i, ok := b.find(k)
	if !ok {
		b.purses = slices.Insert(b.purses, i, purse{key: k})
	}
	b.purses[i].tokens += amount
}

func (b *bank) findPool(name string) (int, bool) {
	return slices.BinarySearchFunc(b.pools, name, func(p *pool, name string) int {
		switch {
		case p.name < name:
			return -1
		case p.name > name:
			return 1
		}
		return 0
	})
}

// poolAt returns the pool whose address k is, or nil.
func (b *bank) poolAt(k key.Public) *pool {
	for _, p := range b.pools {
		if p.address == k {
			return p
		}
	}
	return nil
}

// sums returns the hashes of the purses, a merkle root over buckets, and of the pools.
func (b *bank) sums() (purses, pools wire.Hash) {
	if b.dirty {
		b.audit()
		for i := range b.buckets {
			if b.stale[i] {
				b.buckets[i] = merkle.Leaf(b.bucket(byte(i)))
			}
		}
		b.stale = [bucketCount]bool{}
		b.root, b.hash, b.dirty = merkle.Root(b.buckets[:]), wire.Sum("entrain/ledger/pools", b.appendPools(nil)), false
	}
	return b.root, b.hash
}

// bucketCount is into how many parts the purses are divided, so that one is proven without the others.
const bucketCount = 256

// bucket is the purses whose keys begin with a byte, in order, as append writes them.
func (b *bank) bucket(first byte) []byte {
	from, _ := b.find(key.Public{first})
	var list []byte
	for _, p := range b.purses[from:] {
		if p.key[0] != first {
			break
		}
		list = wire.AppendU64(append(list, p.key[:]...), p.tokens)
	}
	return list
}

func (b *bank) allStale() {
	for i := range b.stale {
		b.stale[i] = true
	}
}

// audit counts purses and pools, against the sums that are kept.
func (b *bank) audit() {
	purses, pools := uint64(0), uint64(0)
	for _, p := range b.purses {
		purses += p.tokens
	}
	for _, p := range b.pools {
		pools += p.tokens()
	}
	if purses != b.inPurses || pools != b.inPools {
		panic(text("host: purses hold ", purses, " tokens and pools ", pools, ", where ", b.inPurses, " and ", b.inPools, " should be"))
	}
}

func (b *bank) append(dst []byte) []byte {
	dst = wire.AppendU32(dst, uint32(len(b.purses)))
	for _, p := range b.purses {
		dst = append(dst, p.key[:]...)
		dst = wire.AppendU64(dst, p.tokens)
	}
	return b.appendPools(dst)
}

func (b *bank) appendPools(dst []byte) []byte {
	dst = wire.AppendU16(dst, uint16(len(b.pools)))
	for _, p := range b.pools {
		dst = p.append(dst)
	}
	return dst
}

const purseBytes = 32 + 8

// parseBank reads what append wrote. Whether purses, pools and escrow make the supply, the host checks.
func parseBank(r *wire.Reader, g Genesis) bank {
	b := bank{dirty: true, supply: g.supply()}
	b.allStale()
	n := r.U32()
	if n > PursesMax || uint64(n)*purseBytes > uint64(r.Len()) {
		r.Fail(wire.ErrTooLong)
		return bank{}
	}
	b.purses = make([]purse, 0, n)
	for range n {
		var p purse
		copy(p.key[:], r.Bytes(len(p.key)))
		p.tokens = r.U64()
		if p.tokens == 0 || p.tokens > b.supply-b.inPurses {
			r.Fail(wire.ErrOutOfRange)
		}
		if k := len(b.purses); k > 0 && b.purses[k-1].key.Compare(p.key) >= 0 {
			r.Fail(wire.ErrNotCanonical)
		}
		if r.Err() != wire.OK {
			return bank{}
		}
		b.inPurses += p.tokens
		b.purses = append(b.purses, p)
	}
	b.readPools(r, g.Chain)
	return b
}

func (b *bank) readPools(r *wire.Reader, chain string) {
	m := r.U16()
	if m > PoolsMax {
		r.Fail(wire.ErrTooLong)
	}
	for range m {
		p := parsePool(r, chain)
		if r.Err() != wire.OK {
			return
		}
		if k := len(b.pools); k > 0 && b.pools[k-1].name >= p.name {
			r.Fail(wire.ErrNotCanonical)
			return
		}
		if _, ok := b.find(p.address); ok || p.overfull(b.supply-b.inPurses-b.inPools) {
			r.Fail(wire.ErrOutOfRange)
			return
		}
		b.inPools += p.tokens()
		b.pools = append(b.pools, p)
	}
}
