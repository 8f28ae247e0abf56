package checkpoint

import (
	"bytes"
	"errors"
	"io"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// exampleState has parameters of more than one piece and more than one chunk.
func exampleState() State {
	flat := random(pieceBytes/4 + 1000)
	return State{Run: wire.Hash{5}, Epoch: 3, Round: 99, Step: 90, Params: flat, Optimizer: flat[:700]}
}

func stateBytes(t testing.TB, s State) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := WriteState(&b, s); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func equalStates(a, b State) bool {
	return a.Run == b.Run && a.Epoch == b.Epoch && a.Round == b.Round && a.Step == b.Step && equalBits(a.Params, b.Params) && equalBits(a.Optimizer, b.Optimizer)
}

func TestStateIsReadBack(t *testing.T) {
	s := exampleState()
	s.Optimizer[1] = float32(math.NaN()) // whatever the bits are, they come back
	for _, s := range []State{s, {Run: wire.Hash{1}, Params: s.Params[:1]}, {}} {
		b := stateBytes(t, s)
		if want := 168 + 4*len(s.Params) + 4*len(s.Optimizer); len(b) != want {
			t.Errorf("got %d bytes, want %d", len(b), want)
		}
		got, err := ReadState(iotest.OneByteReader(bytes.NewReader(b)), len(s.Params), len(s.Optimizer))
		if err != nil || !equalStates(got, s) {
			t.Errorf("state differs, %v", err)
		}
		h, err := ReadStateHeader(bytes.NewReader(b))
		if err != nil || h.Round != s.Round || h.Params != merkle.BlobRoot(tensor.Bytes(s.Params)) || h.ParamsLen != uint64(len(s.Params)) {
			t.Errorf("got header %+v, %v", h, err)
		}
	}
}

// Every single flipped bit and every length is noticed.
func TestDamagedStateIsNoticed(t *testing.T) {
	s := State{Run: wire.Hash{1}, Epoch: 1, Round: 2, Step: 2, Params: []float32{1, 2, 3}, Optimizer: []float32{4}}
	good := stateBytes(t, s)
	check := func(what string, at int, b []byte) {
		t.Helper()
		_, err := ReadState(bytes.NewReader(b), 3, 1)
		var corrupt *CorruptError
		if !errors.As(err, &corrupt) || !strings.Contains(err.Error(), "delete the file") {
			t.Errorf("%s at %d: got %v", what, at, err)
		}
	}
	for i := range 8 * len(good) {
		b := bytes.Clone(good)
		b[i/8] ^= 1 << (i % 8)
		check("bit flipped", i, b)
	}
	for n := range len(good) {
		check("cut", n, good[:n])
	}
	check("lengthened", len(good), append(bytes.Clone(good), 0))
}

func TestStateOfAnotherModelIsRefusedBeforeItIsRead(t *testing.T) {
	b := stateBytes(t, exampleState())
	// The reader fails when more than the header is read.
	r := io.MultiReader(bytes.NewReader(b[:stateHeaderSize]), iotest.ErrReader(errDisk))
	if _, err := ReadState(r, 1<<30, 700); err == nil || !strings.Contains(err.Error(), "another model") {
		t.Errorf("got %v", err)
	}
	r = io.MultiReader(bytes.NewReader(b[:stateHeaderSize+100]), iotest.ErrReader(errDisk))
	if _, err := ReadState(r, pieceBytes/4+1000, 700); !errors.Is(err, errDisk) {
		t.Errorf("a failing disk: got %v", err)
	}
	if err := WriteState(full{}, exampleState()); !errors.Is(err, errDisk) {
		t.Errorf("a full disk: got %v", err)
	}
}

func TestHeaderOfALaterVersionIsRefused(t *testing.T) {
	b := stateBytes(t, State{})
	b[52] = 1
	sum := wire.Sum("entrain/state", b[:136])
	copy(b[136:], sum[:])
	if _, err := ReadState(bytes.NewReader(b), 0, 0); err == nil || !strings.Contains(err.Error(), "later version") {
		t.Errorf("got %v", err)
	}
}

func FuzzReadState(f *testing.F) {
	f.Add(stateBytes(f, State{}), 0, 0)
	f.Add(stateBytes(f, State{Run: wire.Hash{1}, Round: 7, Params: []float32{1, 2}, Optimizer: []float32{3}}), 2, 1)
	f.Fuzz(func(t *testing.T, b []byte, params, optimizer int) {
		if params < 0 || params > 1<<10 || optimizer < 0 || optimizer > 1<<10 {
			t.Skip()
		}
		s, err := ReadState(bytes.NewReader(b), params, optimizer)
		if err == nil && !bytes.Equal(stateBytes(t, s), b) {
			t.Errorf("%x parses, but is written as %x", b, stateBytes(t, s))
		}
	})
}

// BenchmarkState writes and reads the state of a model of 10 million parameters.
func BenchmarkState(b *testing.B) {
	s := State{Params: random(10 << 20), Optimizer: make([]float32, 10<<20)}
	path := filepath.Join(b.TempDir(), "state")
	b.SetBytes(int64(8 * len(s.Params)))
	for b.Loop() {
		if err := atomicfile.Write(path, 0o600, func(w io.Writer) error { return WriteState(w, s) }); err != nil {
			b.Fatal(err)
		}
	}
}
