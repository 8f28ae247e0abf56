//go:build sbf

package main

import (
	"unsafe"

	"github.com/entrain-network/entrain/wire"
)

// account is an account as the machine lays it before a program: this header, its data, and room
// for them to grow.
type account struct {
	first    uint8 // aliasNone, or which account of the list this one is again
	signer   uint8
	writable uint8
	runs     uint8 // it is a program
	_        uint32
	key      [32]byte
	owner    [32]byte
	lamports uint64
	len      uint64
}

const (
	aliasNone   = 0xff
	growth      = 10240 // bytes behind each account's data
	accountsMax = 10
)

func (a *account) data() []byte {
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(a), unsafe.Sizeof(account{}))), a.len)
}

// call is an instruction: its accounts, its data, and the program's own address.
type call struct {
	n       int
	list    [accountsMax]*account
	data    []byte
	program *[32]byte
}

// parse reads what the machine passes to a program. No account may stand in the list twice.
func (c *call) parse(in unsafe.Pointer) error {
	n := *(*uint64)(in)
	if n > accountsMax {
		return errAccounts
	}
	c.n = int(n)
	p := unsafe.Add(in, 8)
	for i := range c.n {
		a := (*account)(p)
		if a.first != aliasNone {
			return errAccounts
		}
		c.list[i] = a
		end := uintptr(p) + unsafe.Sizeof(account{}) + uintptr(a.len) + growth
		p = unsafe.Add(p, (end+7)&^7+8-uintptr(p)) // and 8 bytes of no use today
	}
	size := *(*uint64)(p)
	c.data = unsafe.Slice((*byte)(unsafe.Add(p, 8)), size)
	c.program = (*[32]byte)(unsafe.Add(p, 8+size))
	return nil
}

// owns reports whether an account belongs to the program, which alone can then have written it.
func (c *call) owns(a *account) error {
	if a.owner != *c.program {
		return errOwner
	}
	return nil
}

// own is owns of an account that the instruction will write.
func (c *call) own(a *account) error {
	if a.writable == 0 {
		return errWritable
	}
	return c.owns(a)
}

// magic returns the first bytes of an account, which tell what it is: 0 of one that is new, or too
// short for anything.
func magic(a *account) uint32 {
	if a.len < bufferHeader {
		return 0
	}
	return *(*uint32)(unsafe.Pointer(&a.data()[0]))
}

// A buffer is an account with a message in it:
//
//	U32 bufferMagic, 32 bytes author, message
const (
	bufferMagic  = 0x42544e45 // "ENTB"
	specMagic    = 0x53544e45 // "ENTS": a buffer that is sealed
	rulesMagic   = 0x52544e45 // "ENTR": one whose author is now the run that it is for
	workMagic    = 0x57544e45 // "ENTW": what of a judgement is computed
	bufferAt     = 4
	bufferHeader = bufferAt + 32
)

func bufferAuthor(a *account) [32]byte { return [32]byte(a.data()[bufferAt:bufferHeader]) }

// write writes a part of a message into a buffer. A new one becomes its first author's.
func (c *call) write(r *wire.Reader) error {
	at := r.U32()
	part := r.Rest()
	if r.Err() != wire.OK {
		return errData
	}
	if c.n != 2 {
		return errAccounts
	}
	buffer, author := c.list[0], c.list[1]
	if err := c.own(buffer); err != nil {
		return err
	}
	if author.signer == 0 {
		return errSigner
	}
	b := buffer.data()
	if uint64(len(b)) < bufferHeader+uint64(at)+uint64(len(part)) {
		return errLength
	}
	switch magic(buffer) {
	case bufferMagic:
		if bufferAuthor(buffer) != author.key {
			return errAuthor
		}
	case 0:
		*(*uint32)(unsafe.Pointer(&b[0])) = bufferMagic
		copy(b[bufferAt:], author.key[:])
	default:
		return errKind
	}
	copy(b[bufferHeader+at:], part)
	return nil
}
