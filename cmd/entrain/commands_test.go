package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/entrain-network/entrain/atomicfile/dirlock"
	"github.com/entrain-network/entrain/codec/all"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/p2p/lp2p"
	"github.com/entrain-network/entrain/spec"
)

// walk calls f with every command of ours.
func walk(cmd *cobra.Command, f func(*cobra.Command)) {
	for _, sub := range cmd.Commands() {
		if sub.Name() != "help" && sub.Name() != "completion" {
			f(sub)
			walk(sub, f)
		}
	}
}

// parses says why a line such as "entrain status my-run --json | jq ." is not a command of ours, or "".
func parses(t *testing.T, line string) string {
	t.Helper()
	line, _, _ = strings.Cut(line, " | ")
	line, _, _ = strings.Cut(line, " > ")
	line, _, _ = strings.Cut(line, "   #")
	line = regexp.MustCompile(`\$\(.*?\)`).ReplaceAllString(line, "x")
	line = regexp.MustCompile(`"[^"]*"`).ReplaceAllString(line, "x")
	fields := strings.Fields(line)
	if len(fields) == 0 || fields[0] != "entrain" {
		return "it does not begin with entrain"
	}
	cmd, rest, err := newRoot(newShell(t).console).Find(fields[1:])
	if err != nil {
		return err.Error()
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err.Error()
	}
	if !cmd.Runnable() {
		return "it does nothing"
	}
	if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
		return err.Error()
	}
	return ""
}

// commandsMost and flagsMost bound what a user may be asked to know. The demo alone starts a hidden
// command, whose flags do not count.
const commandsMost, flagsMost = 40, 248

// works reports whether a command does something, and does not only hold others.
func works(cmd *cobra.Command) bool {
	return !cmd.HasSubCommands() || cmd.LocalNonPersistentFlags().HasFlags()
}

func TestThereAreFewCommands(t *testing.T) {
	commands, flags := 0, 0
	walk(newRoot(newShell(t).console), func(cmd *cobra.Command) {
		if !works(cmd) || cmd.Hidden {
			return
		}
		commands++
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" {
				flags++
			}
		})
	})
	t.Logf("%d commands, %d flags", commands, flags)
	if commands > commandsMost {
		t.Errorf("%d commands, want at most %d", commands, commandsMost)
	}
	if flags > flagsMost {
		t.Errorf("%d flags, want at most %d", flags, flagsMost)
	}
}

// A flag of one name takes the same kind of value in every command.
func TestAFlagMeansOneThing(t *testing.T) {
	type use struct{ command, takes string }
	first := map[string]use{}
	walk(newRoot(newShell(t).console), func(cmd *cobra.Command) {
		cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			name, _ := pflag.UnquoteUsage(f)
			is := use{cmd.CommandPath(), strings.TrimSuffix(f.Value.Type(), "Array") + " " + name + " -" + f.Shorthand}
			if was, ok := first[f.Name]; !ok {
				first[f.Name] = is
			} else if was.takes != is.takes {
				t.Errorf("--%s is %q in %q and %q in %q", f.Name, was.takes, was.command, is.takes, is.command)
			}
		})
	})
}

// Every command teaches: a sentence in the list, a text of its own, and examples that it would take.
func TestEveryCommandTeaches(t *testing.T) {
	walk(newRoot(newShell(t).console), func(cmd *cobra.Command) {
		if cmd.Short == "" || cmd.Long == "" {
			t.Errorf("%q has no help", cmd.CommandPath())
		}
		for _, line := range strings.Split(cmd.Long, "\n") {
			if len(line) > 110 {
				t.Errorf("help of %q has a line of %d characters", cmd.CommandPath(), len(line))
			}
		}
		if cmd.HasSubCommands() {
			return
		}
		if cmd.Example == "" {
			t.Errorf("%q has no example", cmd.CommandPath())
		}
		for _, line := range strings.Split(cmd.Example, "\n") {
			line = strings.TrimSpace(line)
			if fault := parses(t, line); fault != "" {
				t.Errorf("example of %q: %q: %s", cmd.CommandPath(), line, fault)
			} else if !strings.HasPrefix(line, cmd.CommandPath()) {
				t.Errorf("example of %q shows another command: %q", cmd.CommandPath(), line)
			}
		}
	})
}

// The commands in the documents are ours, with flags that exist.
func TestCommandsInDocumentsParse(t *testing.T) {
	for _, name := range []string{"README.md", "docs/watching.md", "docs/faq.md", "docs/tutorial.md", "examples/run.toml", "examples/small.toml", "examples/bucket.toml"} {
		b, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(name)))
		if os.IsNotExist(err) && name == "README.md" {
			continue // a tree that has none yet
		}
		if err != nil {
			t.Fatal(err)
		}
		code := filepath.Ext(name) != ".md"
		for i, line := range strings.Split(string(b), "\n") {
			if strings.HasPrefix(line, "```") {
				code = !code
			}
			line = strings.TrimPrefix(strings.TrimLeft(line, "# $\t"), "go run ./cmd/")
			if !code || !strings.HasPrefix(line, "entrain ") {
				continue
			}
			for _, part := range strings.Split(line, "&&") {
				if fault := parses(t, strings.TrimSpace(part)); fault != "" {
					t.Errorf("%s:%d: %q: %s", name, i+1, part, fault)
				}
			}
		}
	}
}

func TestUsageErrorsSayWhatToDo(t *testing.T) {
	s := newShell(t)
	for _, c := range []struct {
		args string
		want []string
	}{
		{"statsu", []string{`unknown command "statsu"`}},
		{"join", []string{"say the name of one run", "entrain join RUN", "entrain status"}},
		{"join ../up", []string{`"../up" is not a run's name`}},
		{"join a b", []string{"say the name of one run"}},
		{"join a --workers 0 --checkpoints -1", []string{"--workers 0", "--checkpoints -1"}},
		{"status --jsno", []string{"unknown flag: --jsno", "entrain status --help"}},
		{"demo --clients 0", []string{"--clients 0", "1 to 64"}},
		{"demo --rounds 0", []string{"--rounds 0"}},
		{"demo --preset huge", []string{"--preset", "huge", "nano"}},
		{"demo --text nothing-here.txt", []string{"nothing-here.txt", "no such file"}},
		{"chain init", []string{"--chain-id", "--genesis"}},
		{"chain init --chain-id Ä", []string{"chain id"}},
		{"chain init --chain-id a --creator me", []string{"--creator", "64 hexadecimal digits"}},
		{"chain start", []string{"entrain chain init"}},
		{"run create", []string{"-f FILE", "examples/run.toml"}},
		{"run create -f none.toml", []string{"none.toml", "no such file"}},
		{"data prepare", []string{"say which files", "--mix", "entrain data prepare -o DIR FILE..."}},
		{"data prepare x", []string{"-o DIR"}},
		{"data prepare -o d --format csv x", []string{`"csv"`, "text, uint16, uint32, jsonl"}},
		{"data prepare -o d --held-out 0.9 x", []string{"0 to 0.5"}},
		{"data show nowhere", []string{"entrain data prepare"}},
		{"model generate nowhere", []string{"nowhere", "manifest.json"}},
		{"model generate x --tokens 0", []string{"--tokens 0"}},
		{"model generate x --temperature -1 --top-k -1", []string{"temperature"}},
		{"status --chain http://127.0.0.1:1", []string{"refused", "entrain chain start", "--chain URL"}},
		{"status --chain nonsense", []string{"nonsense"}},
	} {
		s.fails(strings.Fields(c.args), c.want...)
	}
}

// All that is wrong with a specification is reported at once.
func TestFaultsOfASpecificationAreReportedTogether(t *testing.T) {
	s := newShell(t)
	file := writeFile(t, filepath.Join(t.TempDir(), "bad.toml"), `
name = "No Such Name"
steps = 0
[data]
manifest = "1234"
[batch]
start = 0
[members]
capacity = 0
`)
	s.fails([]string{"run", "create", "-f", file}, "bad.toml", "name", "data.manifest", "steps: must not be zero", "batch.start: must not be zero")
	file = writeFile(t, filepath.Join(t.TempDir(), "typo.toml"), "name = \"x\"\nstesp = 3\n")
	s.fails([]string{"run", "create", "-f", file}, "stesp", "2|")
}

func TestExamplesAreGoodSpecifications(t *testing.T) {
	for _, name := range []string{"run.toml", "small.toml"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "examples", name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := spec.Parse(text, all.Kinds())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if name != "run.toml" {
			continue
		}
		// What it says about what is left out is true.
		empty, err := spec.Parse([]byte("name = \"my-run\"\n"), all.Kinds())
		if err != nil {
			t.Fatal(err)
		}
		a, errA := got.Append(nil)
		b, errB := empty.Append(nil)
		if errA != nil || errB != nil || string(a) != string(b) {
			t.Errorf("%s shows other values than those of keys left out:\n%s\n%s", name, a, b)
		}
	}
}

func TestVersion(t *testing.T) {
	if got := newShell(t).ok("--version"); !strings.Contains(got, "go1.") || !strings.Contains(got, exact.Kernels()[0].Name()) {
		t.Errorf("got %q", got)
	}
}

func TestListenAddresses(t *testing.T) {
	remote, local := []string{"http://203.0.113.5:7370"}, []string{"http://127.0.0.1:7370", "http://localhost:1"}
	for _, c := range []struct {
		flag, endpoints []string
		want            string
	}{
		{nil, remote, ""},
		{nil, local, "/ip4/0.0.0.0/udp/0/quic-v1 /ip4/0.0.0.0/tcp/0 /ip4/127.0.0.1/udp/0/quic-v1 /ip4/127.0.0.1/tcp/0"},
		{[]string{"127.0.0.1"}, remote, "/ip4/127.0.0.1/udp/0/quic-v1 /ip4/127.0.0.1/tcp/0"},
		{[]string{"[::]:4001"}, remote, "/ip6/::/udp/4001/quic-v1 /ip6/::/tcp/4001"},
		{[]string{"/ip4/1.2.3.4/tcp/5", "0.0.0.0:4001"}, local, "/ip4/1.2.3.4/tcp/5 /ip4/0.0.0.0/udp/4001/quic-v1 /ip4/0.0.0.0/tcp/4001"},
	} {
		got, err := lp2p.ListenAddrs(c.flag, onchain.AllLoopback(c.endpoints))
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%v with a chain at %v: got %v, %v, want %s", c.flag, c.endpoints, got, err, c.want)
		}
	}
	if _, err := lp2p.ListenAddrs([]string{"example.com:4001"}, onchain.AllLoopback(remote)); err == nil {
		t.Error("a name was taken for an address")
	}
}

func TestStateDirectoryIsForOneProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	unlock, err := dirlock.Lock(dir, "state directory")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dirlock.Lock(dir, "state directory"); err == nil || !strings.Contains(err.Error(), "in use by another process") || !strings.Contains(err.Error(), dir) {
		t.Errorf("got %v", err)
	}
	unlock()
	unlock, err = dirlock.Lock(dir, "state directory")
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}
