// Package p2p is how participants of a run reach each other without trusting
// each other: small messages to all (gossip), small questions to one (ask), and
// blobs from several at once, every byte of them verified (fetch).
//
// The package holds what every network has in common: the interface [Network],
// the machine behind a fetch ([Download]), the memory of who misbehaved
// ([Standing]) and the bytes of the two stream protocols. Two networks implement
// it: p2p/lp2p on libp2p, for strangers on the internet, and p2p/mem in memory,
// with loss, delay, cuts and liars from a seed, for simulation and tests.
//
// # Identity
//
// A participant is its ed25519 public key, everywhere: on the chain, in gossip
// and at the other end of a connection. Networks authenticate it; a from argument
// is never a claim.
//
// # Blobs
//
// A blob is named by a [Ref]: its Merkle root and its length. It is cut into
// chunks of merkle.ChunkBytes (256 KiB), the last one shorter; the empty blob has
// one empty chunk. A fetch first learns the list of leaves, which must hash to the
// root, then any chunk from anybody, which must hash to its leaf. Nothing counts
// before it is verified. The list of a blob beyond 8 GiB comes in parts, from
// several peers, each with a proof that it is that part of the tree.
//
// # Bytes
//
// Both protocols open a stream, send one request and read answers until the
// stream ends. Integers are little endian. A blob request ([Query]) has 80 bytes:
//
//	run [32] | root [32] | size u64 | from u32 | count u32
//
//	count = 0: from is 0 too; one answer, the leaf hashes in order. Beyond 32768
//	           chunks from is a multiple of 16384, and the answer that many hashes
//	           (of the last part fewer), then its proof: merkle.Prove in the tree
//	           over the parts' roots, whose root is the blob's
//	count > 0: at most 32; count answers, the chunks from, from+1, ...
//
// The size is in it so that the holder of the blob, and not only who asks, can see
// that a reference is false; it then answers as if it did not hold it. An ask
// request is
//
//	run [32] | length u32 | length bytes
//
// and gets one answer. An answer to either is a [Status], followed by bytes if the
// status is 0 (ok); any other status ends the stream:
//
//	status u8 | length u32 | length bytes
//	          (1 missing, 2 busy, 3 refused, 4 another run)
//
// For example, the answer "hi" is 00 02000000 6869, and "I do not hold that" is 01.
package p2p

import (
	"context"
	"errors"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// A Network connects one participant with the others of its run. Its methods may
// be called from any goroutine (mem on a virtual loop: from the loop) and do not
// block on the network. Every done is called exactly once, not before the method
// returns, with an error if ctx or the Network ends first; it is called from any
// goroutine (mem: on the loop).
type Network interface {
	// Self is the key this participant is known by.
	Self() key.Public

	// Addrs are the addresses at which others may reach this participant, in the
	// form Peer.Addrs takes.
	Addrs() []string

	// Connect makes peers the ones to be connected with, replacing those of the
	// call before, and keeps trying in the background. They are allowed to connect
	// in turn, as are all that were named before. Self is skipped. The list must not change later.
	Connect(peers []Peer)

	// Publish sends data, 1 to MaxGossip bytes, to all peers of the run, once; it
	// is a matter of chance whether it reaches each of them. It does not come back
	// to the sender's own Handler.
	Publish(data []byte) error

	// Ask sends a request of at most MaxRequest bytes to a peer and gives done its
	// answer of at most MaxAnswer bytes. The request must not change afterwards.
	Ask(ctx context.Context, to key.Public, request []byte, done func([]byte, error))

	// Fetch gets a blob and gives it to done, verified, or a *FetchError that holds
	// what could be had (other errors if the request itself is bad).
	Fetch(ctx context.Context, f Fetch, done func([]byte, error))

	// Close ends connections and everything that runs, and returns when it has
	// ended. Pending requests end with ErrClosed before that.
	Close() error
}

// A Peer is another participant and where it may be reached, as the ledger lists them. What an
// address looks like is the Network's matter.
type Peer = host.Peer

// A Handler is a participant as the network sees it. Its methods are called from
// any goroutine (mem: on the loop), must not block for long, and must not change the
// slices they are given or, but for gossip, keep them; those they return must not
// change later.
type Handler interface {
	// Gossip judges a message; only accepted ones travel on. From is its author,
	// not the peer that passed it on.
	Gossip(from key.Public, data []byte) Verdict

	// Answer answers a request. Nil refuses it.
	Answer(from key.Public, request []byte) []byte

	Source
}

// A Source holds blobs for others.
type Source interface {
	// Leaves is the leaf list of the blob with this root.
	Leaves(root wire.Hash) ([]wire.Hash, bool)

	// Chunk is the i-th chunk of the blob with this root. Nobody changes it.
	Chunk(root wire.Hash, i uint32) ([]byte, bool)
}

// A Verdict is what becomes of a gossip message.
type Verdict uint8

const (
	// Accept: worth passing on.
	Accept Verdict = iota
	// Ignore: neither good nor bad (late, early, seen before); not passed on.
	Ignore
	// Reject: no honest peer writes or passes on this. It is not passed on, and
	// counts against the sender.
	Reject
)

// Errors a caller may have to tell apart. Those of a fetch come wrapped in a
// *FetchError.
var (
	ErrClosed      = errors.New("the network is closed")
	ErrUnknownPeer = errors.New("no connection with the peer and no address for it")
	ErrTooLarge    = errors.New("message exceeds its size limit")
	ErrLied        = errors.New("sent bytes that do not match their hash")
	ErrMissing     = errors.New("does not hold the blob")
	ErrStalled     = errors.New("sent nothing for too long")
	ErrBusy        = errors.New("has too much to do to answer")
	ErrRefused     = errors.New("refused the request")
	ErrOtherRun    = errors.New("takes part in another run")
	ErrMalformed   = errors.New("sent bytes that are not an answer")
	ErrWrongSize   = errors.New("the blob does not have the length its reference says")
	ErrNoPeers     = errors.New("no peer left to ask")
)
