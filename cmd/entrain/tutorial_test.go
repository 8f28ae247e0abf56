package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// goesOn are the tutorial's commands that do not end by themselves, or need somebody else.
var goesOn = []string{
	"chain start", "join", "watch", "audit", "relay", "status --state",
	"model", "data prepare -o chats", "run create -f chats.toml",
}

// What the tutorial says to type works, in its order.
func TestTutorial(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "tutorial.md"))
	if err != nil {
		t.Fatal(err)
	}
	small, err := os.ReadFile(filepath.Join("..", "..", "examples", "small.toml"))
	if err != nil {
		t.Fatal(err)
	}
	s := newShell(t)
	t.Chdir(t.TempDir())
	if err := os.Mkdir("examples", 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, "book.txt", strings.Repeat("Neither a borrower nor a lender be. ", 3000))
	writeFile(t, filepath.Join("examples", "small.toml"), string(small))
	code, ran := false, 0
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "```") {
			code = !code
			continue
		}
		command, ok := strings.CutPrefix(line, "entrain ")
		if !code || !ok {
			continue
		}
		if command == "chain start" {
			s.chainOf(filepath.Join(s.console.places.Data, "chain"))
		}
		if slices.ContainsFunc(goesOn, func(p string) bool { return command == p || strings.HasPrefix(command, p+" ") }) {
			continue
		}
		// This machine has another address, and the tests of other packages may use the port.
		here := fmt.Sprint("--public 127.0.0.1:", freePorts(t), " --api 127.0.0.1:0")
		s.ok(strings.Fields(strings.ReplaceAll(command, "--public 203.0.113.5", here))...)
		ran++
	}
	if ran < 10 {
		t.Errorf("%d commands were run", ran)
	}
}
