package host

import (
	"slices"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

// bank holds the chain's tokens. The genesis makes all of them. Each lies in a purse, in a pool,
// in the escrow of a run or behind a replica, and no transaction makes or destroys one: Host
// checks that after every transaction.
//
// A purse is a key's tokens. An empty purse is dropped, and no purse starts with or is left with
// less than floor, so that filling the table takes a share of the supply.
type bank struct {
	supply   uint64
	purses   []purse // in order of keys
	pools    []*pool // in order of names
	inPurses uint64  // the sum of purses
	inPools  uint64  // the sum of pools
	// Hashes of the purses by the first byte of their keys, where not stale.
	buckets [bucketCount]wire.Hash
	stale   [bucketCount]bool
	root    wire.Hash // over buckets, if not dirty
	hash    wire.Hash // of the pools, if not dirty
	dirty   bool
}

type purse struct {
	key    key.Public
	tokens uint64 // never 0
}

// newBank distributes the tokens of the genesis.
func newBank(g Genesis) bank {
	b := bank{dirty: true, supply: g.supply()}
	for _, a := range g.Accounts {
		b.purses = append(b.purses, purse{key: a.Key, tokens: a.Amount})
		b.inPurses += a.Amount
	}
	b.allStale()
	return b
}

// floor returns the least that a purse holds: PursesMax such purses hold a 256th of the supply.
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

// mayPay returns nil if amount may leave the purse of k, or a *TxError.
func (b *bank) mayPay(k key.Public, amount uint64) error {
	have := b.tokens(k)
	if amount > have {
		return refuse(CodeFunds, "the sender has ", have, " tokens, not ", amount)
	}
	if left := have - amount; amount > 0 && left > 0 && left < b.floor() {
		return refuse(CodeDust, "the purse would keep ", left, " tokens: pay all of it, or leave at least ", b.floor())
	}
	return nil
}

// mayReceive returns nil if k can receive amount, or a *TxError. Pools and existing purses take
// any amount; a new purse starts with at least floor.
func (b *bank) mayReceive(k key.Public, amount uint64) error {
	if _, ok := b.find(k); ok || amount == 0 || b.poolAt(k) != nil {
		return nil
	}
	switch {
	case k.IsZero():
		return refuse(CodeAmount, "the receiver is the zero key")
	case amount < b.floor():
		return refuse(CodeDust, "the first tokens of ", k, " must be at least ", b.floor())
	case len(b.purses) >= PursesMax:
		return &TxError{Code: CodePursesFull}
	}
	return nil
}

// pay takes out of a purse what mayPay allowed.
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

// receive puts tokens into the pool at the address k, or else into k's purse.
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

// poolAt returns the pool whose address is k, or nil.
func (b *bank) poolAt(k key.Public) *pool {
	for _, p := range b.pools {
		if p.address == k {
			return p
		}
	}
	return nil
}

// sums returns the hashes of the purses, a Merkle root over buckets, and of the pools.
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

// bucketCount is the number of parts that the purses are divided into, so that one can be proven
// without the others.
const bucketCount = 256

// bucket returns the purses whose keys begin with a byte, as append writes them.
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

// audit panics unless purses and pools hold what the running sums say.
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

// parseBank reads what append wrote. Its caller checks that purses, pools, replicas and escrow
// add up to the supply.
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
