package solana

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sort"
)

// transactionBytesMax bounds a transaction: what fits a packet of IPv6's smallest.
const transactionBytesMax = 1232

// AccountRef is an account of an instruction, and what the instruction asks of it.
type AccountRef struct {
	Address          Address
	Signer, Writable bool
}

// Instruction is a call of a program.
type Instruction struct {
	Program  Address
	Accounts []AccountRef
	Data     []byte
}

// Transaction returns the instructions as a signed transaction (of the first, "legacy" form). The
// payer, the first signer, pays the fee. The recent blockhash bounds its life to some 150 blocks.
// It fails if a signature is missing or the bytes exceed transactionBytesMax.
func Transaction(recent [32]byte, signers []Signer, list ...Instruction) ([]byte, error) {
	message, names, err := encode(recent, signers[0].Address(), list)
	if err != nil {
		return nil, err
	}
	tx := appendLength(nil, len(names))
	for _, name := range names {
		at := slices.IndexFunc(signers, func(s Signer) bool { return s.Address() == name })
		if at < 0 {
			return nil, fmt.Errorf("the transaction needs the signature of %v", name)
		}
		tx = append(tx, signers[at].sign(message)...)
	}
	tx = append(tx, message...)
	if len(tx) > transactionBytesMax {
		return nil, fmt.Errorf("the transaction has %d bytes, at most %d are allowed", len(tx), transactionBytesMax)
	}
	return tx, nil
}

// encode returns the bytes that are signed, and who must sign them.
func encode(recent [32]byte, payer Address, list []Instruction) (message []byte, signers []Address, err error) {
	refs := []AccountRef{{payer, true, true}}
	add := func(r AccountRef) {
		for i := range refs {
			if refs[i].Address == r.Address {
				refs[i].Signer = refs[i].Signer || r.Signer
				refs[i].Writable = refs[i].Writable || r.Writable
				return
			}
		}
		refs = append(refs, r)
	}
	for _, in := range list {
		for _, r := range in.Accounts {
			add(r)
		}
		add(AccountRef{Address: in.Program})
	}
	rank := func(r AccountRef) int {
		n := 0
		if !r.Signer {
			n += 2
		}
		if !r.Writable {
			n++
		}
		return n
	}
	others := refs[1:]
	sort.SliceStable(others, func(i, j int) bool { return rank(others[i]) < rank(others[j]) })
	if len(refs) > 256 {
		return nil, nil, fmt.Errorf("the transaction names %d accounts, at most 256 are possible", len(refs))
	}
	var readonlySigners, readonly uint8
	for _, r := range refs {
		switch rank(r) {
		case 0:
			signers = append(signers, r.Address)
		case 1:
			signers = append(signers, r.Address)
			readonlySigners++
		case 3:
			readonly++
		}
	}
	place := func(a Address) byte {
		return byte(slices.IndexFunc(refs, func(r AccountRef) bool { return r.Address == a }))
	}
	b := []byte{uint8(len(signers)), readonlySigners, readonly}
	b = appendLength(b, len(refs))
	for _, r := range refs {
		b = append(b, r.Address[:]...)
	}
	b = append(b, recent[:]...)
	b = appendLength(b, len(list))
	for _, in := range list {
		b = append(b, place(in.Program))
		b = appendLength(b, len(in.Accounts))
		for _, r := range in.Accounts {
			b = append(b, place(r.Address))
		}
		b = appendLength(b, len(in.Data))
		b = append(b, in.Data...)
	}
	return b, signers, nil
}

// appendLength appends a length in groups of seven bits, least first.
func appendLength(b []byte, n int) []byte { return binary.AppendUvarint(b, uint64(n)) }
