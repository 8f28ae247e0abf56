package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/audit"
	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/model"
	"github.com/entrain-network/entrain/view"
)

// adaptersOf are the lines of a specification that make a run one of adapters.
const adaptersOf = "[model.lora]\nrank = 4\nalpha = 16.0\n"

// chatTemplate is a tokenizer_config.json of the words of writeForeign's model.
const chatTemplate = `{"eos_token":"<|endoftext|>","chat_template":"{% for m in messages %}{{ m.role }}: {{ m.content }}{{ eos_token }}{% endfor %}{{ 'assistant: ' if add_generation_prompt }}"}`

// Two members train adapters of a model from elsewhere on conversations, of which they learn what
// the assistant says, check each other, and use what they made: as adapters, with their model
// beside them, and merged.
func TestMembersTrainAdapters(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.console.env = startReplica(t)
	from, _ := writeForeign(t)
	writeFile(t, filepath.Join(from, "tokenizer_config.json"), chatTemplate)
	imported, corpus := filepath.Join(t.TempDir(), "imported"), filepath.Join(t.TempDir(), "chats")
	s.ok("model", "import", from, "-o", imported)
	chats := strings.Repeat(`{"messages":[{"role":"user","content":"the light of the"},{"role":"assistant","content":"he that being a"}]}`+"\n", 500)
	s.ok("data", "prepare", "-o", corpus, "--tokenizer", imported, writeFile(t, filepath.Join(t.TempDir(), "chats.jsonl"), chats))
	if m, err := data.ReadManifest(corpus); err != nil || !m.Masked {
		t.Fatalf("conversations have no mask: %+v, %v", m, err)
	}
	first := create(t, s, fmt.Sprintf(continuedRun, "adapters", 8, corpus, 2, 60)+adaptersOf, imported)
	audited := auditOne(t, s, "adapters")
	states := t.TempDir()
	var members [2]<-chan taking
	leave := make(chan struct{})
	for i := range members {
		name := filepath.Join(states, fmt.Sprint("member", i))
		args := []string{"adapters", "--key", name + ".key", "--state", name}
		if i == 0 { // both get the frozen model from the owner, who creates the run
			args = append(args, "--evaluate", "4")
		}
		members[i] = takePartUntil(t.Context(), leave, nil, t, s.console.env, args...)
	}
	found := <-audited
	close(leave)
	var final string
	for i := range members {
		m := <-members[i]
		if m.err != nil {
			t.Fatalf("member %d: %v", i, m.err)
		}
		if came, ok := m.first("loaded"); !ok || came.Params != first {
			t.Errorf("member %d came to the adapters by %+v", i, came)
		}
		if _, sampled := m.first("sample"); sampled != (i == 0) {
			t.Errorf("member %d looked at the model: %v", i, sampled)
		}
		kept, ok := m.first("finished")
		if !ok || i > 0 && kept.Params != final || kept.Params == first {
			t.Errorf("member %d ends with %q, the others with %q", i, kept.Params, final)
		}
		final = kept.Params
	}
	if r := found; r.Verdict != audit.Equal || len(r.Rows) < 6 {
		t.Errorf("who audited found %+v", r)
	}
	var report view.Run
	if err := json.Unmarshal([]byte(s.ok("status", "adapters", "--json")), &report); err != nil {
		t.Fatal(err)
	}
	if report.Step != 8 || report.Trust.Passed == 0 || report.Trust.Convicted != 0 || report.Trust.Disputed != 0 {
		t.Errorf("the run stands at %+v", report)
	}
	state := filepath.Join(states, "member1")
	useAdapters(t, s, state, imported, final)
}

// auditOne watches a run from its beginning until it has audited a result, which it passes on.
func auditOne(t *testing.T, s *shell, name string, args ...string) <-chan audit.Report {
	ctx, stop := context.WithCancel(t.Context())
	found, c := make(chan audit.Report, 1), newShell(t).console
	out, lines := io.Pipe()
	c.env, c.out = s.console.env, lines
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, c, append([]string{"audit", name, "--watch", "--json", "--workers", "1"}, args...))
		lines.Close()
	}()
	go func() {
		defer close(found)
		defer stop()
		for in := bufio.NewScanner(out); in.Scan(); {
			var r audit.Report
			if err := json.Unmarshal(in.Bytes(), &r); err != nil {
				t.Errorf("line %q: %v", in.Text(), err)
			}
			if r.Verdict != audit.NotAudited && ctx.Err() == nil { // else members were faster
				found <- r
				stop()
			}
		}
		if err := <-ended; err != nil {
			t.Errorf("the audit ended with %v", err)
		}
	}()
	return found
}

// useAdapters opens the adapters in a state directory in every way.
func useAdapters(t *testing.T, s *shell, state, base, params string) {
	t.Helper()
	path, saved, err := model.OpenCheckpoint(state)
	if err != nil || saved.Manifest.Params.String() != params || saved.Config.LoRA == nil {
		t.Fatalf("the checkpoint has %+v, %v", saved, err)
	}
	for _, name := range []string{checkpoint.AdapterConfigFile, checkpoint.AdapterWeightsFile} {
		if _, err := os.Stat(filepath.Join(path, name)); err != nil {
			t.Error(err)
		}
	}
	text := s.ok("model", "generate", state, "--prompt", "All the", "--tokens", "8", "--temperature", "0")
	merged := filepath.Join(t.TempDir(), "merged")
	s.ok("model", "export", state, "-o", merged, "--type", "hf-f32")
	if again := s.ok("model", "generate", merged, "--prompt", "All the", "--tokens", "8", "--temperature", "0"); again != text {
		t.Errorf("merged it writes %q, with adapters %q", again, text)
	}
	whole, err := model.Open(merged)
	if err != nil {
		t.Fatal(err)
	}
	with, err := model.OpenOn(path, base)
	if err != nil || with.Hash() != whole.Hash() {
		t.Errorf("the merged model is %s, the adapters make %s: %v", whole.Hash(), with.Hash(), err)
	}
	alone := filepath.Join(t.TempDir(), "alone")
	if err := os.CopyFS(alone, os.DirFS(path)); err != nil {
		t.Fatal(err)
	}
	s.fails([]string{"model", "generate", alone, "--prompt", "All"}, "not on this machine", "--base")
	s.fails([]string{"model", "export", alone, "-o", merged + "2", "--base", merged}, "has the parameters")
}
