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

	"github.com/entrain-network/entrain/audit"
	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/ledger/comet"
)

// A small run whose rounds take some tenths of a second, and of whose results half are checked.
const auditedRun = `
name = "audited"
steps = 100000
[model]
preset = "nano"
hidden = 64
layers = 2
heads = 2
kv_heads = 1
ffn = 128
[data]
location = %q
sequence = 64
[batch]
start = 64
[members]
min = 1
start = 2
[times]
waiting = "0s"
warmup = "1m"
round_train = "1m"
epoch = "1h"
[trust]
verification_percent = 50
verify = "1m"
dispute = "1m"
`

// A guest who knows nothing but the chain's address and the data computes what members did, and gets the same.
func TestAuditOfALiveRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := newShell(t)
	writeFile(t, filepath.Join(dir, "text"), strings.Repeat("All that glitters is not gold; often have you heard that told. ", 2000))
	s.ok("data", "prepare", "-o", filepath.Join(dir, "data"), filepath.Join(dir, "text"))
	home := filepath.Join(dir, "chain")
	if err := comet.Init(home, comet.Options{Chain: "audited", API: "127.0.0.1:0", Block: replicaBlock}); err != nil {
		t.Fatal(err)
	}
	replica, err := comet.Open(home, nil, referees)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 3)
	go func() { ended <- replica.Run(ctx) }()
	env := func(name string) string { return map[string]string{"ENTRAIN_CHAIN": replica.Endpoint()}[name] }
	s.console.env = env
	s.ok("key", "--key", filepath.Join(dir, "owner"))
	s.ok("run", "create", "-f", writeFile(t, filepath.Join(dir, "run.toml"), fmt.Sprintf(auditedRun, filepath.Join(dir, "data"))), "--key", filepath.Join(dir, "owner"))
	members, leave := context.WithCancel(ctx)
	for i := range 2 {
		member := newShell(t).console
		member.env, member.out, member.err = env, io.Discard, io.Discard
		name := filepath.Join(dir, fmt.Sprint("member", i))
		go func() {
			err := run(members, member, []string{"join", "audited", "--key", name + ".key", "--state", name, "--workers", "1", "--json"})
			if errors.Is(err, context.Canceled) {
				err = nil
			}
			ended <- err
		}()
	}
	reports := func(lines io.Reader, enough int, stop func()) (equal, other int) {
		for in := bufio.NewScanner(lines); in.Scan(); {
			var r audit.Report
			if err := json.Unmarshal(in.Bytes(), &r); err != nil {
				t.Errorf("line %q: %v", in.Text(), err)
			}
			switch {
			case r.Verdict == audit.Equal && len(r.Rows) >= 6 && r.Accepted:
				equal++
			case r.Verdict != audit.NotAudited: // members were faster
				t.Errorf("%s", in.Text())
				other++
			}
			if equal == enough {
				stop()
			}
		}
		return equal, other
	}
	archive := filepath.Join(dir, "archive")
	// --watch first: it waits for the run to begin.
	out, lines := io.Pipe()
	watching, stop := context.WithCancel(ctx)
	watcher := newShell(t).console
	watcher.env, watcher.out, watcher.err = env, lines, io.Discard
	watched := make(chan error, 1)
	go func() {
		err := run(watching, watcher, []string{"audit", "audited", "--watch", "--json", "--archive", archive, "--archive-bytes", "1"})
		lines.Close()
		watched <- err
	}()
	if equal, other := reports(out, 3, stop); equal < 3 || other > 0 {
		t.Errorf("watching, %d results were right and %d not", equal, other)
	}
	if err := <-watched; err != nil {
		t.Errorf("watching ended with %v", err)
	}
	text, words, err := s.run("audit", "audited", "--json")
	if equal, other := reports(strings.NewReader(text), 0, func() {}); err != nil || equal == 0 || other > 0 {
		t.Errorf("%d results were right and %d not: %v\n%s%s", equal, other, err, text, words)
	}
	checkArchive(t, s, archive, reports)
	_, _, err = s.run("audit", "audited", "--round", "4000000000")
	if status := statusOf(err); err == nil || status != exitNotAudited || !strings.Contains(err.Error(), "too old") {
		t.Errorf("a round to come: status %d, %v", status, err)
	}
	askStrangers(t, s)
	leave()
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// askStrangers writes text with the model of a run in which the shell's user takes no part.
func askStrangers(t *testing.T, s *shell) {
	t.Helper()
	text, words, err := s.run("model", "generate", "audited", "--prompt", "All ", "--tokens", "2", "--temperature", "0")
	if err != nil || !strings.HasPrefix(text, "All ") || !strings.Contains(words, `fetching the model of run "audited" at step`) {
		t.Errorf("the members' model wrote %q, %v: %s", text, err, words)
	}
	found, err := filepath.Glob(filepath.Join(s.console.places.Cache, "checkpoints", "*", checkpoint.ManifestFile))
	if err != nil || len(found) != 1 {
		t.Fatalf("the cache holds %v, %v", found, err)
	}
	s.fails([]string{"model", "generate", "audited", "--hash", strings.Repeat("0", 63) + "1"}, "has the parameters")
	s.fails([]string{"model", "generate", "audti"}, "manifest.json", `no run "audti"`)
}

// checkArchive audits the one round that an archive for one byte still has, and then a damaged one.
func checkArchive(t *testing.T, s *shell, archive string, reports func(io.Reader, int, func()) (int, int)) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(archive, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the archive has %q, %v", files, err)
	}
	text, words, err := s.run("audit", "audited", "--json", "--archive", archive)
	if equal, other := reports(strings.NewReader(text), 0, func() {}); err != nil || equal == 0 || other > 0 {
		t.Errorf("of the archive, %d results were right and %d not: %v\n%s%s", equal, other, err, text, words)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-1] ^= 1
	writeFile(t, files[0], string(b))
	_, _, err = s.run("audit", "audited", "--archive", archive)
	if statusOf(err) != exitNotAudited || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("of a damaged archive: %v", err)
	}
	s.fails([]string{"audit", "audited", "--archive", archive, "--round", "4000000000"}, "has no round 4000000000")
	s.fails([]string{"audit", "audited", "--archive", t.TempDir()}, "has no rounds")
}

func TestExitStatusOfAnAudit(t *testing.T) {
	for want, tally := range map[int]audit.Tally{
		0: {Equal: 3, NotAudited: 1}, exitDifferent: {Equal: 1, Different: 1, NotAudited: 1}, exitNotAudited: {NotAudited: 2},
	} {
		err := auditOutcome(tally)
		if (err == nil) != (want == 0) || err != nil && statusOf(err) != want {
			t.Errorf("%v: got %v, want status %d", tally, err, want)
		}
	}
}
