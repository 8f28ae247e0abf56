//go:build sbf

package main

import (
	"unsafe"

	"github.com/entrain-network/entrain/coordinator"
)

// book is the accounts of an apply. Those that are not given are nil.
type book struct {
	run, sender             *account
	buffer, rules, work     *account
	vault, authority, token *account
	from, to                *account
}

// take reads the accounts that the flags promise, all of them and no other.
func (c *call) take(flags uint8, b *book) error {
	want := 2
	for _, f := range [5]struct {
		flags uint8
		n     int
	}{{flagBuffer, 1}, {flagRules, 1}, {flagWork, 1}, {flagValue | flagPayout, 3}, {flagValue, 1}} {
		if flags&f.flags != 0 {
			want += f.n
		}
	}
	if flags&flagPayout != 0 {
		want++
	}
	if c.n != want {
		return errAccounts
	}
	b.run, b.sender = c.list[0], c.list[1]
	at := 2
	if flags&flagBuffer != 0 {
		b.buffer = c.list[at]
		at++
	}
	if flags&flagRules != 0 {
		b.rules = c.list[at]
		at++
	}
	if flags&flagWork != 0 {
		b.work = c.list[at]
		at++
	}
	if flags&(flagValue|flagPayout) != 0 {
		b.vault, b.authority, b.token = c.list[at], c.list[at+1], c.list[at+2]
		at += 3
	}
	if flags&flagValue != 0 {
		b.from = c.list[at]
		at++
	}
	if flags&flagPayout != 0 {
		b.to = c.list[at]
	}
	return nil
}

// Parts of a token account (SPL token program, state.rs).
const (
	tokenBytes    = 165
	tokenOwner    = 32
	tokenDelegate = 72  // U32: 1 if there is one
	tokenState    = 108 // U8: 1 if it is in use and not frozen
	tokenCloser   = 129 // U32: 1 if there is one
)

// tokenProgram is the address of the SPL token program.
func tokenProgram() [32]byte {
	return [32]byte{
		0x06, 0xdd, 0xf6, 0xe1, 0xd7, 0x65, 0xa1, 0x93, 0xd9, 0xcb, 0xe1, 0x46, 0xce, 0xeb, 0x79, 0xac,
		0x1c, 0xb4, 0x85, 0xed, 0x5f, 0x5b, 0x37, 0x91, 0x3a, 0x8c, 0xf5, 0x85, 0x7e, 0xff, 0x00, 0xa9,
	}
}

// openVault makes a token account the vault of a new run, if nobody but the program can take tokens
// out of it.
func (c *call) openVault(run, vault *account, t tail) error {
	if vault.owner != tokenProgram() {
		return errOwner
	}
	b := vault.data()
	if len(b) != tokenBytes {
		return errLength
	}
	authority, bump := c.authority(run)
	if [32]byte(b[tokenOwner:tokenOwner+32]) != authority || b[tokenDelegate] != 0 || b[tokenState] != 1 || b[tokenCloser] != 0 {
		return errVault
	}
	*t.vault() = vault.key
	t[tailBump] = bump
	return nil
}

// settle moves the tokens of a message that was applied.
func (c *call) settle(s coordinator.State, b *book, t tail, value uint64) error {
	to, paid := s.Payout()
	if value == 0 && paid == 0 {
		return nil
	}
	if b.vault == nil || value > 0 && b.from == nil || paid > 0 && b.to == nil {
		return errTokens
	}
	if b.vault.key != *t.vault() {
		return errVault
	}
	if b.token.key != tokenProgram() {
		return errOwner
	}
	if value > 0 {
		if err := c.transfer(b, b.from, b.vault, b.sender, value, nil); err != nil {
			return err
		}
	}
	if paid == 0 {
		return nil
	}
	if b.to.owner != tokenProgram() {
		return errOwner
	}
	if d := b.to.data(); len(d) != tokenBytes || [32]byte(d[tokenOwner:tokenOwner+32]) != to {
		return errPayee
	}
	bump := t[tailBump]
	word := vaultSeed()
	seeds := [3]slice{{&word[0], uint64(len(word))}, {&b.run.key[0], 32}, {&bump, 1}}
	return c.transfer(b, b.vault, b.to, b.authority, paid, &seeds)
}

func vaultSeed() [5]byte { return [5]byte{'v', 'a', 'u', 'l', 't'} }

// The machine's structures for calls of other programs.
type (
	slice struct {
		p *byte
		n uint64
	}
	signer struct {
		seeds *slice
		n     uint64
	}
	meta struct {
		key              *[32]byte
		writable, signer uint8
	}
	instruction struct {
		program  *[32]byte
		accounts *meta
		n        uint64
		data     *byte
		len      uint64
	}
	info struct {
		key                    *[32]byte
		lamports               *uint64
		len                    uint64
		data                   *byte
		owner                  *[32]byte
		rentEpoch              uint64
		signer, writable, runs uint8
	}
)

//export sol_invoke_signed_c
func invokeSigned(i *instruction, infos *info, n uint64, signers *signer, nSigners uint64) uint64

//export sol_try_find_program_address
func findAddress(seeds *slice, n uint64, program, out *[32]byte, bump *uint8) uint64

// authority returns the address that owns a run's vault, and what makes it one that nobody has the
// key of.
func (c *call) authority(run *account) (at [32]byte, bump uint8) {
	word := vaultSeed()
	seeds := [2]slice{{&word[0], uint64(len(word))}, {&run.key[0], 32}}
	if findAddress(&seeds[0], 2, c.program, &at, &bump) != 0 {
		panic("no authority")
	}
	return at, bump
}

// transfer calls the token program. The machine itself ends the transaction if that refuses.
func (c *call) transfer(b *book, from, to, authority *account, amount uint64, seeds *[3]slice) error {
	metas := [3]meta{{&from.key, 1, 0}, {&to.key, 1, 0}, {&authority.key, 0, 1}}
	infos := [4]info{describe(from), describe(to), describe(authority), describe(b.token)}
	var data [9]byte
	data[0] = 3 // Transfer
	*(*uint64)(unsafe.Pointer(&data[1])) = amount
	i := instruction{program: &b.token.key, accounts: &metas[0], n: 3, data: &data[0], len: 9}
	return invoke(&i, infos[:], seeds)
}

// invoke calls another program, as the address of seeds if there are any.
func invoke(i *instruction, infos []info, seeds *[3]slice) error {
	var sign signer
	n := uint64(0)
	if seeds != nil {
		sign, n = signer{&seeds[0], 3}, 1
	}
	if invokeSigned(i, &infos[0], uint64(len(infos)), &sign, n) != 0 {
		return errTokens
	}
	return nil
}

func describe(a *account) info {
	return info{
		key: &a.key, lamports: &a.lamports, len: a.len, data: (*byte)(unsafe.Add(unsafe.Pointer(a), unsafe.Sizeof(account{}))),
		owner: &a.owner, signer: a.signer, writable: a.writable, runs: a.runs,
	}
}
