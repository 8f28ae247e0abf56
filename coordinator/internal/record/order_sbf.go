//go:build sbf

package record

import "unsafe"

// Solana's machine is little endian, and reads numbers anywhere in one instruction. Its compiler
// would read a byte at a time.

func u16(b []byte) uint16 { return *(*uint16)(unsafe.Pointer((*[2]byte)(b))) }
func u32(b []byte) uint32 { return *(*uint32)(unsafe.Pointer((*[4]byte)(b))) }
func u64(b []byte) uint64 { return *(*uint64)(unsafe.Pointer((*[8]byte)(b))) }

func putU16(b []byte, v uint16) { *(*uint16)(unsafe.Pointer((*[2]byte)(b))) = v }
func putU32(b []byte, v uint32) { *(*uint32)(unsafe.Pointer((*[4]byte)(b))) = v }
func putU64(b []byte, v uint64) { *(*uint64)(unsafe.Pointer((*[8]byte)(b))) = v }
