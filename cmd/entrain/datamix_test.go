package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/founding"
	"github.com/entrain-network/entrain/participant/trainer"
)

// A mix is created, shown, and named in a specification like a set.
func TestDataMix(t *testing.T) {
	s := newShell(t)
	dir := t.TempDir()
	for _, name := range []string{"web", "code"} {
		s.ok("data", "prepare", "-o", filepath.Join(dir, name), writeFile(t, filepath.Join(dir, name+".txt"), strings.Repeat(name+" is what there is. ", 500)))
	}
	mix := filepath.Join(dir, "mix")
	hash := strings.TrimSpace(s.ok("data", "prepare", "-o", mix, "--mix", "3:"+filepath.Join(dir, "web"), "--mix", "1:"+filepath.Join(dir, "code")))
	if hash != mustManifest(t, mix) {
		t.Errorf("it prints %q", hash)
	}
	if out := s.ok("data", "show", mix, "--verify", "--json"); !strings.Contains(out, hash) {
		t.Errorf("it is shown as %s", out)
	}
	sp, _, err := founding.Draft{Text: []byte(strings.Replace(continuedSeed, "LOCATION", mix, 1))}.Complete()
	if err != nil || sp.Data.Manifest != hash {
		t.Errorf("a run on it has the data %s: %v", sp.Data.Manifest, err)
	}
	tr, err := trainer.New(t.Context(), sp, data.Place{Location: mix}, trainer.Machine{Workers: 1}, 4)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	if err := tr.Set.Read(7, make([]uint32, sp.Data.Sequence+1)); err != nil || tr.HeldOut == 0 {
		t.Errorf("a member reads it with %d held-out sequences: %v", tr.HeldOut, err)
	}
}

// continuedSeed is a small run from a seed.
const continuedSeed = `
name = "mixed"
steps = 4
[model]
preset = "nano"
[data]
location = "LOCATION"
sequence = 32
[learning_rate]
warmup = 2
`
