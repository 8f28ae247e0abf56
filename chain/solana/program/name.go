//go:build sbf

package main

import (
	"unsafe"

	"github.com/entrain-network/entrain/wire"
)

// seal makes a buffer of the sender's the specification of a run. Nobody writes into it any more.
func (c *call) seal(spec, sender *account, want wire.Hash) error {
	if err := c.sealAs(specMagic, spec, sender); err != nil {
		return err
	}
	if specHash(spec) != want {
		return errSpec
	}
	return nil
}

func specHash(spec *account) wire.Hash { return wire.Sum("entrain/spec", spec.data()[bufferHeader:]) }

// sealAs makes a buffer of the sender's an account of another kind.
func (c *call) sealAs(kind uint32, buffer, sender *account) error {
	if err := c.own(buffer); err != nil {
		return err
	}
	if magic(buffer) != bufferMagic {
		return errKind
	}
	if bufferAuthor(buffer) != sender.key {
		return errAuthor
	}
	*(*uint32)(unsafe.Pointer(&buffer.data()[0])) = kind
	return nil
}

// A name's account says where a run is:
//
//	U32 nameMagic, 32 bytes run, 32 bytes specification
const (
	nameMagic = 0x4e544e45 // "ENTN"
	nameRun   = 4
	nameSpec  = nameRun + 32
	nameBytes = nameSpec + 32

	nameRent = (128 + nameBytes) * 6960 // lamports that free an account of any rent
)

// Instructions of the system program.
const (
	systemAssign   = 1
	systemTransfer = 2
	systemAllocate = 8
)

// register takes a name for a run. The account may have lamports: a stranger's gift must not keep a
// name from being taken, so it is paid for, made and given to the program in three steps.
func (c *call) register(name string) error {
	run, sender, at, spec, system := c.list[0], c.list[1], c.list[2], c.list[3], c.list[4]
	if at.writable == 0 || sender.writable == 0 {
		return errWritable
	}
	if system.key != [32]byte{} {
		return errOwner
	}
	if at.owner != [32]byte{} || at.len > 0 {
		return errName // taken
	}
	word, text := [3]byte{'r', 'u', 'n'}, []byte(name)
	var want [32]byte
	var bump uint8
	seeds := [3]slice{{&word[0], uint64(len(word))}, {unsafe.SliceData(text), uint64(len(text))}, {&bump, 1}}
	if findAddress(&seeds[0], 2, c.program, &want, &bump) != 0 || want != at.key {
		return errName
	}
	var data [36]byte
	if at.lamports < nameRent {
		data[0] = systemTransfer
		*(*uint64)(unsafe.Pointer(&data[4])) = nameRent - at.lamports
		if err := c.system(sender, at, data[:12], nil); err != nil {
			return err
		}
	}
	data[0] = systemAllocate
	*(*uint64)(unsafe.Pointer(&data[4])) = nameBytes
	if err := c.system(nil, at, data[:12], &seeds); err != nil {
		return err
	}
	data[0] = systemAssign
	copy(data[4:], c.program[:])
	if err := c.system(nil, at, data[:], &seeds); err != nil {
		return err
	}
	b := at.data()
	if len(b) != nameBytes {
		return errLength
	}
	*(*uint32)(unsafe.Pointer(&b[0])) = nameMagic
	copy(b[nameRun:], run.key[:])
	copy(b[nameSpec:], spec.key[:])
	return nil
}

// system calls the system program about an account, which signs by its seeds, or about lamports
// from another one.
func (c *call) system(from, at *account, data []byte, seeds *[3]slice) error {
	program := c.list[4]
	var metas [2]meta
	infos := [3]info{describe(at), describe(program)}
	n := uint64(0)
	if from != nil {
		metas[0] = meta{&from.key, 1, 1}
		infos[2] = describe(from)
		n = 1
	}
	signs := uint8(1)
	if seeds == nil {
		signs = 0
	}
	metas[n] = meta{&at.key, 1, signs}
	i := instruction{program: &program.key, accounts: &metas[0], n: n + 1, data: unsafe.SliceData(data), len: uint64(len(data))}
	return invoke(&i, infos[:2+n], seeds)
}
