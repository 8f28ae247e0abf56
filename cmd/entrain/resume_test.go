package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/model"
	"github.com/entrain-network/entrain/participant"
)

// resumableRun is a run of one member, whose rounds follow each other without waiting, and take as long as a busy machine needs. With one member
// it does not matter which seeds a chain draws: each step has one share.
const resumableRun = `
name = %q
steps = %d
[model]
hidden = 32
layers = 1
heads = 2
kv_heads = 1
head_dim = 16
ffn = 64
context = 64
[data]
location = %q
sequence = 32
[optimizer]
codec = %q
[batch]
start = 4
[learning_rate]
schedule = "cosine"
warmup = 5
[members]
min = 1
[times]
waiting = "0s"
warmup = "1m"
round_train = "1m"
round_witness = "1m"
cooldown = "1m"
[trust]
verification_percent = 0
`

// steps are the parameters' hashes after each step, and with which note it was begun.
func (m taking) steps() (hashes map[uint32]string) {
	hashes = make(map[uint32]string)
	for _, ev := range m.events {
		if ev.Kind == "applied" {
			hashes[ev.Step] = ev.Params
		}
	}
	return hashes
}

func (m taking) notes() string {
	var all []string
	for _, ev := range m.events {
		if ev.Kind == "note" {
			all = append(all, ev.Text)
		}
	}
	return strings.Join(all, "\n")
}

// byBucket makes it a run of a miner.
const byBucket = `
[exchange]
kind = "bucket"
window_blocks = %d
`

// windowMost is the blocks of the longest window that a miner is given.
const windowMost = 128

// resumable is a data set, and a member's key and directory.
type resumable struct {
	t              *testing.T
	codec          string
	steps          int
	window         int      // blocks, 0 between peers; grows until the miner misses none
	join           []string // flags
	corpus, member string
}

// newResumable prepares a data set.
func newResumable(t *testing.T, codec string, steps int) resumable {
	t.Helper()
	text := writeFile(t, filepath.Join(t.TempDir(), "text.txt"), strings.Repeat("It was the best of times, it was the worst of times. ", 2000))
	r := resumable{t: t, codec: codec, steps: steps, corpus: filepath.Join(t.TempDir(), "data"), member: filepath.Join(t.TempDir(), "member")}
	newShell(t).ok("data", "prepare", "-o", r.corpus, text)
	return r
}

// first takes part in a whole run, and returns the directory of its first checkpoint and after how many steps that was made.
func (r *resumable) first() (whole taking, from string, before uint32) {
	r.t.Helper()
	whole = r.takeAll("whole", r.member, r.steps)
	saver := participant.NewCheckpoints(filepath.Join(r.member, "checkpoints"), 100, nil)
	steps, err := saver.Steps()
	if err != nil || len(steps) < 2 {
		r.t.Fatalf("checkpoints after the steps %v, %v", steps, err)
	}
	return whole, saver.Path(steps[0]), steps[0]
}

// pause has the owner of a run end its first epoch after a third of the steps, by a pause, if first is set. It returns what is to be called with each event.
func (r resumable) pause(t *testing.T, s *shell, name string, first bool) func(printed) {
	var asked, ended bool
	set := func(flags ...string) {
		if err := run(t.Context(), s.console, slices.Concat([]string{"run", "pause", name}, flags)); err != nil {
			t.Error(err)
		}
	}
	return func(ev printed) {
		switch {
		case !first || ended:
		case !asked && ev.Kind == "applied" && int(ev.Step) >= r.steps/3:
			asked = true
			set()
		case asked && ev.Kind == "state" && ev.Phase == "Paused":
			ended = true
			set("--end")
		}
	}
}

// takeAll is take, again in longer windows while the miner misses some of the steps: windows close at their height, so a busy machine needs longer ones.
func (r *resumable) takeAll(name, state string, steps int, flags ...string) taking {
	r.t.Helper()
	for {
		m := r.take(fmt.Sprintf("%s-%d", name, r.window), state, flags...)
		if r.window == 0 || r.window == windowMost || len(m.steps()) == steps {
			return m
		}
		r.t.Logf("in windows of %d blocks %d of %d steps were done", r.window, len(m.steps()), steps)
		r.window *= 2
		if err := os.RemoveAll(state); err != nil {
			r.t.Fatal(err)
		}
	}
}

// take has the member take part in a run, on a chain of its own that is gone afterwards. The flags are those of run create; the
// first two, --from and a directory, are join's as well.
func (r resumable) take(name, state string, flags ...string) taking {
	r.t.Helper()
	var m taking
	ok := r.t.Run(name, func(t *testing.T) {
		s := newShell(t)
		s.console.env = startReplica(t)
		text := fmt.Sprintf(resumableRun, name, r.steps, r.corpus, r.codec)
		if r.window > 0 {
			text += fmt.Sprintf(byBucket, r.window)
		}
		if len(flags) > 0 {
			create(t, s, text, flags[1], flags[2:]...)
		} else {
			s.ok("run", "create", "-f", writeFile(t, filepath.Join(t.TempDir(), "run.toml"), text))
		}
		join := []string{name, "--key", r.member + ".key", "--state", state, "--checkpoints", "100", "--linger", "0s"}
		join = slices.Concat(join, flags[:min(len(flags), 2)], r.join)
		m = <-takePartUntil(context.WithoutCancel(t.Context()), nil, r.pause(t, s, name, len(flags) == 0), t, s.console.env, join...)
		if m.err != nil {
			t.Fatal(m.err)
		}
	})
	if !ok {
		r.t.FailNow()
	}
	return m
}

// A run whose chain is gone goes on in another run, from a checkpoint and the optimizer state beside it, to the same parameters after every step as if
// nothing had happened: with a schedule in the middle of its curve, and each codec that keeps a state.
func TestARunIsTakenUpAgainFromItsCheckpoint(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("three runs of each codec")
	}
	for _, codec := range []string{"distro", "sparseloco"} {
		t.Run(codec, func(t *testing.T) {
			t.Parallel()
			r := newResumable(t, codec, 30)
			whole, from, before := r.first()
			saved, err := checkpoint.OpenLocal(os.DirFS(from))
			if err != nil {
				t.Fatal(err)
			}
			training, err := saved.Training()
			if err != nil || len(training.States) != 1 || saved.Manifest.Step != before {
				t.Fatalf("the checkpoint says %+v, %v", training, err)
			}
			same := func(got taking) (equal int) {
				t.Helper()
				want, hashes := whole.steps(), got.steps()
				if len(hashes) != r.steps-int(before) {
					t.Fatalf("%d steps were done, %d were left", len(hashes), r.steps-int(before))
				}
				for step, hash := range hashes {
					if want[before+step] == hash {
						equal++
					}
				}
				return equal
			}
			elsewhere := filepath.Join(t.TempDir(), "elsewhere")
			again := r.take("again", elsewhere, "--from", from, "--resume")
			if n := same(again); n != r.steps-int(before) || !strings.Contains(again.notes(), "goes on from the checkpoint's state") {
				t.Errorf("%d of %d steps have the same hash; it was told %q", n, r.steps-int(before), again.notes())
			}
			t.Logf("steps %d to %d have the same hashes", before+1, r.steps)

			// The last checkpoint of the second run counts all steps, as that of the first does, and so does what says how to go on from it.
			_, first, err := model.OpenCheckpoint(r.member)
			if err != nil {
				t.Fatal(err)
			}
			_, second, err := model.OpenCheckpoint(elsewhere)
			if err != nil {
				t.Fatal(err)
			}
			a, fault := first.Training()
			b, err := second.Training()
			if fault != nil || err != nil || string(a.Bytes()) != string(b.Bytes()) || first.Manifest.Step != second.Manifest.Step {
				t.Errorf("the ends are\n%s%v\n%s%v", a.Bytes(), fault, b.Bytes(), err)
			}

			// Without the state beside it, the optimizer begins afresh, and says so: another run.
			if err := os.Rename(from+checkpoint.OptimizerSuffix, from+".away"); err != nil {
				t.Fatal(err)
			}
			if lost := r.take("lost", filepath.Join(t.TempDir(), "lost"), "--from", from, "--resume"); same(lost) != 0 || !strings.Contains(lost.notes(), "it is not here") {
				t.Errorf("without its optimizer it comes to the same parameters, or was told only %q", lost.notes())
			}
		})
	}
}

// A miner takes up its training in another run as well. Another chain draws other slices, so the parameters are not the same; package node's tests show
// that all else is.
func TestAMinersRunIsTakenUpAgainFromItsCheckpoint(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("three runs")
	}
	own, public, _ := startBuckets(t)
	r := newResumable(t, "slice", 8)
	r.window = 8
	file := func(l bucket.Location) string { return writeFile(t, filepath.Join(t.TempDir(), "location"), l.URL()) }
	r.join = []string{"--bucket", file(own), "--bucket-read", file(public), "--private-buckets"}
	whole, from, before := r.first()
	saved, err := checkpoint.OpenLocal(os.DirFS(from))
	if err != nil {
		t.Fatal(err)
	}
	training, err := saved.Training()
	if err != nil || len(training.States) != 0 || training.Sequence == 0 {
		t.Fatalf("the checkpoint says %+v, %v", training, err)
	}
	rates := map[uint32]float32{}
	for _, ev := range whole.events {
		if ev.Kind == "trained" {
			rates[ev.Step] = ev.LR
		}
	}
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	again := r.takeAll("again", elsewhere, r.steps-int(before), "--from", from, "--resume")
	if n := len(again.steps()); n != r.steps-int(before) || !strings.Contains(again.notes(), "goes on from the checkpoint's state") {
		t.Errorf("%d steps were done after %d of %d; it was told %q", n, before, r.steps, again.notes())
	}
	for _, ev := range again.events {
		if want, ok := rates[before+ev.Step]; ev.Kind == "trained" && ok && ev.LR != want {
			t.Errorf("step %d has the learning rate %v, had %v", before+ev.Step, ev.LR, want)
		}
	}
	_, end, err := model.OpenCheckpoint(elsewhere)
	if err != nil {
		t.Fatal(err)
	}
	if after, err := end.Training(); err != nil || end.Manifest.Step != uint32(r.steps) || after.Sequence < training.Sequence+uint64(4*(r.steps-int(before))) {
		t.Errorf("at the end of step %d the next sequence is %d; it was %d after step %d, %v", end.Manifest.Step, after.Sequence, training.Sequence, before, err)
	}

	// Without the state beside it, the optimizer begins afresh, and says so.
	if err := os.Rename(from+checkpoint.OptimizerSuffix, from+".away"); err != nil {
		t.Fatal(err)
	}
	if lost := r.take("lost", filepath.Join(t.TempDir(), "lost"), "--from", from, "--resume"); !strings.Contains(lost.notes(), "beginning afresh") {
		t.Errorf("without its optimizer it was told only %q", lost.notes())
	}
}
