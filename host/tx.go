package host

import (
	"encoding/binary"
	"math/bits"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/host/clock"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

const txDomain = "entrain/tx/2" // of signatures; the number is the format's

// The kinds of a transaction's body.
const (
	kindCreateRun  = 1
	kindAnnounce   = 2
	kindRunMessage = 3
	kindTransfer   = 4
	kindCreatePool = 5
	kindLend       = 6
	kindCollect    = 7
	kindClosePool  = 8
	kindClaimFor   = 9
	kindAdmit      = 10
	kindDelegate   = 11
	kindRevoke     = 12
	kindStake      = 13
	kindVote       = 14
	kindLeave      = 15
	kindRequire    = 16
	kindCloseRun   = 17
	kindSetName    = 18
	kindSight      = 19
)

// Tx is a transaction. The package comment shows its bytes.
type Tx struct {
	Chain     string     // the chain it is meant for
	Sender    key.Public // its signer
	Nonce     uint64     // greater than those of the sender's earlier transactions; see ledger.Signer
	ExpiresMs uint64     // the host takes it only before this time, in milliseconds since 1970
	Body      Body
	Signature key.Signature
	ID        wire.Hash // hash of all of the above except the signature; set by ParseTx
	signed    []byte    // the signed part of the parsed bytes
}

// Body is what a transaction does: CreateRun, Announce, RunMessage, Transfer, CreatePool, Lend,
// Collect, ClosePool, ClaimFor, Admit, Delegate, Revoke, Require, Stake, Vote, Leave,
// CloseRun, SetName or Sight.
type Body interface {
	kind() uint8
	append(dst []byte) []byte
}

// CreateRun creates a run, under the name in its configuration. The sender becomes its owner,
// whom the configuration must name.
type CreateRun struct {
	Limits coordinator.Limits
	Config coordinator.Config
	Spec   []byte // at most SpecBytesMax; SpecHash of it must be the configuration's
}

// Announce replaces the addresses at which the other participants of a run reach the sender. None
// removes the sender.
type Announce struct {
	Run   string
	Addrs []string // at most AddrsMax of at most AddrBytesMax printable ASCII characters
}

// RunMessage carries a message to a run's coordinator, with tokens if the message takes any. They
// move if the coordinator accepts the message.
type RunMessage struct {
	Run     string
	Value   uint64 // tokens
	From    string // the pool that pays; "" for the sender
	Message []byte // as coordinator.Append writes it
}

// ToRun returns the body that carries m to a run's coordinator, without tokens.
func ToRun(run string, m coordinator.Message) RunMessage {
	return RunMessage{Run: run, Message: coordinator.Append(nil, m)}
}

func (CreateRun) kind() uint8  { return kindCreateRun }
func (Announce) kind() uint8   { return kindAnnounce }
func (RunMessage) kind() uint8 { return kindRunMessage }

func (c CreateRun) append(dst []byte) []byte {
	return wire.AppendVar(c.Config.Append(c.Limits.Append(dst)), c.Spec)
}

func (a Announce) append(dst []byte) []byte {
	dst = wire.AppendString(dst, a.Run)
	dst = wire.AppendU8(dst, uint8(len(a.Addrs)))
	for _, addr := range a.Addrs {
		dst = wire.AppendString(dst, addr)
	}
	return dst
}

func (m RunMessage) append(dst []byte) []byte {
	dst = wire.AppendU64(wire.AppendString(dst, m.Run), m.Value)
	return wire.AppendVar(wire.AppendString(dst, m.From), m.Message)
}

// Sign returns the bytes of the transaction, signed by k, whose public key becomes the sender. It
// fails for a body that no host would take.
func (t Tx) Sign(k key.Private) ([]byte, error) {
	t.Sender = k.Public()
	b := t.unsigned()
	sig := k.Sign(txDomain, b)
	b = append(b, sig[:]...)
	if _, err := ParseTx(b); err != nil {
		return nil, failed("sign transaction: ", err)
	}
	return b, nil
}

// Work returns how many zero bits the transaction's ID begins with. A busy chain asks them of keys
// that it does not know; see CodeWork.
func (t Tx) Work() int { return bits.LeadingZeros64(binary.BigEndian.Uint64(t.ID[:])) }

// ToWork sets the least nonce, from the present one on, with which the ID begins with n zero bits.
// That takes about 2^n hashes.
func (t *Tx) ToWork(k key.Private, n int) {
	t.Sender = k.Public()
	b := t.unsigned()
	at := 4 + len(t.Chain) + len(t.Sender)
	for ; ; t.Nonce++ {
		binary.LittleEndian.PutUint64(b[at:], t.Nonce)
		if t.ID = txID(b); t.Work() >= n {
			return
		}
	}
}

func txID(signed []byte) wire.Hash { return wire.Sum("entrain/tx-id", signed) }

func (t Tx) unsigned() []byte {
	b := wire.AppendString(nil, t.Chain)
	b = append(b, t.Sender[:]...)
	b = wire.AppendU64(b, t.Nonce)
	b = wire.AppendU64(b, t.ExpiresMs)
	b = wire.AppendU8(b, t.Body.kind())
	return t.Body.append(b)
}

// ParseTx reads a transaction. It is strict: what it accepts has no other encoding. It does not
// check the signature; see Verify. The Tx keeps b. The error is a *TxError.
func ParseTx(b []byte) (Tx, error) {
	if len(b) > TxBytesMax {
		return Tx{}, refuse(CodeTooLarge, len(b), " bytes, at most ", TxBytesMax)
	}
	var t Tx
	if len(b) < len(t.Signature) {
		return Tx{}, refuse(CodeMalformed, wire.ErrShort)
	}
	t.signed = b[:len(b)-len(t.Signature)]
	copy(t.Signature[:], b[len(t.signed):])

	r := wire.NewReader(t.signed)
	t.Chain = r.String(ChainIDBytesMax)
	copy(t.Sender[:], r.Bytes(len(t.Sender)))
	t.Nonce = r.U64()
	t.ExpiresMs = r.U64()
	var err error
	if kind := r.U8(); r.Err() == wire.OK {
		t.Body, err = readBody(kind, &r)
	}
	if err == nil {
		err = r.Done().OrNil()
	}
	if err != nil {
		return Tx{}, refuse(CodeMalformed, err)
	}
	t.ID = txID(t.signed)
	return t, nil
}

func readBody(kind uint8, r *wire.Reader) (Body, error) {
	switch kind {
	case kindCreateRun:
		return CreateRun{Limits: coordinator.ReadLimits(r), Config: coordinator.ReadConfig(r), Spec: r.Var(SpecBytesMax)}, nil
	case kindAnnounce:
		return readAnnounce(r)
	case kindRunMessage:
		return RunMessage{Run: readName(r), Value: r.U64(), From: readName(r), Message: r.Var(MessageBytesMax)}, nil
	case kindTransfer:
		return Transfer{To: readKey(r), Amount: r.U64()}, nil
	case kindCreatePool:
		return readCreatePool(r), nil
	case kindLend:
		return Lend{Pool: readName(r), Amount: r.U64()}, nil
	case kindCollect:
		return Collect{Pool: readName(r)}, nil
	case kindClosePool:
		return ClosePool{Pool: readName(r)}, nil
	case kindClaimFor:
		return ClaimFor{Run: readName(r), Member: readKey(r)}, nil
	case kindAdmit:
		return Admit{Run: readName(r), Listed: r.Bool(), Add: readKeys(r, AdmitKeysMax), Remove: readKeys(r, AdmitKeysMax)}, nil
	case kindDelegate:
		return Delegate{Run: readName(r), Certificate: ReadCertificate(r)}, nil
	case kindRevoke:
		return Revoke{Run: readName(r), Node: readKey(r)}, nil
	case kindRequire:
		return Require{Run: readName(r), Program: r.String(ProgramBytesMax)}, nil
	case kindStake:
		s := Stake{Replica: readKey(r), Amount: r.U64(), Chance: readKey(r)}
		copy(s.Consent[:], r.Bytes(len(s.Consent)))
		return s, nil
	case kindVote:
		return Vote{Replica: readKey(r), Seated: r.Bool()}, nil
	case kindLeave:
		return Leave{Replica: readKey(r)}, nil
	case kindCloseRun:
		return CloseRun{Run: readName(r)}, nil
	case kindSetName:
		return SetName{Run: readName(r), Name: r.String(NameBytesMax), Team: r.String(NameBytesMax)}, nil
	case kindSight:
		return Sight{clock.ReadSight(r)}, nil
	}
	return nil, wire.ErrUnknownKind
}

func readName(r *wire.Reader) string    { return r.String(RunNameBytesMax) }
func readKey(r *wire.Reader) key.Public { return key.Public(r.Hash()) }

func readAnnounce(r *wire.Reader) (Body, error) {
	a := Announce{Run: r.String(RunNameBytesMax)}
	n := r.U8()
	if n > AddrsMax {
		return nil, failed(n, " addresses, at most ", AddrsMax)
	}
	for range n {
		addr := r.String(AddrBytesMax)
		if r.Err() == wire.OK && !addrValid(addr) {
			return nil, failed("address ", quote(addr), " is empty or has characters that are not printable ASCII")
		}
		a.Addrs = append(a.Addrs, addr)
	}
	return a, nil
}

// addrValid keeps out what would garble a terminal or a log. Whether an address is usable, the
// dialer finds out.
func addrValid(addr string) bool {
	for i := range len(addr) {
		if addr[i] <= ' ' || addr[i] > '~' {
			return false
		}
	}
	return len(addr) > 0 && len(addr) <= AddrBytesMax
}

// Verify checks that a parsed transaction is meant for the chain and was signed by its sender.
// The error is a *TxError.
func (t Tx) Verify(chain string) error {
	if t.Chain != chain {
		return refuse(CodeWrongChain, "this is chain ", quote(chain), ", the transaction is for ", quote(t.Chain))
	}
	if t.Sender.IsZero() || !key.Verify(t.Sender, txDomain, t.signed, t.Signature) {
		return &TxError{Code: CodeBadSignature}
	}
	return nil
}
