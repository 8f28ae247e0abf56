package coordinator

import (
	"bytes"
	"encoding/hex"
	"reflect"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/coordinator/score"

	"github.com/entrain-network/entrain/bisect"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// messages is one message of every kind, with the encoding that the package comment draws.
func messages() []struct {
	m   Message
	hex string
} {
	var h, g wire.Hash
	for i := range h {
		h[i], g[i] = 0xaa, 0xbb
	}
	const aa = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	const bb = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	var nodes [bisect.Fan]wire.Hash
	for i := range nodes {
		nodes[i] = []wire.Hash{h, g}[i%2]
	}
	signed := dispute.Signed{Commitment: dispute.Commitment{
		Run: h, Epoch: 1, Round: 2, Member: 3, Share: g, Payload: h, PayloadBytes: 4, Prev: g, State: h, Work: g, Params: h, Loss: 5,
	}}
	copy(signed.Signature[:], append(h[:], g[:]...))
	commitment := aa + "01000000" + "02000000" + "03000000" + bb + aa + "04000000" + bb + aa + bb + aa + "05000000" + aa + bb
	return []struct {
		m   Message
		hex string
	}{
		{Tick{}, "00"},
		{Join{Speed: 258, Payee: key.Public(h)}, "01" + "02010000" + aa},
		{Withdraw{}, "02"},
		{Ready{Epoch: 3, Params: h}, "03" + "03000000" + aa},
		{Witness{Round: 7, Complete: true, Held: []byte{5}, Commitments: []byte{1, 2}, Params: h, Prev: g},
			"04" + "07000000" + "01" + aa + bb + "01000000" + "05" + "02000000" + "0102"},
		{Checkpoint{Epoch: 9, Params: h, Manifest: g}, "05" + "09000000" + aa + bb},
		{Pause{}, "06"},
		{Resume{}, "07"},
		{Pass{Round: 1, Member: 2, Commitment: signed, Gradient: h}, "08" + "01000000" + "02000000" + commitment + aa},
		{Accuse{Round: 1, Member: 2, Commitment: signed, Trace: g}, "09" + "01000000" + "02000000" + commitment + bb},
		{Unserved{Round: 1, Member: 2}, "0a" + "01000000" + "02000000"},
		{TieBreak{Dispute: 3, Vote: dispute.VoteWrong, Trace: h}, "0b" + "03000000" + "02" + aa},
		{Defend{Dispute: 3, Trace: h, Proof: []wire.Hash{g, h}}, "0c" + "03000000" + aa + "02000000" + bb + aa},
		{Defend{Dispute: 3, Trace: h}, "0c" + "03000000" + aa + "00000000"},
		{Reveal{Dispute: 3, Nodes: nodes}, "0d" + "03000000" + strings.Repeat(aa+bb, 8)},
		{Evidence{Dispute: 3, Bytes: []byte{1, 2, 3}}, "0e" + "03000000" + "03000000" + "010203"},
		{Concede{Dispute: 3}, "0f" + "03000000"},
		{Equivocation{A: signed, B: signed}, "10" + commitment + commitment},
		{Deposit{Member: key.Public(h)}, "11" + aa},
		{Claim{}, "12"},
		{Fund{}, "13"},
		{Commit{Signed: signed}, "14" + commitment},
		{RegisterValidator{Payee: key.Public(h)}, "15" + aa},
		{RetireValidator{}, "16"},
		{CommitScores{Period: 3, Hash: g}, "17" + "03000000" + bb},
		{RevealScores{Period: 3, Salt: h}, "18" + "03000000" + aa + "00000000"},
		{RevealScores{Period: 3, Salt: h, Scores: []score.Score{{Member: 1, Value: -1}, {Member: 258, Value: score.One}}},
			"18" + "03000000" + aa + "02000000" + "01000000" + "ffff" + "02010000" + "ff7f"},
		{SetSpeed{Speed: 258}, "19" + "02010000"},
	}
}

func TestMessageEncoding(t *testing.T) {
	for _, c := range messages() {
		b := Append(nil, c.m)
		if got := hex.EncodeToString(b); got != c.hex {
			t.Errorf("%#v encodes as %s, want %s", c.m, got, c.hex)
		}
		m, err := ParseMessage(b)
		if err != nil || !reflect.DeepEqual(m, c.m) {
			t.Errorf("%s parses as %#v, %v; want %#v", c.hex, m, err, c.m)
		}
		for n := range b {
			if _, err := ParseMessage(b[:n]); err != wire.ErrShort {
				t.Errorf("%s cut to %d bytes: error %v, want %v", c.hex, n, err, wire.ErrShort)
			}
		}
		if _, err := ParseMessage(append(b, 0)); err != wire.ErrTrailing {
			t.Errorf("%s with a byte more: error %v, want %v", c.hex, err, wire.ErrTrailing)
		}
	}
}

func TestParseMessageRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		b    []byte
		want error
	}{
		{"an unknown kind", []byte{kindsEnd}, ErrMessage},
		{"a truth value of 2", append(Append(nil, Witness{})[:5:5], 2), wire.ErrNotCanonical},
		{"a bitmap with a zero byte at its end", Append(nil, Witness{Held: []byte{1, 0}}), wire.ErrNotCanonical},
		{"a bitmap of more members than a run can have", Append(nil, Witness{Held: bytes.Repeat([]byte{1}, heldBytesMax+1)}), wire.ErrTooLong},
		{"a proof longer than any", Append(nil, Defend{Proof: make([]wire.Hash, proofMax+1)}), wire.ErrTooLong},
		{"a proof that is not there", Append(nil, Defend{Proof: make([]wire.Hash, 9)})[:60], wire.ErrShort},
		{"evidence larger than any", Append(nil, Evidence{Bytes: make([]byte, EvidenceBytesMax+1)}), wire.ErrTooLong},
		{"a filter larger than any", Append(nil, Witness{Commitments: make([]byte, filterBytesMax+1)}), wire.ErrTooLong},
		{"more scores than a run can have members", Append(nil, RevealScores{Scores: make([]score.Score, MembersMax+1)}), wire.ErrTooLong},
		{"scores that are not there", Append(nil, RevealScores{Scores: make([]score.Score, 9)})[:60], wire.ErrShort},
		{"scores of one member twice", Append(nil, RevealScores{Scores: []score.Score{{Member: 1}, {Member: 1}}}), wire.ErrNotCanonical},
		{"scores out of order", Append(nil, RevealScores{Scores: []score.Score{{Member: 2}, {Member: 1}}}), wire.ErrNotCanonical},
		{"a score below all", Append(nil, RevealScores{Scores: []score.Score{{Member: 2, Value: -score.One - 1}}}), wire.ErrNotCanonical},
	} {
		if _, err := ParseMessage(c.b); err != c.want {
			t.Errorf("%s: error %v, want %v", c.name, err, c.want)
		}
	}
}

func FuzzParseMessage(f *testing.F) {
	for _, c := range messages() {
		f.Add(Append(nil, c.m))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ParseMessage(b)
		if err == nil && !bytes.Equal(Append(nil, m), b) {
			t.Errorf("%x parses but re-encodes as %x", b, Append(nil, m))
		}
	})
}

func TestHoldSetsBits(t *testing.T) {
	var held []byte
	for _, i := range []Member{0, 3, 17, 8, 17} {
		held = SetHeld(held, i)
	}
	if want := []byte{0b1001, 1, 0b10}; !bytes.Equal(held, want) {
		t.Errorf("Hold made %08b, want %08b", held, want)
	}
	if held := SetHeld(nil, MembersMax-1); len(held) != heldBytesMax {
		t.Errorf("the last member's bit is in byte %d, want %d", len(held), heldBytesMax)
	}
}
