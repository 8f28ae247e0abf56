//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/entrain-network/entrain/audit"
	"github.com/entrain-network/entrain/demo"
	"github.com/entrain-network/entrain/participant"
)

// Three miners, one of which cheats, two validators and a server of buckets, each a process of its own. A miner and the server are killed in the middle:
// the run goes on, all honest miners end with the same parameters, and the cheat has earned next to nothing.
func TestDemoByBuckets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := startDemo(t, dir, append(tinyArgs(t, "12"), "--exchange", "bucket", "--clients", "4", "--window", "1s", "--adversary", "noise")...)
	pids := map[string]int{}
	note := func(ev printed) {
		if ev.PID != 0 {
			pids[ev.Process] = ev.PID
		}
	}
	started := func(process string) func(printed) bool {
		return func(ev printed) bool { note(ev); return ev.PID != 0 && ev.Process == process }
	}
	step := func(process string, step uint32) func(printed) bool {
		return func(ev printed) bool {
			note(ev)
			return ev.Kind == "applied" && ev.Process == process && ev.Step >= step
		}
	}
	d.until("all were started", func(ev printed) bool { note(ev); return len(pids) == 8 })
	d.until("a step", step("client-1", 2))
	kill(t, pids["client-2"])
	d.until("client-2 was started again", started("client-2"))
	d.until("client-2 goes on", func(ev printed) bool { note(ev); return ev.Process == "client-2" && ev.Kind == "applied" })
	d.until("a period of three windows is settled", step("client-1", 8))
	tellsScores(t, dir)
	kill(t, pids["s3"])
	d.until("the server was started again", started("s3"))
	if err := d.end(); err != nil {
		t.Fatalf("%v\n%s", err, d.words)
	}
	d.nothingRuns()
	s := d.final
	if !s.HashesEqual || s.Exchange != demo.Buckets || s.HeldOutLast >= s.HeldOutFirst || s.WindowBytes == 0 || s.WindowBytes < s.SliceBytes {
		t.Errorf("%+v", s)
	}
	if s.AdversaryRewardShare == nil || *s.AdversaryRewardShare > 0.02 || len(s.Members) != 4 {
		t.Fatalf("rewards %+v", s.Members)
	}
	for _, r := range s.Members {
		if !r.Cheats && (r.Earned == 0 || r.Results < 6) && r.Name != "client-2" { // which was killed, and may have missed what was scored
			t.Errorf("%s earned %d for %d results in 12 windows", r.Name, r.Earned, r.Results)
		}
	}
	for _, name := range []string{"client-1.write", "client-1.read", "secret"} {
		if info, err := os.Stat(filepath.Join(dir, "s3", name)); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

// tellsScores looks at the scores of a demo by buckets as a member of it would.
func tellsScores(t *testing.T, dir string) {
	t.Helper()
	s := newShell(t)
	s.env["ENTRAIN_CHAIN"] = demoChain(t, dir)
	member := func(client string) string {
		return strings.TrimSpace(s.ok("key", "--key", filepath.Join(dir, client, "key")))
	}
	good, cheat := member("client-1"), member("client-4")
	for _, c := range []struct{ args, want string }{
		{"--scores", "settled\n"},
		{"--scores --json", `"settled":true`},
		{"--explain " + good, "weighted by stake times trust"},
		{"--explain " + good + " --state " + filepath.Join(dir, "validator-1"), "evaluated it"},
		{"--explain " + cheat, "A score of 0 or less is paid nothing"},
	} {
		if out := s.ok(append([]string{"status", "demo"}, strings.Fields(c.args)...)...); !strings.Contains(out, c.want) {
			t.Errorf("status demo %s: %q is not in\n%s", c.args, c.want, out)
		}
	}
}

func TestDemoByBucketsRefusesWhatMakesNoSense(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--exchange pigeons", "want peers or bucket"},
		{"--window 3s", "only with --exchange bucket"},
		{"--validators 3", "only with --exchange bucket"},
		{"--exchange bucket --window 10ms", "want 200ms"},
		{"--exchange bucket --validators 0 --adversary noise", "no cheat is found"},
		{"--exchange bucket --adversary copycat", "noise"},
		{"--exchange https://example.org/x", "--exchange"},
	} {
		s := newShell(t)
		err := run(t.Context(), s.console, append([]string{"demo", "--text", writeFile(t, filepath.Join(t.TempDir(), "text"), strings.Repeat("words ", 60_000))}, strings.Fields(c.args)...))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("demo %s: got %v, want %q", c.args, err, c.want)
		}
	}
}

// A miner's bucket is tried before the run counts on it.
func TestMinersBucketsAreTried(t *testing.T) {
	dir := t.TempDir()
	s := newShell(t)
	out, lines := io.Pipe()
	server := s.console
	server.out = lines
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, server, []string{"bucket", dir, "mine", "other", "--addr", "127.0.0.1:0", "--json"})
		ended <- errors.Join(err, lines.CloseWithError(err))
	}()
	var served bucketEvent
	if err := json.NewDecoder(out).Decode(&served); err != nil || !slices.Equal(served.Buckets, []string{"mine", "other"}) {
		t.Fatalf("%+v, %v", served, err)
	}
	file := func(name string) string { return filepath.Join(dir, name) }
	for _, c := range []struct {
		m    participant.Mining
		want string // "" is that all is well
	}{
		{participant.Mining{Own: file("mine.write"), Read: file("mine.read"), Private: true}, ""},
		{participant.Mining{Own: file("mine.write"), Read: file("mine.read")}, "all say --private-buckets"},
		{participant.Mining{}, "name your S3 bucket"},
		{participant.Mining{Own: file("mine.read"), Read: file("mine.read"), Private: true}, "cannot be written"},
		{participant.Mining{Own: file("mine.write"), Read: file("mine.write"), Private: true}, "can write"},
		{participant.Mining{Own: file("mine.write"), Read: file("other.read"), Private: true}, "cannot be read"},
		{participant.Mining{Own: file("mine.write"), Private: true}, "cannot be read"}, // by anybody without credentials
		{participant.Mining{Own: file("nothing")}, "--bucket"},
	} {
		err := c.m.Try(t.Context(), s.console.env)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v, want %q", c.m, err, c.want)
		}
		if b, _ := os.ReadFile(file("mine.write")); err != nil && strings.Contains(err.Error(), strings.SplitN(strings.SplitN(string(b), "@", 2)[0], ":", 3)[2]) {
			t.Error("a secret is in an error")
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("ended by Ctrl-C: %v", err)
	}
}

// A guest computes the gradients of a run by buckets again: those of honest members are what they
// committed to, that of a cheat is not.
func TestAuditByBuckets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := startDemo(t, dir, append(tinyArgs(t, "10000"), "--exchange", "bucket", "--clients", "3", "--window", "1s", "--adversary", "wrong-data", "--verification", "1")...)
	d.until("a step", func(ev printed) bool { return ev.Kind == "applied" && ev.Step >= 2 })
	var convicted atomic.Bool
	go func() {
		for ev := range d.events { // so that the demo goes on
			if ev.Kind == "convicted" {
				convicted.Store(true)
			}
		}
	}()
	s := newShell(t)
	s.env["ENTRAIN_CHAIN"] = demoChain(t, dir)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	want := map[string]string{"client-1": audit.Equal, "client-3": audit.Different}
	keys := map[string]string{}
	for name := range want {
		keys[strings.TrimSpace(s.ok("key", "--key", filepath.Join(dir, name, "key")))] = name
	}
	s.fails([]string{"audit", "demo", "--data", filepath.Join(dir, "data"), "--member", "99"}, `there is no member "99"`) // at once
	out, lines := io.Pipe()
	c := s.console
	c.out, c.err = lines, io.Discard
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil { // it ends with an error where a result is wrong
			_ = run(ctx, c, []string{"audit", "demo", "--data", filepath.Join(dir, "data"), "--json"})
		}
		lines.Close()
	}()
	for in := json.NewDecoder(out); len(want) > 0; {
		var r audit.Report
		if err := in.Decode(&r); err != nil {
			t.Fatalf("%v; not seen: %v", err, want)
		}
		name := keys[r.Key]
		if convicted.Load() && want["client-3"] != "" {
			t.Log("the others had the cheat convicted before it was audited")
			delete(want, "client-3")
		}
		switch {
		case r.Verdict == audit.NotAudited:
		case name == "client-3" && r.Verdict == audit.Different && strings.Contains(r.Reason, "gradient"), name == "client-1" && r.Verdict == audit.Equal && len(r.Rows) == 3:
			delete(want, name)
		case name != "client-3" && r.Verdict != audit.Equal:
			t.Fatalf("%+v", r)
		}
	}
	cancel()
	go func() { _, _ = io.Copy(io.Discard, out) }()
	<-ended
}
