package host

import (
	"slices"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// accounts keeps transactions from counting twice.
//
// For each key it keeps the newest NoncesKept transactions. A nonce is new if it is not among
// them and, once there are NoncesKept, greater than the least of them. That least nonce only
// grows, so a nonce that was dropped is refused forever. A key is forgotten when the last of its
// transactions has expired. So no transaction can count twice, up to NoncesKept transactions of
// one key may overtake each other, and a client that repeats one learns its outcome.
type accounts struct {
	list  []*account // in order of keys
	hash  wire.Hash  // the hash of the table, if not dirty
	dirty bool
	bytes []byte // memory of append
}

type account struct {
	key       key.Public
	expiresMs uint64 // the latest expiry among all its transactions so far
	recent    []used // in order of nonces, at most NoncesKept, never empty
}

// used is a transaction that was taken.
type used struct {
	nonce uint64
	id    wire.Hash
	code  Code
}

func (a *accounts) find(k key.Public) (int, bool) {
	return slices.BinarySearchFunc(a.list, k, func(e *account, k key.Public) int { return e.key.Compare(k) })
}

// admit returns nil if t may be taken at the chain's time, or a *TxError. Known reports whether the
// chain knows the sender for more than its transactions; such keys always have a place.
func (a *accounts) admit(t *Tx, nowMs uint64, known func() bool) error {
	if t.ExpiresMs <= nowMs {
		return refuse(CodeExpired, "by the chain's time ", (nowMs-t.ExpiresMs)/1000, " s ago")
	}
	if t.ExpiresMs-nowMs > TxLifetimeMs {
		return refuse(CodeExpiresLate, "by the chain's time in ", (t.ExpiresMs-nowMs)/1000, " s, at most ", uint64(TxLifetimeMs/1000), " s are allowed")
	}
	i, ok := a.find(t.Sender)
	if !ok {
		bits := a.workBits()
		switch {
		case bits == 0 || len(a.list) < accountsAllMax && known():
			return nil
		case len(a.list) >= AccountsMax:
			return &TxError{Code: CodeAccountsFull}
		case t.Work() < bits:
			return refuse(CodeWork, "the transaction's ID begins with ", t.Work(), " zero bits, of ", bits)
		}
		return nil
	}
	recent := a.list[i].recent
	_, replayed := slices.BinarySearchFunc(recent, t.Nonce, compareNonce)
	if replayed || len(recent) == NoncesKept && t.Nonce < recent[0].nonce {
		return refuse(CodeReplayed, "nonce ", t.Nonce, "; the newest of this key is ", recent[len(recent)-1].nonce)
	}
	return nil
}

// workBits returns how many zero bits the ID of a stranger's transaction begins with: none while
// the table is a quarter full, then two more for each sixteenth, to WorkBitsMax. To keep the table
// full takes 10^11 hashes in TxLifetimeMs; one transaction takes seconds at most.
func (a *accounts) workBits() int {
	const part, free = AccountsMax / 16, 4
	full := uint(len(a.list)) / part
	if full < free {
		return 0
	}
	return int(min(2*(full-free+1), WorkBitsMax))
}

// take records the outcome of t, which admit accepted.
func (a *accounts) take(t *Tx, code Code) {
	i, ok := a.find(t.Sender)
	if !ok {
		a.list = slices.Insert(a.list, i, &account{key: t.Sender})
	}
	e := a.list[i]
	e.expiresMs = max(e.expiresMs, t.ExpiresMs)
	if len(e.recent) == NoncesKept { // before the insertion, which would double the capacity
		e.recent = slices.Delete(e.recent, 0, 1)
	}
	j, _ := slices.BinarySearchFunc(e.recent, t.Nonce, compareNonce)
	e.recent = slices.Insert(e.recent, j, used{nonce: t.Nonce, id: t.ID, code: code})
	a.dirty = true
}

// outcome returns the outcome of t; false if t was not taken or is no longer remembered.
func (a *accounts) outcome(t *Tx) (Code, bool) {
	i, ok := a.find(t.Sender)
	if !ok {
		return 0, false
	}
	recent := a.list[i].recent
	j, ok := slices.BinarySearchFunc(recent, t.Nonce, compareNonce)
	if !ok || recent[j].id != t.ID {
		return 0, false
	}
	return recent[j].code, true
}

// prune forgets the keys whose transactions have all expired: admit refuses those by their time
// alone.
func (a *accounts) prune(nowMs uint64) {
	n := len(a.list)
	a.list = slices.DeleteFunc(a.list, func(e *account) bool { return e.expiresMs <= nowMs })
	a.dirty = a.dirty || len(a.list) != n
}

func (a *accounts) sum() wire.Hash {
	if a.dirty {
		a.bytes = a.append(a.bytes[:0])
		a.hash, a.dirty = wire.Sum("entrain/ledger/accounts", a.bytes), false
	}
	return a.hash
}

func compareNonce(u used, nonce uint64) int {
	switch {
	case u.nonce < nonce:
		return -1
	case u.nonce > nonce:
		return 1
	}
	return 0
}

func (a *accounts) append(dst []byte) []byte {
	dst = wire.AppendU32(dst, uint32(len(a.list)))
	for _, e := range a.list {
		dst = append(dst, e.key[:]...)
		dst = wire.AppendU64(dst, e.expiresMs)
		dst = wire.AppendU8(dst, uint8(len(e.recent)))
		for _, u := range e.recent {
			dst = wire.AppendU64(dst, u.nonce)
			dst = wire.AppendHash(dst, u.id)
			dst = wire.AppendU16(dst, uint16(u.code))
		}
	}
	return dst
}

const accountBytesMin = 32 + 8 + 1 + 8 + 32 + 2 // an account with one transaction

func parseAccounts(r *wire.Reader) accounts {
	n := r.U32()
	if n > accountsAllMax || uint64(n)*accountBytesMin > uint64(r.Len()) {
		r.Fail(wire.ErrTooLong)
		return accounts{}
	}
	a := accounts{list: make([]*account, 0, n), dirty: true}
	for range n {
		e := new(account)
		copy(e.key[:], r.Bytes(len(e.key)))
		e.expiresMs = r.U64()
		m := r.U8()
		if m == 0 || m > NoncesKept {
			r.Fail(wire.ErrOutOfRange)
		}
		for range m {
			u := used{nonce: r.U64(), id: r.Hash(), code: Code(r.U16())}
			if k := len(e.recent); k > 0 && e.recent[k-1].nonce >= u.nonce {
				r.Fail(wire.ErrNotCanonical)
			}
			if r.Err() != wire.OK {
				return accounts{}
			}
			e.recent = append(e.recent, u)
		}
		if k := len(a.list); k > 0 && a.list[k-1].key.Compare(e.key) >= 0 {
			r.Fail(wire.ErrNotCanonical)
		}
		if r.Err() != wire.OK {
			return accounts{}
		}
		a.list = append(a.list, e)
	}
	return a
}
