package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/codec/all"
	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/founding"
	"github.com/entrain-network/entrain/ledger/comet"
	"github.com/entrain-network/entrain/model"
	"github.com/entrain-network/entrain/participant/trainer"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/tokenizer"
	"github.com/entrain-network/entrain/view"
	"github.com/entrain-network/entrain/wire"
)

// continuedRun goes on from a checkpoint: it says nothing of the model.
const continuedRun = `
name = %q
steps = %d
[data]
location = %q
sequence = 32
[batch]
start = 24
[learning_rate]
warmup = 2
[members]
min = 1
start = %d
[times]
waiting = "0s"
warmup = "1m"
round_train = "1m"
epoch = "1h"
[trust]
verification_percent = %d
`

// foreignData prepares text with the tokenizer of a checkpoint.
func foreignData(t *testing.T, s *shell, from string) string {
	t.Helper()
	text := writeFile(t, filepath.Join(t.TempDir(), "text.txt"), strings.Repeat("All the world's a stage, and all the men and women merely players. ", 1000))
	dir := filepath.Join(t.TempDir(), "data")
	s.ok("data", "prepare", "-o", dir, "--tokenizer", filepath.Join(from, checkpoint.TokenizerFile), text)
	return dir
}

// printed is a line of join --json or demo --json.
type printed struct {
	Time    string  `json:"time"`
	Process string  `json:"process"`
	PID     int     `json:"pid"`
	Kind    string  `json:"event"`
	Round   uint32  `json:"round"`
	Step    uint32  `json:"step"`
	Params  string  `json:"params"`
	LR      float32 `json:"lr"`
	Text    string  `json:"text"`
	Phase   string  `json:"phase"`
	Bytes   uint64  `json:"bytes"`
	Update  bool    `json:"update"`
	Status  string  `json:"status"`
}

// taking is a member that takes part to the end.
type taking struct {
	events []printed
	err    error
}

// first returns the first event of a kind, and whether there is one.
func (m taking) first(kind string) (printed, bool) {
	for _, ev := range m.events {
		if ev.Kind == kind {
			return ev, true
		}
	}
	return printed{}, false
}

// sayFor is how long before the end of all tests a member ends, to say what it still waits for.
const sayFor = 30 * time.Second

// takePart joins a run until it has finished.
func takePart(ctx context.Context, t *testing.T, env func(string) string, args ...string) <-chan taking {
	return takePartUntil(ctx, nil, nil, t, env, args...)
}

// takePartUntil is takePart by a member that goes on serving the model of the finished run until
// leaves is closed; nil is two seconds. Unless it is nil, seen is called with each event.
func takePartUntil(ctx context.Context, leaves <-chan struct{}, seen func(printed), t *testing.T, env func(string) string, args ...string) <-chan taking {
	member := newShell(t).console
	in, out := io.Pipe()
	var words syncBuffer
	member.env, member.out, member.err = env, out, &words
	ended := make(chan error, 1)
	end, limited := t.Deadline()
	if !limited {
		end = time.Now().Add(24 * time.Hour)
	}
	ctx, cancel := context.WithDeadline(ctx, end.Add(-sayFor))
	lingering, leave := context.WithCancel(ctx)
	go func() {
		defer cancel()
		linger := "2s"
		if leaves != nil {
			linger = "-1s"
		}
		err := run(lingering, member, append([]string{"join", "--workers", "1", "--linger", linger, "--json"}, args...))
		if err = errors.Join(err, ctx.Err()); err != nil {
			err = fmt.Errorf("%w: %s", err, words.String())
		}
		out.Close()
		ended <- err
	}()
	result := make(chan taking, 1)
	go func() {
		var m taking
		lines := bufio.NewScanner(in)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var ev printed
			if err := json.Unmarshal(lines.Bytes(), &ev); err != nil {
				m.err = errors.Join(m.err, fmt.Errorf("line %q: %w", lines.Text(), err))
			}
			m.events = append(m.events, ev)
			if seen != nil {
				seen(ev)
			}
			if ev.Kind == "finished" && leaves != nil {
				go func() {
					<-leaves
					leave()
				}()
			}
		}
		m.err = errors.Join(m.err, <-ended)
		result <- m
	}()
	return result
}

// replicaBlock is the time between the blocks of startReplica's chain: long enough for a run of some dozens of rounds to have several epochs.
const replicaBlock = 50 * time.Millisecond

// startReplica starts a chain and returns where commands find it.
func startReplica(t *testing.T) (env func(string) string) {
	t.Helper()
	home := filepath.Join(t.TempDir(), "chain")
	if err := comet.Init(home, comet.Options{Chain: "from", API: "127.0.0.1:0", Block: replicaBlock}); err != nil {
		t.Fatal(err)
	}
	replica, err := comet.Open(home, nil, referees)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- replica.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return func(name string) string { return map[string]string{"ENTRAIN_CHAIN": replica.Endpoint()}[name] }
}

// create creates a run from a checkpoint and returns the hash of its first parameters, as the chain has it. The command may go on, to serve them.
func create(t *testing.T, s *shell, text, from string, flags ...string) string {
	t.Helper()
	hash, _ := creating(t, s, text, from, flags...)
	return hash
}

// creating is create that returns how the command ends, too.
func creating(t *testing.T, s *shell, text, from string, flags ...string) (hash string, end <-chan error) {
	t.Helper()
	owner := s.console
	in, out := io.Pipe()
	var words syncBuffer
	owner.out, owner.err = out, &words
	args := append([]string{"run", "create", "-f", writeFile(t, filepath.Join(t.TempDir(), "run.toml"), text), "--from", from, "--json"}, flags...)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended, over := make(chan error, 1), make(chan bool)
	go func() {
		defer close(over)
		err := run(ctx, owner, args)
		out.CloseWithError(err)
		ended <- err
	}()
	t.Cleanup(func() { cancel(); <-over })
	var created struct {
		ModelHash string `json:"model_hash"`
	}
	if err := json.NewDecoder(in).Decode(&created); err != nil {
		t.Fatalf("entrain %q: %v\n%s", args, err, words.String())
	}
	return created.ModelHash, ended
}

// A model from elsewhere is trained further by three members, who get it from the run's owner, who takes no part; results are checked, and
// pass. What comes of it is trained further in a run of its own, bit for bit.
func TestARunGoesOnFromAModelFromElsewhere(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.console.env = startReplica(t)
	imported, _ := importForeign(t, s)
	corpus := foreignData(t, s, imported)
	before, err := model.Open(imported)
	if err != nil {
		t.Fatal(err)
	}
	first, served := creating(t, s, fmt.Sprintf(continuedRun, "further", 16, corpus, 3, 60), imported)
	if first != before.Hash().String() {
		t.Fatalf("the run begins with %s, the checkpoint has %s", first, before.Hash())
	}
	asked := beset(t, s, "further", before)
	states := t.TempDir()
	var members [3]<-chan taking
	for i := range members {
		name := filepath.Join(states, fmt.Sprint("member", i))
		members[i] = takePart(t.Context(), t, s.console.env, "further", "--key", name+".key", "--state", name)
	}
	var final string
	for i := range members {
		m := <-members[i]
		if m.err != nil {
			t.Fatalf("member %d: %v", i, m.err)
		}
		if came, ok := m.first("healed"); !ok || came.Params != first {
			t.Errorf("member %d came to the model by %+v", i, came)
		}
		kept, ok := m.first("finished")
		if !ok || i > 0 && kept.Params != final || kept.Params == first {
			t.Errorf("member %d ends with %q, the others with %q", i, kept.Params, final)
		}
		final = kept.Params
	}
	if err := <-served; err != nil {
		t.Errorf("the owner served the model: %v", err)
	}
	if asked() == 0 {
		t.Error("no liar was asked: the test shows nothing of them")
	}
	var report view.Run
	if err := json.Unmarshal([]byte(s.ok("status", "further", "--json")), &report); err != nil {
		t.Fatal(err)
	}
	if report.Step != 16 || report.Rollbacks != 0 || report.Trust.Passed == 0 || report.Trust.Convicted != 0 || report.Trust.Disputed != 0 {
		t.Errorf("the run stands at %+v", report)
	}
	resumeElsewhere(t, s, filepath.Join(states, "member1"), corpus, final)
}

// resumeElsewhere goes on from a run's own checkpoint, in a state directory.
func resumeElsewhere(t *testing.T, s *shell, state, corpus, params string) {
	t.Helper()
	if got := create(t, s, fmt.Sprintf(continuedRun, "elsewhere", 2, corpus, 1, 0), state); got != params {
		t.Fatalf("the run elsewhere begins with %s, the other ended with %s", got, params)
	}
	dir := filepath.Join(t.TempDir(), "fresh")
	m := <-takePart(t.Context(), t, s.console.env, "elsewhere", "--key", dir+".key", "--state", dir, "--from", state)
	if m.err != nil {
		t.Fatal(m.err)
	}
	if ev, ok := m.first("loaded"); !ok || ev.Params != params {
		t.Errorf("it began with %+v", ev)
	}
	if after, err := model.Open(dir); err != nil || after.Config != foreign || after.Hash().String() == params {
		t.Errorf("it learnt nothing: %v", err)
	} else if card, err := after.Saved.File(checkpoint.CardFile, 1<<20); err != nil || !strings.Contains(string(card), params) {
		t.Errorf("its card does not say what it was trained from: %v", err)
	}
}

// leftRun has an epoch every few rounds, so that its only member soon has a checkpoint.
const leftRun = `
name = "left"
steps = 60
[model]
hidden = 16
layers = 1
heads = 2
kv_heads = 1
head_dim = 8
ffn = 24
context = 32
[data]
location = %q
sequence = 32
[batch]
start = 4
[learning_rate]
warmup = 2
[members]
min = 1
start = 1
[times]
waiting = "0s"
warmup = "1s"
round_train = "2s"
cooldown = "5s"
epoch = "2s"
`

// The only member of a run has left, and nobody holds the model. Who has a checkpoint of it brings it, whatever else others bring, and the
// run goes on.
func TestARunGoesOnWithACheckpointThatIsBrought(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.console.env = startReplica(t)
	corpus := s.data()
	s.ok("run", "create", "-f", writeFile(t, filepath.Join(t.TempDir(), "run.toml"), fmt.Sprintf(leftRun, corpus)))
	first := filepath.Join(t.TempDir(), "first")
	ctx, leave := context.WithCancel(t.Context())
	member := takePart(ctx, t, s.console.env, "left", "--key", first+".key", "--state", first)
	status := func() (r view.Run) {
		if err := json.Unmarshal([]byte(s.ok("status", "left", "--json")), &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	for look := time.Tick(replicaBlock); ; {
		steps, err := model.Dir(filepath.Join(first, model.CheckpointsDir)).Steps()
		if err != nil {
			t.Fatal(err)
		}
		if len(steps) > 1 { // the chain knows the one before the last
			break
		}
		select {
		case m := <-member:
			t.Fatalf("it ended before it had two checkpoints: %v", m.err)
		case <-look:
		}
	}
	leave()
	if m := <-member; m.err == nil || !errors.Is(m.err, context.Canceled) {
		t.Errorf("it left with %v", m.err)
	}
	left := status()
	if left.Phase == "Finished" {
		t.Fatal("the run was over before its member left")
	}

	other := writeCheckpoint(t)
	s.fails([]string{"join", "left", "--from", other, "--key", first + ".key2", "--state", first + "2"}, `run "left" agreed last on the parameters `, "the checkpoint \""+other)
	second := filepath.Join(t.TempDir(), "second")
	m := <-takePart(t.Context(), t, s.console.env, "left", "--from", first, "--key", second+".key", "--state", second)
	if m.err != nil {
		t.Fatal(m.err)
	}
	came, ok := m.first("healed")
	if found, err := model.Dir(filepath.Join(first, model.CheckpointsDir)).Find(came.Params); !ok || found == "" {
		t.Errorf("it came to the model by %+v, which is no checkpoint of the one that left: %v", came, err)
	}
	if r := status(); r.Phase != "Finished" {
		t.Errorf("the run stands at %+v", r)
	}
}

// What does not fit a checkpoint is refused before the run exists, or before a member takes part, and named.
func TestWhatDoesNotFitACheckpointIsRefused(t *testing.T) {
	s := newShell(t)
	imported, _ := importForeign(t, s)
	corpus := foreignData(t, s, imported)
	text := func(model string) []byte {
		return []byte(fmt.Sprintf(continuedRun, "on", 10, corpus, 1, 0) + "[model]\n" + model)
	}
	s1, published, err := founding.Draft{Text: text(""), From: imported}.Complete()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := spec.Parse(published, all.Kinds()); err != nil || again != s1 {
		t.Errorf("what is published reads as %+v, %v", again, err)
	}
	bytesData := filepath.Join(t.TempDir(), "bytes")
	s.ok("data", "prepare", "-o", bytesData, writeFile(t, filepath.Join(t.TempDir(), "t"), strings.Repeat("as bytes ", 1000)))
	for _, c := range []struct{ model, data, from, want string }{
		{"hidden = 64", corpus, imported, "model.hidden: the specification says 64, the checkpoint has 32"},
		{"", bytesData, imported, "they have 256 and 260 tokens"},
		{"", bytesData, imported, "--tokenizer CHECKPOINT/tokenizer.json"},
		{"", corpus, corpus, "is not a checkpoint of entrain"},
	} {
		draft := founding.Draft{Text: text(c.model), Data: c.data, From: c.from}
		if _, _, err := draft.Complete(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q with %s: got %v, want an error with %q", c.model, c.from, err, c.want)
		}
	}
	other := writeCheckpoint(t)
	if _, err := trainer.FindOrigin(s1, other, nil); err == nil || !strings.Contains(err.Error(), "goes on from "+s1.Model.From) {
		t.Errorf("another checkpoint: %v", err)
	}
	if _, err := trainer.FindOrigin(spec.Default(all.Kinds()), imported, nil); err == nil || !strings.Contains(err.Error(), "seed") {
		t.Errorf("a run from a seed: %v", err)
	}
	for location, want := range map[string]string{imported: imported, other: "", filepath.Join(other, "none"): "", "": ""} {
		s1.Model.FromLocation = location
		if got, err := trainer.FindOrigin(s1, "", nil); err != nil || got != want {
			t.Errorf("from_location %q leads to %q, %v", location, got, err)
		}
	}
	s1.Data.Manifest = mustManifest(t, bytesData)
	if _, err := trainer.New(t.Context(), s1, data.Place{Location: bytesData}, trainer.Machine{Workers: 1}, 0); err == nil || !strings.Contains(err.Error(), "tokenizer") {
		t.Errorf("a member with data of another tokenizer: %v", err)
	}
}

// mustManifest is the hash of the data set in dir.
func mustManifest(t *testing.T, dir string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	return wire.SHA256(b).String()
}

func TestHowTokenizersDiffer(t *testing.T) {
	b, words := tokenizer.ByteToken, foreignWords(t)
	others, err := tokenizer.New([]tokenizer.Merge{{Left: b('a'), Right: b('b'), Token: 257}, {Left: b('h'), Right: b('e'), Token: 258}, {Left: 257, Right: 258, Token: 259}})
	if err != nil {
		t.Fatal(err)
	}
	if text := trainer.TokenizersDiffer(others, words); !strings.Contains(text, `257, "ab" and " t"`) {
		t.Error(text)
	}
	if text := trainer.TokenizersDiffer(words, words); !strings.Contains(text, "same tokens") {
		t.Error(text)
	}
}
