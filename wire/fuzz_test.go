package wire

import (
	"bytes"
	"testing"
)

// FuzzReader lets the input choose which values are read from it, and writes them again: what a Reader accepts is the
// canonical encoding of what it returned.
func FuzzReader(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6}, AppendVar(AppendHash([]byte{9, 8, 7}, Sum("x")), []byte("abc")))
	f.Add([]byte{6}, []byte{255, 255, 255, 255, 1})
	f.Add([]byte{4, 4}, []byte{1, 2})
	f.Add([]byte{7, 7, 9}, []byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, kinds, in []byte) {
		r := NewReader(in)
		var out []byte
		for _, kind := range kinds {
			if r.Err() != OK {
				break
			}
			before := len(out)
			out = copyValue(&r, kind, out)
			if r.Err() == OK && len(in)-r.Len() != len(out) {
				t.Fatalf("value of kind %d took %d bytes and has %d", kind, len(in)-r.Len()-before, len(out)-before)
			}
		}
		if r.Done() == OK && !bytes.Equal(in, out) {
			t.Errorf("%x is accepted, but what was read is written as %x", in, out)
		}
		if r.Err() != OK && (r.Len() != 0 || r.Rest() != nil) {
			t.Errorf("after %v there is still something to read", r.Err())
		}
	})
}

// copyValue reads one value and appends its encoding to out.
func copyValue(r *Reader, kind byte, out []byte) []byte {
	switch kind {
	case 0:
		return AppendU8(out, r.U8())
	case 1:
		return AppendU16(out, r.U16())
	case 2:
		return AppendU32(out, r.U32())
	case 3:
		return AppendU64(out, r.U64())
	case 4:
		return AppendBool(out, r.Bool())
	case 5:
		return AppendHash(out, r.Hash())
	case 6:
		return AppendVar(out, r.Var(100))
	case 7:
		return AppendString(out, r.String(1<<30))
	}
	return append(out, r.Bytes(int(int8(kind)))...)
}

func FuzzParseHash(f *testing.F) {
	f.Add(Sum("x").String())
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		if h, err := ParseHash(s); err == nil && h.String() != s {
			t.Errorf("%q parses but is written %q", s, h)
		}
	})
}

func BenchmarkSum(b *testing.B) {
	msg := make([]byte, 64)
	b.SetBytes(64)
	b.ReportAllocs()
	for b.Loop() {
		Sum("entrain/benchmark", msg)
	}
}
