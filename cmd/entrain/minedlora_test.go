package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/model"
)

// minedAdapters is a run of adapters by buckets, with few and short windows.
const minedAdapters = `
name = "mined"
steps = 4
[data]
location = %q
sequence = 32
[batch]
start = 8
[optimizer]
codec = "slice"
[learning_rate]
warmup = 2
[members]
min = 1
start = 1
overlap = 1
[times]
waiting = "0s"
warmup = "1m"
round_train = "1s"
round_witness = "100ms"
cooldown = "10s"
epoch = "1200ms"
` + byBucket + adaptersOf

// A miner of adapters, and somebody who takes no part, get the frozen model from the bucket of the run's owner.
func TestMinersOfAdaptersNeedNoCopyOfTheModel(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	chain := startReplica(t)
	s.console.env = chain
	own, public, _ := startBuckets(t)
	imported, _ := importForeign(t, s)
	corpus := foreignData(t, s, imported)
	s.console.env = func(name string) string {
		switch name {
		case "ENTRAIN_BUCKET":
			return own.Under("owner").URL()
		case "ENTRAIN_BUCKET_READ":
			return public.Under("owner").URL()
		}
		return chain(name)
	}
	create(t, s, fmt.Sprintf(minedAdapters, corpus, 4), imported)
	s.console.env = chain
	file := func(l bucket.Location) string {
		return writeFile(t, filepath.Join(t.TempDir(), "location"), l.Under("miner").URL())
	}
	state := filepath.Join(t.TempDir(), "miner")
	m := <-takePart(t.Context(), t, chain, "mined", "--key", state+".key", "--state", state, "--bucket", file(own), "--bucket-read", file(public), "--private-buckets")
	if m.err != nil {
		t.Fatal(m.err)
	}
	if _, ok := m.first("finished"); !ok {
		t.Errorf("it did not finish: %+v", m.events)
	}
	base, err := model.Open(imported)
	if err != nil {
		t.Fatal(err)
	}
	saved, err := checkpoint.OpenLocal(os.DirFS(filepath.Join(state, "origin")))
	if err != nil || saved.Manifest.Params != base.Hash() {
		t.Errorf("the frozen model is %+v, %v; want %s", saved, err, base.Hash())
	}
	stranger := newShell(t)
	stranger.console.env = chain
	stranger.ok("model", "export", "mined", "-o", filepath.Join(t.TempDir(), "merged"), "--type", "hf-f32")
}
