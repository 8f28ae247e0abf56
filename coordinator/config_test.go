package coordinator

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/wire"
)

func encodeConfig() []byte {
	return testConfig().Append(Limits{Members: 300, Witnesses: 7}.Append(nil))
}

func decodeConfig(b []byte) (Limits, Config, error) {
	r := wire.NewReader(b)
	l := ReadLimits(&r)
	c := ReadConfig(&r)
	return l, c, r.Done().OrNil()
}

func TestConfigRoundTrip(t *testing.T) {
	b := encodeConfig()
	l, c, err := decodeConfig(b)
	if err != nil || l != (Limits{Members: 300, Witnesses: 7}) || c != testConfig() {
		t.Fatalf("decoded %+v %+v, %v", l, c, err)
	}
	for n := range b {
		if _, _, err := decodeConfig(b[:n]); err == nil {
			t.Errorf("%d of %d bytes decode", n, len(b))
		}
	}
}

// Every field has a place of its own, in the encoding and in the buffer: a value set in it alone comes back in it.
func TestEveryFieldOfConfigIsKept(t *testing.T) {
	n := reflect.TypeFor[Config]().NumField()
	for i := range n {
		c := Config{}
		f := reflect.ValueOf(&c).Elem().Field(i)
		switch f.Kind() {
		case reflect.String:
			f.SetString("name-of-thirty-two-characters-xy")
		case reflect.Array:
			for j := range 32 {
				f.Index(j).SetUint(255)
			}
		default:
			f.SetUint(uint64(1)<<(f.Type().Bits()-1)<<1 - 1)
		}
		name := reflect.TypeFor[Config]().Field(i).Name
		if name == "Exchange" || name == "Sharing" || name == "Overlap" || name == "Clock" {
			f.SetUint(15) // two have a byte together
		}
		r := wire.NewReader(c.Append(nil))
		if got := ReadConfig(&r); got != c || r.Done() != wire.OK {
			t.Errorf("%s: encoding gives back %+v", name, got)
		}
		l := Limits{Members: 1, Witnesses: 1}
		s := State{b: make([]byte, Size(l)), l: l.layout()}
		s.putConfig(c)
		if got := s.Config(); got != c {
			t.Errorf("%s: buffer gives back %+v", name, got)
		}
		if !record.Zero(s.b[hPhase:hVerifyMs]) || !record.Zero(s.b[:hWaitingMs]) || !record.Zero(s.b[hTreasury:hExchange]) ||
			!record.Zero(s.b[hPhaseHeight:hSharing]) || !record.Zero(s.b[hEnd:]) {
			t.Errorf("%s: configuration is written outside its place", name)
		}
	}
}

func FuzzReadConfig(f *testing.F) {
	f.Add(encodeConfig())
	f.Fuzz(func(t *testing.T, b []byte) {
		l, c, err := decodeConfig(b)
		if err != nil {
			return
		}
		if again := c.Append(l.Append(nil)); !bytes.Equal(again, b) {
			t.Errorf("%x decodes but re-encodes as %x", b, again)
		}
		// Members are bounded here only to keep the buffers of the fuzzer small.
		if len(c.Check(l)) > 0 || l.Members > 64 {
			return
		}
		s, err := New(l, c, Env{})
		if err != nil {
			t.Fatalf("a configuration without faults is refused: %v", err)
		}
		if s, err = Open(s.Bytes()); err != nil || s.Config() != c {
			t.Errorf("state of %+v opens as %+v, %v", c, s.Config(), err)
		}
	})
}
