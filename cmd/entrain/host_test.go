package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/founding"
	"github.com/entrain-network/entrain/internal/freeport"
)

// hostedRun is small enough for a test.
const hostedRun = `
name = "friends"
steps = 6
[model]
hidden = 16
layers = 1
heads = 2
kv_heads = 1
head_dim = 8
ffn = 24
context = 32
[data]
sequence = 32
[batch]
start = 8
[learning_rate]
warmup = 2
[times]
waiting = "0s"
`

// freePorts returns the first of the ports that a hosted run takes.
func freePorts(t *testing.T) int {
	t.Helper()
	return freeport.First(t, founding.HostPorts)
}

// startHost starts entrain host, and returns the ticket with what ends it.
func startHost(t *testing.T, c console, args ...string) (ticket string, stop func() error) {
	t.Helper()
	in, out := io.Pipe()
	var words syncBuffer
	c.out, c.err = out, &words
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the host: %s", words.String())
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, c, append([]string{"host", "--json", "--workers", "1"}, args...))
		if ctx.Err() == nil {
			fmt.Fprintf(&words, "it ended before it was stopped: %v\n", err)
		}
		ended <- err
		out.Close()
	}()
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	if !lines.Scan() {
		t.Fatalf("no ticket: %v\n%s", <-ended, words.String())
	}
	var first struct{ Event, Ticket string }
	if err := json.Unmarshal(lines.Bytes(), &first); err != nil || first.Event != "hosting" {
		t.Fatalf("%v: %s", err, lines.Text())
	}
	go io.Copy(io.Discard, in)
	return first.Ticket, func() error { cancel(); return <-ended }
}

// Nothing is there, and two commands later two machines train.
func TestAHostedRunIsJoinedWithItsTicket(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	dir := t.TempDir()
	text := writeFile(t, filepath.Join(dir, "book.txt"), strings.Repeat("All the world's a stage, and all the men and women merely players. ", 400))
	file := writeFile(t, filepath.Join(dir, "run.toml"), hostedRun)
	args := []string{"-f", file, "--data", text, "--public-ip", "127.0.0.1", "--port", fmt.Sprint(freePorts(t))}
	ticket, stop := startHost(t, s.console, args...)

	if friend := <-takePart(t.Context(), t, func(string) string { return "" }, ticket); friend.err != nil {
		t.Error(friend.err)
	} else if _, ok := friend.first("finished"); !ok {
		t.Errorf("the friend did not finish: %+v", friend.events)
	}
	fetched := fetchFinished(t, ticket) // the host goes on serving
	home := filepath.Join(s.console.places.Data, "hosted", "friends")
	if own := s.ok("model", "generate", home, "--prompt", "All", "--tokens", "4", "--seed", "1"); own == "" {
		t.Error("the home of the run is no checkpoint")
	}
	s.fails([]string{"model", "generate", text}, "book.txt", "is a file", "ticket")
	s.fails([]string{"host", "--home", home}, "in use by another process")
	s.fails([]string{"relay", ticket, "--listen", "127.0.0.1:0"}, "that of a member", "--key FILE") // with the host's key
	if err := stop(); err != nil {
		t.Error(err)
	}

	s.fails([]string{"host", "-f", writeFile(t, filepath.Join(dir, "other.toml"), hostedRun+"epoch = \"1h\"\n")}, "another specification", "--home DIR")
	s.fails([]string{"host", "-f", file, "--data", file}, "another --data")
	moved := filepath.Join(dir, "moved")
	if err := os.Rename(home, moved); err != nil {
		t.Fatal(err)
	}
	again, stop := startHost(t, s.console, "--home", moved)
	if again != ticket {
		t.Errorf("the ticket changed from %s to %s", ticket, again)
	}
	if later := fetchFinished(t, filepath.Join(moved, "run.ticket")); later != fetched {
		t.Errorf("a host that starts after the finish serves %s, before it served %s", later, fetched)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// fetchFinished fetches the model of a finished run as somebody who took no part, and returns its hash.
func fetchFinished(t *testing.T, ticket string) string {
	t.Helper()
	s := newShell(t)
	var status struct{ Phase, Params string }
	if err := json.Unmarshal([]byte(s.ok("status", ticket, "--json")), &status); err != nil || status.Phase != coordinator.Finished.String() {
		t.Fatalf("the run is not over: %+v, %v", status, err)
	}
	if out := s.ok("watch", ticket, "--plain"); !strings.Contains(out, "Finished, epoch") {
		t.Errorf("watch prints %q", out)
	}
	s.ok("model", "export", ticket, "-o", filepath.Join(t.TempDir(), "model.gguf"), "--hash", status.Params)
	s.ok("model", "generate", ticket, "--prompt", "All the", "--tokens", "4")
	return status.Params
}

// A port that somebody else's chain has is never taken for the own one.
func TestAHostNeedsItsPorts(t *testing.T) {
	s := newShell(t)
	text := writeFile(t, filepath.Join(t.TempDir(), "book.txt"), strings.Repeat("All the world's a stage. ", 2000))
	port := freePorts(t)
	l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port+1))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s.fails([]string{"host", "--data", text, "--public-ip", "127.0.0.1", "--port", fmt.Sprint(port)}, "--port", "must be free", "in use")
	s.fails([]string{"host"}, "say which run", "-f FILE", "--data FILE")
	s.fails([]string{"host", "--data", text, "--port", "70000"}, "--port 70000")
	free := fmt.Sprint(freePorts(t)) // the default one may be taken by a chain on this machine
	s.fails([]string{"host", "--data", "nowhere.txt", "--port", free}, "--data", "nowhere.txt")
	s.fails([]string{"host", "--data", text, "--public-ip", "example", "--port", free}, `--public-ip "example"`)
}
