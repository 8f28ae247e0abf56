package coordinator

import (
	"bytes"
	"encoding/hex"
	"reflect"
	"testing"

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
	return []struct {
		m   Message
		hex string
	}{
		{Tick{}, "00"},
		{Join{Speed: 258, Payee: key.Public(h)}, "01" + "02010000" + aa},
		{Withdraw{}, "02"},
		{Ready{Epoch: 3, Params: h}, "03" + "03000000" + aa},
		{Witness{Round: 7, Complete: true, Held: []byte{5}, Commitments: []byte{1, 2}, Params: h},
			"04" + "07000000" + "01" + aa + "01000000" + "05" + "02000000" + "0102"},
		{Checkpoint{Epoch: 9, Params: h, Manifest: g}, "05" + "09000000" + aa + bb},
		{Pause{}, "06"},
		{Resume{}, "07"},
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
		{"an unknown kind", []byte{20}, ErrMessage},
		{"a truth value of 2", append(Append(nil, Witness{})[:5:5], 2), wire.ErrNotCanonical},
		{"a bitmap with a zero byte at its end", Append(nil, Witness{Held: []byte{1, 0}}), wire.ErrNotCanonical},
		{"a bitmap of more members than a run can have", Append(nil, Witness{Held: bytes.Repeat([]byte{1}, heldBytesMax+1)}), wire.ErrTooLong},
		{"a filter larger than any", Append(nil, Witness{Commitments: make([]byte, filterBytesMax+1)}), wire.ErrTooLong},
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
	for _, i := range []uint32{0, 3, 17, 8, 17} {
		held = Hold(held, i)
	}
	if want := []byte{0b1001, 1, 0b10}; !bytes.Equal(held, want) {
		t.Errorf("Hold made %08b, want %08b", held, want)
	}
	if held := Hold(nil, MembersMax-1); len(held) != heldBytesMax {
		t.Errorf("the last member's bit is in byte %d, want %d", len(held), heldBytesMax)
	}
}
