package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestValuesAreWrittenAsDrawn(t *testing.T) {
	var b []byte
	b = AppendU16(b, 7)
	b = AppendString(b, "ann")
	b = AppendBool(b, true)
	if got, want := fmt.Sprintf("%x", b), "070003000000616e6e01"; got != want {
		t.Errorf("the example of the package comment is %s, want %s", got, want)
	}
	b = AppendU8(nil, 0x12)
	b = AppendU32(b, 0x01020304)
	b = AppendU64(b, 0x0102030405060708)
	b = AppendHash(b, Hash{0: 0xaa, 31: 0xbb})
	b = AppendBool(b, false)
	b = AppendVar(b, nil)
	want := "12" + "04030201" + "0807060504030201" + "aa" + strings.Repeat("00", 30) + "bb" + "00" + "00000000"
	if got := fmt.Sprintf("%x", b); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestReaderReadsWhatWasWritten(t *testing.T) {
	h := Sum("test", []byte("x"))
	b := AppendU8(nil, 200)
	b = AppendU16(b, 50_000)
	b = AppendU32(b, 4_000_000_000)
	b = AppendU64(b, 1<<63+1)
	b = AppendBool(b, true)
	b = AppendBool(b, false)
	b = AppendHash(b, h)
	b = AppendVar(b, []byte{1, 2, 3})
	b = AppendString(b, "four")
	b = append(b, 9, 8, 7)
	r := NewReader(b)
	if r.Len() != len(b) {
		t.Errorf("%d bytes are left at the start, want %d", r.Len(), len(b))
	}
	if r.U8() != 200 || r.U16() != 50_000 || r.U32() != 4_000_000_000 || r.U64() != 1<<63+1 {
		t.Error("a number is not read as written")
	}
	if !r.Bool() || r.Bool() || r.Hash() != h {
		t.Error("a bool or hash is not read as written")
	}
	if got := r.Var(3); !bytes.Equal(got, []byte{1, 2, 3}) {
		t.Errorf("Var is %v", got)
	}
	if got := r.String(4); got != "four" {
		t.Errorf("String is %q", got)
	}
	if got := r.Bytes(1); !bytes.Equal(got, []byte{9}) {
		t.Errorf("Bytes is %v", got)
	}
	if got := r.Rest(); !bytes.Equal(got, []byte{8, 7}) {
		t.Errorf("Rest is %v", got)
	}
	if err := r.Done(); err != OK {
		t.Errorf("Done is %v", err)
	}
}

func TestReaderRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		in   []byte
		read func(r *Reader)
		want Error
	}{
		{"nothing where a byte should be", nil, func(r *Reader) { r.U8() }, ErrShort},
		{"a U16 cut short", []byte{1}, func(r *Reader) { r.U16() }, ErrShort},
		{"a U32 cut short", []byte{1, 2, 3}, func(r *Reader) { r.U32() }, ErrShort},
		{"a U64 cut short", make([]byte, 7), func(r *Reader) { r.U64() }, ErrShort},
		{"a hash cut short", make([]byte, 31), func(r *Reader) { r.Hash() }, ErrShort},
		{"a Var whose length is cut short", []byte{1, 0, 0}, func(r *Reader) { r.Var(9) }, ErrShort},
		{"a Var cut short", []byte{2, 0, 0, 0, 5}, func(r *Reader) { r.Var(9) }, ErrShort},
		{"a Var longer than its limit", []byte{3, 0, 0, 0, 1, 2, 3}, func(r *Reader) { r.Var(2) }, ErrTooLong},
		{"a Var of 4 GiB", []byte{255, 255, 255, 255}, func(r *Reader) { r.Var(1 << 20) }, ErrTooLong},
		{"a limit below zero", []byte{0, 0, 0, 0}, func(r *Reader) { r.Var(-1) }, ErrTooLong},
		{"a count below zero", []byte{0}, func(r *Reader) { r.Bytes(-1) }, ErrOutOfRange},
		{"a bool of 2", []byte{2}, func(r *Reader) { r.Bool() }, ErrNotCanonical},
		{"trailing bytes", []byte{1, 2}, func(r *Reader) { r.U8() }, ErrTrailing},
		{"what the parser refuses", []byte{1}, func(r *Reader) { r.U8(); r.Fail(ErrUnknownKind) }, ErrUnknownKind},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := NewReader(c.in)
			c.read(&r)
			if err := r.Done(); err != c.want {
				t.Errorf("got %q, want %q", err, c.want)
			}
		})
	}
}

func TestFirstFailureStays(t *testing.T) {
	r := NewReader([]byte{1, 2, 3})
	r.U64()
	r.Fail(ErrTooLong)
	if r.U8() != 0 || r.U16() != 0 || r.U32() != 0 || r.U64() != 0 || r.Bool() || r.Hash() != (Hash{}) {
		t.Error("a value is read after a failure")
	}
	if r.Bytes(0) != nil || r.Bytes(1) != nil || r.Var(9) != nil || r.Rest() != nil || r.String(9) != "" || r.Len() != 0 {
		t.Error("bytes are read after a failure")
	}
	if r.Err() != ErrShort || r.Done() != ErrShort {
		t.Errorf("the failure is %q, want the first, %q", r.Err(), ErrShort)
	}
}

func TestViewsDoNotReachBeyondTheirEnd(t *testing.T) {
	in := []byte{1, 0, 0, 0, 5, 6, 7}
	r := NewReader(in)
	_ = append(r.Var(1), 99)
	if in[5] != 6 {
		t.Error("appending to a view overwrites what follows it in the input")
	}
}

func TestErrorsAreGoErrors(t *testing.T) {
	if err := OK.OrNil(); err != nil {
		t.Errorf("OK becomes the error %v", err)
	}
	seen := map[string]Error{}
	for e := ErrShort; e <= ErrText; e++ {
		if e.OrNil() != error(e) {
			t.Errorf("error %d is not itself as a Go error", e)
		}
		if before, ok := seen[e.Error()]; ok {
			t.Errorf("errors %d and %d have one text, %q", before, e, e.Error())
		}
		seen[e.Error()] = e
	}
	if _, ok := seen[Error(255).Error()]; ok {
		t.Error("an unknown error has the text of a known one")
	}
	if OK.Error() != "ok" {
		t.Errorf("OK says %q", OK.Error())
	}
}

func TestSumIsSeparatedByDomain(t *testing.T) {
	if got, want := Sum("ab", []byte("c"), nil, []byte("de")), Hash(sha256.Sum256([]byte("\x02abcde"))); got != want {
		t.Errorf("Sum is %v, want %v", got, want)
	}
	if Sum("ab", []byte("c")) == Sum("a", []byte("bc")) {
		t.Error("bytes moved between domain and message have one hash")
	}
	for _, domain := range []string{"", strings.Repeat("x", DomainBytesMax+1)} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a domain of %d bytes is accepted", len(domain))
				}
			}()
			Sum(domain)
		}()
	}
	longest := strings.Repeat("x", DomainBytesMax)
	if got, want := Sum(longest), Hash(sha256.Sum256([]byte("\x40"+longest))); got != want {
		t.Errorf("Sum in the longest domain is %v, want %v", got, want)
	}
}

// The vectors are of FIPS 180-4's examples (NIST, "SHA_All.pdf") and Psyche's test of its hash.
func TestSHA256Vectors(t *testing.T) {
	for in, want := range map[string]string{
		"":              "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"abc":           "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
		"Hello, world!": "315f5bdb76d078c43b8ac0064e4a0164612b1fce77c869345bfc94c75894edd3",
	} {
		if got := SHA256([]byte(in)).String(); got != want {
			t.Errorf("SHA256(%q) = %s, want %s", in, got, want)
		}
		for i := range in {
			if got := SHA256([]byte(in[:i]), []byte(in[i:])).String(); got != want {
				t.Errorf("SHA256(%q, %q) = %s, want %s", in[:i], in[i:], got, want)
			}
		}
	}
}

func TestHashesAreOrderedAsTheirText(t *testing.T) {
	hashes := []Hash{{}, {31: 1}, {0: 1}, {0: 1, 31: 1}, {0: 0x80}, {0: 0xff}}
	for i, a := range hashes {
		for j, b := range hashes {
			if got, want := a.Compare(b), strings.Compare(a.String(), b.String()); got != want {
				t.Errorf("Compare(%d, %d) = %d, want %d", i, j, got, want)
			}
		}
		if a.IsZero() != (i == 0) {
			t.Errorf("hash %d: IsZero is %v", i, a.IsZero())
		}
	}
}

func TestHashAsText(t *testing.T) {
	h := Sum("test")
	got, err := ParseHash(h.String())
	if err != nil || got != h {
		t.Errorf("ParseHash(String) = %v, %v", got, err)
	}
	text, err := json.Marshal(map[Hash]Hash{h: h})
	if err != nil {
		t.Fatal(err)
	}
	var back map[Hash]Hash
	if err := json.Unmarshal(text, &back); err != nil || back[h] != h {
		t.Errorf("JSON %s is read as %v, %v", text, back, err)
	}
	good := h.String()
	for _, bad := range []string{"", good[:63], good + "0", strings.ToUpper(good), good[:63] + "g", " " + good[1:], good[:63] + "\x00"} {
		if got, err := ParseHash(bad); err != error(ErrText) || got != (Hash{}) {
			t.Errorf("ParseHash(%q) = %v, %v", bad, got, err)
		}
		kept := h
		if err := kept.UnmarshalText([]byte(bad)); err != error(ErrText) || kept != h {
			t.Errorf("UnmarshalText(%q): %v, and the hash becomes %v", bad, err, kept)
		}
	}
}
