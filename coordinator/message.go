package coordinator

import (
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// Message is what a participant or a host tells a run. Who sent it stands in Env.
type Message interface {
	kind() uint8
	append(dst []byte) []byte
}

// The kinds of messages: the first byte of their encoding.
const (
	kindTick       = 0
	kindJoin       = 1
	kindWithdraw   = 2
	kindReady      = 3
	kindWitness    = 4
	kindCheckpoint = 5
	kindPause      = 6
	kindResume     = 7
)

// Bounds of a Witness message, for any limits. bloom.BitsMax is the largest filter there can be.
const filterBytesMax = 1 << 18

// Tick lets time pass. Anybody may send it, hosts do in each block; it never fails.
type Tick struct{}

// Join makes the sender a member, from the next epoch on. Who left or was dropped comes back by it to its old place,
// with its points. Tokens attached to it are added to the sender's stake.
type Join struct {
	Speed uint32     // tokens a second the sender trains; its shares go by it where Config.Sharing says so
	Payee key.Public // who is paid what the sender earns, and gets its stake back; zero = the sender itself
}

// Withdraw ends the sender's membership at once. Its results in flight may still be accepted, and count for it.
type Withdraw struct{}

// Ready says in Warmup that the sender holds the agreed parameters.
type Ready struct {
	Epoch  uint32    // the epoch that is about to begin
	Params wire.Hash // BlobRoot of the parameters held; must be State.Params
}

// Witness is the report of an elected witness of the current round about the results of the attested round (Round.Attests).
type Witness struct {
	Round    uint32 // the current round
	Complete bool   // the sender has done its share of this round, and holds the result of every active member
	// Held is the bitmap of the members whose result the sender holds: bit i%8 (least significant first) of byte i/8 for
	// member i, without zero bytes at the end. Hold makes it.
	Held []byte
	// Commitments is the filter of the IDs of the commitments to those results, of the dimensions Round.Filter, salted by the
	// sender's public key; empty when no round is attested.
	Commitments []byte
	Params      wire.Hash // BlobRoot of the sender's parameters at the start of Round; zero if it does not vouch for its own
}

// Checkpoint says in Cooldown that a checkpoint of the agreed parameters was written.
type Checkpoint struct {
	Epoch    uint32
	Params   wire.Hash // must be State.Params
	Manifest wire.Hash // hash of the checkpoint's manifest
}

// Pause stops the run: at once in WaitingForMembers and Warmup, else when the epoch is drained. Only the owner may.
type Pause struct{}

// Resume takes a paused run back to WaitingForMembers. Only the owner may.
type Resume struct{}

func (Tick) kind() uint8       { return kindTick }
func (Join) kind() uint8       { return kindJoin }
func (Withdraw) kind() uint8   { return kindWithdraw }
func (Ready) kind() uint8      { return kindReady }
func (Witness) kind() uint8    { return kindWitness }
func (Checkpoint) kind() uint8 { return kindCheckpoint }
func (Pause) kind() uint8      { return kindPause }
func (Resume) kind() uint8     { return kindResume }

func (Tick) append(dst []byte) []byte     { return dst }
func (Withdraw) append(dst []byte) []byte { return dst }
func (Pause) append(dst []byte) []byte    { return dst }
func (Resume) append(dst []byte) []byte   { return dst }

func (m Join) append(dst []byte) []byte { return append(wire.AppendU32(dst, m.Speed), m.Payee[:]...) }

func (m Ready) append(dst []byte) []byte {
	return wire.AppendHash(wire.AppendU32(dst, m.Epoch), m.Params)
}

func (m Witness) append(dst []byte) []byte {
	dst = wire.AppendU32(dst, m.Round)
	dst = wire.AppendBool(dst, m.Complete)
	dst = wire.AppendHash(dst, m.Params)
	dst = wire.AppendVar(dst, m.Held)
	return wire.AppendVar(dst, m.Commitments)
}

func (m Checkpoint) append(dst []byte) []byte {
	return wire.AppendHash(wire.AppendHash(wire.AppendU32(dst, m.Epoch), m.Params), m.Manifest)
}

// Append appends the canonical encoding of m, which the package comment lists.
func Append(dst []byte, m Message) []byte { return m.append(wire.AppendU8(dst, m.kind())) }

// ParseMessage is the inverse of Append. It fails with a wire.Error if b is malformed, oversized or not canonical, and with
// ErrMessage if the kind is unknown. The result holds views of b.
func ParseMessage(b []byte) (Message, error) {
	r := wire.NewReader(b)
	var m Message
	switch kind := r.U8(); kind {
	case kindTick:
		m = Tick{}
	case kindJoin:
		m = Join{Speed: r.U32(), Payee: key.Public(r.Hash())}
	case kindWithdraw:
		m = Withdraw{}
	case kindReady:
		m = Ready{Epoch: r.U32(), Params: r.Hash()}
	case kindWitness:
		w := Witness{Round: r.U32(), Complete: r.Bool(), Params: r.Hash(), Held: r.Var(heldBytesMax), Commitments: r.Var(filterBytesMax)}
		if n := len(w.Held); n > 0 && w.Held[n-1] == 0 {
			r.Fail(wire.ErrNotCanonical)
		}
		m = w
	case kindCheckpoint:
		m = Checkpoint{Epoch: r.U32(), Params: r.Hash(), Manifest: r.Hash()}
	case kindPause:
		m = Pause{}
	case kindResume:
		m = Resume{}
	default:
		if m = readMove(kind, &r); m == nil {
			return nil, ErrMessage
		}
	}
	if err := r.Done().OrNil(); err != nil {
		return nil, err
	}
	return m, nil
}

// Hold sets a member's bit in a bitmap of results held (Witness.Held), growing it as needed, and returns it.
func Hold(held []byte, member uint32) []byte {
	for uint32(len(held)) <= member>>3 {
		held = append(held, 0)
	}
	held[member>>3] |= 1 << (member & 7)
	return held
}
