package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// needsMore are the examples that TestExamplesRun leaves out, by their beginning: they go on until
// Ctrl-C, take minutes, or need members, a network, a device, files of other software, what an
// example before them made already, or somebody at a terminal. TestEveryCommandTeaches holds that
// they parse.
var needsMore = []string{
	"audit", "bench", "bittensor", "bucket", "chain init --", "chain init http", "chain init solana",
	"chain seat", "chain start", "chain show --chain", "chain show my-run --hash", "data prepare -o ./web",
	"data prepare -o ./posts", "data prepare -o ./chats", "data prepare -o ./stories",
	"data prepare -o ./tokens", "data prepare -o ./corpus --mix", "data publish", "data show ./posts", "demo",
	"host", "join", "key --key", "key delegate --re", "model chat",
	"model eval ./checkpoint --task hellaswag --task", "model eval ./checkpoint --task hellaswag=",
	"model eval https", "model eval ./state", "model export ./state", "model export \"hf",
	"model generate ./checkpoint --prompt \"Qu. 31. \" --seed 7 --device", "model generate s3",
	"model import", "model serve", "pool our-pool my-run --commission", "relay", "report",
	"run allow my-run@", "run create -f run.toml --from", "run create -f run.toml --data ./corpus --chain",
	"run close", "status my-run@", "status my-run --scores", "status my-run --explain", "status --state",
	"validate", "version my-run@", "wallet claim", "wallet send stake:", "watch", "web",
}

// What a command's help shows, works.
func TestExamplesRun(t *testing.T) {
	specification, err := os.ReadFile(filepath.Join("..", "..", "examples", "run.toml"))
	if err != nil {
		t.Fatal(err)
	}
	s := newShell(t)
	checkpoint, _ := importForeign(t, s)
	t.Chdir(t.TempDir())
	if err := os.Mkdir("examples", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(checkpoint, "checkpoint"); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join("examples", "run.toml"), string(specification))
	for _, name := range []string{"book1.txt", "book2.txt"} {
		writeFile(t, name, strings.Repeat("Neither a borrower nor a lender be. ", 3000)+name)
	}
	s.ok("key", "--key", "owner.key")
	me, node := strings.TrimSpace(s.ok("key")), strings.TrimSpace(s.ok("key", "--key", "node.key"))

	var examples []string
	walk(newRoot(s.console), func(cmd *cobra.Command) {
		if !cmd.HasSubCommands() {
			examples = append(examples, strings.Split(cmd.Example, "\n")...)
		}
	})
	// The order in which a user comes to them; what is in none of these lines follows.
	first := []string{
		"chain init", "data prepare", "data show", "run create", "run ticket my-run --at chain",
		"run ticket", "wallet send 1f0c", "wallet send my-run", "pool our-pool my-run",
		"wallet send pool", "run allow my-run --", "run pause", "key --name",
	}
	rank := func(line string) int {
		i := slices.IndexFunc(first, func(p string) bool { return strings.HasPrefix(line, p) })
		switch {
		case i < 0:
			return len(first)
		case strings.Contains(line, "--close"):
			return len(first) + 1
		}
		return i
	}
	var lines []string
	for _, line := range examples {
		line = strings.TrimPrefix(strings.TrimSpace(line), "entrain ")
		if line == "chain init --chain-id my-chain" || !slices.ContainsFunc(needsMore, func(p string) bool { return line == p || strings.HasPrefix(line, p) }) {
			lines = append(lines, line)
		}
	}
	slices.SortStableFunc(lines, func(a, b string) int { return rank(a) - rank(b) })
	for _, line := range lines {
		line, _, _ := strings.Cut(line, " | ")
		line, file, saves := strings.Cut(line, " > ")
		for placeholder, is := range map[string]string{"$(entrain key)": me, "1f0c...e2": me, "77ab...09": node} {
			line = strings.ReplaceAll(line, placeholder, is)
		}
		if strings.HasPrefix(line, "chain init") {
			line += " --api 127.0.0.1:0"
		}
		out, _, err := s.run(words(line)...)
		if err != nil {
			t.Errorf("entrain %s: %v", line, err)
		}
		if saves {
			writeFile(t, file, out)
		}
		if strings.HasPrefix(line, "chain init") {
			s.chainOf(filepath.Join(s.console.places.Data, "chain"))
		}
	}
	t.Logf("%d of %d examples were run", len(lines), len(examples))
	if len(lines) < 35 {
		t.Errorf("only %d examples were run", len(lines))
	}
}

// words splits a line as a shell does.
func words(line string) []string {
	list := regexp.MustCompile(`"[^"]*"|\S+`).FindAllString(line, -1)
	for i := range list {
		list[i] = strings.Trim(list[i], `"`)
	}
	return list
}
