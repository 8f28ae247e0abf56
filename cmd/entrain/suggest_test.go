package main

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestMistypedCommandsAndFlagsAreSuggested(t *testing.T) {
	s := newShell(t)
	for want, args := range map[string][]string{
		`did you mean "entrain join"?`:                                {"jion", "my-run"},
		`did you mean "entrain run create"?`:                          {"run", "ceate", "-f", "x"},
		`did you mean "entrain model import"?`:                        {"import", "x"},
		`"book.txt" belongs to no flag`:                               {"host", "book.txt"},
		"say the run or the pool that owes you: entrain wallet claim": {"wallet", "claim"},
		"say one run at most: entrain status":                         {"status", "a", "b"},
		`--task "arc=": name a file`:                                  {"model", "eval", "./none", "--task", "arc="},
		"did you mean --data?":                                        {"join", "my-run", "--dta", "x"},
		"did you mean --workers?":                                     {"join", "my-run", "--workrs", "2"},
	} {
		s.fails(args, want)
	}
	dir := t.TempDir()
	spec := func(text string) []string {
		return []string{"run", "create", "-f", writeFile(t, filepath.Join(dir, "run.toml"), "name = \"x\"\n"+text), "--dry-run"}
	}
	s.fails(spec("[modl]\npreset = \"nano\"\n"), "unknown key: modl (did you mean model?)", "2| [modl]")
	s.fails(spec("stpes = 3\n"), "unknown key: stpes (did you mean steps?)")
	s.fails(spec("[times]\nepcoh = \"1m\"\n"), "times.epcoh (did you mean epoch?)")
	s.ok(spec("steps = 10\n")...)
	s.fails(spec("steps = 10\n[learning_rate]\nwarmup = 20\n"), "learning_rate.warmup: 20 steps", "steps, 10")
	s.fails([]string{"run", "create", "-f", writeFile(t, filepath.Join(dir, "url.toml"), "name = \"x\"\n[data]\nlocation = \"http://203.0.113.5:7390\"\n")}, "data.manifest is empty", "is an address", "--data DIR")
	s.fails([]string{"model", "generate", "x", "--tokens", "abc"}, `--tokens "abc": want a number`)
	s.fails([]string{"wallet", "show", "--key", writeFile(t, filepath.Join(dir, "README.md"), "# entrain\n")}, "not a key", "entrain key")
	for _, args := range [][]string{spec("steps = \"ten\"\n"), spec("[batch]\nstart = []\n"), {"status", "--chain", "http://127.0.0.1:1"}} {
		_, _, err := s.run(args...)
		if err == nil || strings.Contains(err.Error(), "struct") || strings.Contains(err.Error(), "dial tcp") || strings.Contains(err.Error(), "uint32") {
			t.Errorf("%v: %v", args, err)
		}
	}
	s.fails(spec("steps = \"ten\"\n"), "steps: want an integer, not a TOML string")
	s.fails([]string{"nothing"}, `unknown command "nothing" for "entrain"`)
}
