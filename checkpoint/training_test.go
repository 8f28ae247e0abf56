package checkpoint

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

func sampleTraining() Training {
	t := Training{Version: Version, Data: wire.Sum("data"), Order: wire.Sum("order"), Tokens: 32, Sequence: 1 << 40, Codec: "distro", Optimizer: 1500}
	for i := range 5 {
		t.States = append(t.States, Momentum{key.FromSeed([32]byte{byte(i)}).Public(), wire.Sum("state", []byte{byte(i)})})
	}
	return t
}

func TestHowARunGoesOnIsPartOfItsCheckpoint(t *testing.T) {
	want := sampleTraining()
	m := example()
	m.Training = &want
	dir := t.TempDir()
	create := func(name string) (io.WriteCloser, error) { return os.Create(dir + "/" + name) }
	manifest, err := Write(create, m, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if f, ok := manifest.find(TrainingFile); !ok || f.SHA256 != wire.SHA256(want.sorted().Bytes()) {
		t.Error("the manifest does not bind it")
	}
	saved, err := Open(os.DirFS(dir), manifest.Hash())
	if err != nil {
		t.Fatal(err)
	}
	got, err := saved.Training()
	if err != nil || !reflect.DeepEqual(got, want.sorted()) {
		t.Fatalf("read as %+v, %v", got, err)
	}
	want.States[3].Member = want.States[1].Member
	if _, err := Write(create, m, Options{}); err == nil || !strings.Contains(err.Error(), "repeated") {
		t.Errorf("two states of one member: %v", err)
	}
	m.Training = nil
	if _, err := Write(create, m, Options{}); err != nil {
		t.Fatal(err)
	}
	if saved, err = OpenLocal(os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if _, err := saved.Training(); err == nil {
		t.Error("a file that the manifest does not list is read")
	}
	if err := os.Remove(dir + "/" + TrainingFile); err != nil {
		t.Fatal(err)
	}
	if _, err := saved.Training(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without the file: %v", err)
	}
}

func TestTrainingsAreChecked(t *testing.T) {
	for name, bend := range map[string]func(*Training){
		"version": func(t *Training) { t.Version++ },
		"tokens":  func(t *Training) { t.Tokens = 0 },
		"codec":   func(t *Training) { t.Codec = "a\nb" },
		"states":  func(t *Training) { t.States = make([]Momentum, statesMax+1) },
		"order":   func(t *Training) { slices.Reverse(t.States) },
	} {
		of := sampleTraining().sorted()
		bend(&of)
		if _, err := parseTraining(of.Bytes()); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	full := sampleTraining()
	full.States = make([]Momentum, statesMax)
	for i := range full.States {
		full.States[i].Member = key.Public(wire.Sum("member", wire.AppendU32(nil, uint32(i))))
	}
	if n := len(full.Bytes()); n > trainingBytesMax {
		t.Errorf("that of the largest run has %d bytes, more than %d", n, trainingBytesMax)
	}
}

func sampleOptimizer() Optimizer {
	o := Optimizer{Run: wire.Sum("run"), Member: key.FromSeed([32]byte{7}).Public(), Step: 300, Params: wire.Sum("params"), State: make([]float32, 1500)}
	for i := range o.State {
		o.State[i] = float32(i) / 7
	}
	return o
}

func written(t testing.TB, o Optimizer) []byte {
	var b bytes.Buffer
	if err := WriteOptimizer(&b, o); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestOptimizerStatesComeBackOrNotAtAll(t *testing.T) {
	want := sampleOptimizer()
	b := written(t, want)
	got, root, err := ReadOptimizer(bytes.NewReader(b), 1500)
	if err != nil || !reflect.DeepEqual(got, want) || root != merkle.BlobRoot(tensor.Bytes(want.State)) {
		t.Fatalf("step %d, root %s, %v", got.Step, root, err)
	}
	var corrupt *CorruptError
	for at := 0; at < len(b); at += 13 {
		bent := bytes.Clone(b)
		bent[at] ^= 1 << (at % 8)
		if _, _, err := ReadOptimizer(bytes.NewReader(bent), 1500); !errors.As(err, &corrupt) {
			t.Errorf("a bit changed in byte %d: %v", at, err)
		}
		if _, _, err := ReadOptimizer(bytes.NewReader(b[:at]), 1500); !errors.As(err, &corrupt) {
			t.Errorf("cut after %d bytes: %v", at, err)
		}
	}
	if _, _, err := ReadOptimizer(bytes.NewReader(append(bytes.Clone(b), 0)), 1500); !errors.As(err, &corrupt) {
		t.Errorf("a byte more: %v", err)
	}
	if _, _, err := ReadOptimizer(bytes.NewReader(b), 1499); err == nil {
		t.Error("a state of another model is taken")
	}
}

func FuzzParseTraining(f *testing.F) {
	f.Add(sampleTraining().sorted().Bytes())
	f.Add([]byte(`{"version":1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if got, err := parseTraining(b); err == nil && !bytes.Equal(got.Bytes(), b) {
			t.Errorf("%q is read as what is written as %q", b, got.Bytes())
		}
	})
}

func FuzzReadOptimizer(f *testing.F) {
	f.Add(written(f, sampleOptimizer()))
	f.Fuzz(func(t *testing.T, b []byte) {
		o, _, err := ReadOptimizer(bytes.NewReader(b), 1500)
		if err == nil && !bytes.Equal(written(t, o), b) {
			t.Error("it is read as what is written otherwise")
		}
	})
}
