package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/ledger/comet"
	"github.com/entrain-network/entrain/participant"
	_ "github.com/entrain-network/entrain/tests/heap"
	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain makes the test binary the program itself when a test starts it as a child process.
func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Setenv(asProgram, "1")
	// Caches of their own have no shaders, and Mesa compiles them for seconds.
	if dir, err := os.UserCacheDir(); err == nil && os.Getenv("MESA_SHADER_CACHE_DIR") == "" {
		os.Setenv("MESA_SHADER_CACHE_DIR", dir)
	}
	// Tests that run in parallel wait for processes more than they compute.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	testscript.Main(m, map[string]func(){"entrain": main})
}

// asProgram is set in the environment of child processes.
const asProgram = "ENTRAIN_TEST_AS_PROGRAM"

// shell runs commands in this process, with directories of their own.
type shell struct {
	t       *testing.T
	console console
	env     map[string]string
	out     bytes.Buffer
	err     bytes.Buffer
}

func newShell(t *testing.T) *shell {
	s := &shell{t: t, env: map[string]string{}}
	dir := t.TempDir()
	s.console = console{
		in: strings.NewReader(""), out: &s.out, err: &s.err,
		env:    func(name string) string { return s.env[name] },
		places: participant.Places{Config: filepath.Join(dir, "config"), Data: filepath.Join(dir, "data"), Cache: filepath.Join(dir, "cache")},
	}
	return s
}

// data prepares a data set of a short text, and returns its directory.
func (s *shell) data() (dir string) {
	dir = filepath.Join(s.t.TempDir(), "corpus")
	s.ok("data", "prepare", "-o", dir, writeFile(s.t, filepath.Join(s.t.TempDir(), "book"), strings.Repeat("All the world's a stage. ", 2000)))
	return dir
}

// run runs a command and returns what it printed.
func (s *shell) run(args ...string) (out, words string, err error) {
	s.out.Reset()
	s.err.Reset()
	err = run(s.t.Context(), s.console, args)
	return s.out.String(), s.err.String(), err
}

// ok runs a command that must succeed and returns what it printed for programs.
func (s *shell) ok(args ...string) string {
	s.t.Helper()
	out, words, err := s.run(args...)
	if err != nil {
		s.t.Fatalf("entrain %s: %v\n%s", strings.Join(args, " "), err, words)
	}
	return out
}

// fails runs a command that must fail with an error that contains all of want.
func (s *shell) fails(args []string, want ...string) {
	s.t.Helper()
	_, _, err := s.run(args...)
	if err == nil {
		s.t.Errorf("entrain %s: no error", strings.Join(args, " "))
		return
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			s.t.Errorf("entrain %s: the error %q does not contain %q", strings.Join(args, " "), err, w)
		}
	}
}

func writeFile(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A command with --with-parent ends when its standard input does.
func TestCommandEndsWithItsParent(t *testing.T) {
	s := newShell(t)
	in, parent := io.Pipe()
	s.console.in = in
	s.ok("chain", "init", "--chain-id", "test", "--api", "127.0.0.1:0")
	ended := make(chan error, 1)
	go func() { ended <- run(context.Background(), s.console, []string{"--with-parent", "chain", "start"}) }()
	select {
	case err := <-ended:
		t.Fatalf("ended before its parent: %v", err)
	default:
	}
	parent.Close()
	if err := <-ended; err != nil {
		t.Errorf("got %v", err)
	}
}

// chainOf starts the chain that a shell's chain init has set up in home, until the test ends.
func (s *shell) chainOf(home string) {
	s.t.Helper()
	replica, err := comet.Open(home, nil, referees)
	if err != nil {
		s.t.Fatal(err)
	}
	s.env["ENTRAIN_CHAIN"] = replica.Endpoint()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- replica.Run(ctx) }()
	s.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			s.t.Error(err)
		}
	})
}

// object runs a command and reads the object that it prints.
func object[T any](s *shell, args ...string) T {
	s.t.Helper()
	var v T
	if err := json.Unmarshal([]byte(s.ok(args...)), &v); err != nil {
		s.t.Fatal(err)
	}
	return v
}
