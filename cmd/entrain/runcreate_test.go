package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// An owner whose machine lost power while it created a run gives the command again: the chain has
// the run then, and took its deposit. The names of others stay taken.
func TestARunIsCreatedOnce(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	home := filepath.Join(t.TempDir(), "chain")
	s.ok("chain", "init", "--home", home, "--chain-id", "ours", "--api", "127.0.0.1:0")
	s.chainOf(home)
	file := func(steps string) string {
		return writeFile(t, filepath.Join(t.TempDir(), "run.toml"), "name = \"run\"\nsteps = "+steps+"\n[learning_rate]\nwarmup = 0\n[data]\nmanifest = \""+strings.Repeat("1", 64)+"\"\n")
	}
	first := s.ok("run", "create", "-f", file("10"))
	if again := s.ok("run", "create", "-f", file("10")); again != first {
		t.Errorf("the second time: %q, the first time: %q", again, first)
	}
	s.fails([]string{"run", "create", "-f", file("11")}, "there is or was a run of this name")
	s.fails([]string{"run", "create", "-f", file("10"), "--key", filepath.Join(t.TempDir(), "other")}, "there is or was a run of this name")
}
