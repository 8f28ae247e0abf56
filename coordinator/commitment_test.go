package coordinator

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/entrain-network/entrain/coordinator/dispute"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

func sampleCommitment() dispute.Commitment {
	name := func(s string) wire.Hash { return wire.Sum("test/commitment", []byte(s)) }
	return dispute.Commitment{
		Run: name("run"), Epoch: 1, Round: 2, Member: 3, Share: name("share"), Payload: name("payload"), PayloadBytes: 4,
		Prev: name("prev"), State: name("state"), Work: name("work"), Params: name("params"), Loss: 5,
	}
}

func TestCommitmentRoundTrip(t *testing.T) {
	c := sampleCommitment()
	b := c.Append(nil)
	if len(b) != dispute.CommitmentBytes {
		t.Fatalf("commitment has %d bytes, want %d", len(b), dispute.CommitmentBytes)
	}
	got, err := dispute.ParseCommitment(b)
	if err != nil || got != c {
		t.Fatalf("parsed %+v, %v; want %+v", got, err, c)
	}
	for _, bad := range [][]byte{nil, b[:len(b)-1], append(bytes.Clone(b), 0)} {
		if _, err := dispute.ParseCommitment(bad); err == nil {
			t.Errorf("%d bytes parse as a commitment", len(bad))
		}
	}
}

// Every field must be bound by the ID and by the signature: changing any one changes both.
func TestCommitmentBindsEveryField(t *testing.T) {
	k := key.FromSeed([32]byte{1})
	c := sampleCommitment()
	signed := c.Sign(k)
	if !signed.Verify(k.Public()) {
		t.Fatal("signature of the trainer does not verify")
	}
	if signed.Verify(key.FromSeed([32]byte{2}).Public()) {
		t.Error("signature verifies under another key")
	}
	v := reflect.ValueOf(c)
	for i := range v.NumField() {
		changed := c
		f := reflect.ValueOf(&changed).Elem().Field(i)
		if f.Kind() == reflect.Array {
			f.Index(31).SetUint(f.Index(31).Uint() ^ 1)
		} else {
			f.SetUint(f.Uint() ^ 1)
		}
		name := v.Type().Field(i).Name
		if changed.ID() == c.ID() {
			t.Errorf("changing %s does not change the ID", name)
		}
		if (dispute.Signed{Commitment: changed, Signature: signed.Signature}).Verify(k.Public()) {
			t.Errorf("changing %s leaves the signature valid", name)
		}
	}
}

func TestSignedRoundTrip(t *testing.T) {
	s := sampleCommitment().Sign(key.FromSeed([32]byte{1}))
	b := s.Append(nil)
	if len(b) != dispute.SignedBytes {
		t.Fatalf("signed commitment has %d bytes, want %d", len(b), dispute.SignedBytes)
	}
	got, err := dispute.ParseSigned(b)
	if err != nil || got != s {
		t.Fatalf("parsed %+v, %v; want %+v", got, err, s)
	}
	for _, bad := range [][]byte{nil, b[:dispute.CommitmentBytes], b[:len(b)-1], append(bytes.Clone(b), 0)} {
		if _, err := dispute.ParseSigned(bad); err == nil {
			t.Errorf("%d bytes parse as a signed commitment", len(bad))
		}
	}
}

func FuzzParseCommitment(f *testing.F) {
	f.Add(sampleCommitment().Append(nil))
	f.Add(sampleCommitment().Sign(key.FromSeed([32]byte{1})).Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, err := dispute.ParseCommitment(b); err == nil && !bytes.Equal(c.Append(nil), b) {
			t.Errorf("%x parses but re-encodes as %x", b, c.Append(nil))
		}
		if s, err := dispute.ParseSigned(b); err == nil && !bytes.Equal(s.Append(nil), b) {
			t.Errorf("%x parses as signed but re-encodes as %x", b, s.Append(nil))
		}
	})
}
