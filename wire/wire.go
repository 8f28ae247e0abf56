// Package wire writes, reads and hashes all encodings in entrain.
//
// Every message, commitment and piece of replicated state has exactly one encoding, because its
// hash is compared between machines that do not trust each other. The encoding is the plainest that
// has this property:
//
//	U8 U16 U32 U64   unsigned integers of fixed width, little endian
//	Bool             one byte, 0 or 1 and nothing else
//	Hash             32 bytes
//	Var              a U32 length, then that many bytes
//
// There are no optional fields, tags or padding. For example, a message made of U16 7, Var "ann"
// and Bool true:
//
//	07 00   03 00 00 00   61 6e 6e   01
//	U16     Var: length   a  n  n    Bool
//
// Values are written by the Append functions, which extend a slice like the built-in append, and
// read by a Reader, whose error is sticky: a parser reads all its fields and asks once, at the end,
// with Done. A Reader allocates nothing and hands out views of its input; every variable length has
// a maximum chosen by the caller, checked before anything is taken.
//
// Sum is the project's hash: SHA-256, separated by domain, so that bytes hashed for one purpose
// never count for another:
//
//	Sum(domain, parts...) = sha256( U8 length of domain | domain | parts, one after the other )
//
// The package is replicated: it keeps to the subset of Go that also compiles for Solana's virtual
// machine (no maps, floats, signed division, package variables, goroutines, fmt), as do all
// packages of the first lines of layers_test.go.
package wire
