package learn

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/tokenizer"
	"github.com/entrain-network/entrain/wire"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lines gives the lines of a text, each with its end, as the Python script does.
func lines(text []byte) func() ([]byte, error) {
	return func() ([]byte, error) {
		if len(text) == 0 {
			return nil, io.EOF
		}
		n := bytes.IndexByte(text, '\n') + 1
		if n == 0 {
			n = len(text)
		}
		line := text[:n]
		text = text[n:]
		return line, nil
	}
}

func mustLearn(t *testing.T, text []byte, o Options) *tokenizer.BPE {
	t.Helper()
	tok, err := Learn(t.Context(), lines(text), o)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// model is the part of a tokenizer.json that is learnt.
type model struct {
	Model struct {
		Vocab  map[string]uint32
		Merges [][2]string
	}
}

func parseModel(t *testing.T, b []byte) (m model) {
	t.Helper()
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func opticks(t *testing.T) []byte {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Skip("no go command says where its source tree is")
	}
	b, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "src", "testdata", "Isaac.Newton-Opticks.txt"))
	if err != nil {
		t.Skip("Newton's Opticks is not in this Go source tree")
	}
	return b
}

// repeats is a text whose words have long runs, in which merges overlap and the same token is made in several ways.
func repeats() []byte {
	s := prng.New(wire.Hash{}, "learn/repeats")
	var b []byte
	for range 3000 {
		for range 1 + s.Uint64n(9) {
			b = append(b, "aab-"[s.Uint64n(4)])
		}
		b = append(b, " \n"[s.Uint64n(2)])
	}
	return b
}

// testdata/bpe.json of package tokenizer was learnt from the same text by the tokenizers library.
func TestOpticksGivesTheMergesOfTheTokenizersLibrary(t *testing.T) {
	b, err := os.ReadFile("../testdata/bpe.json")
	if err != nil {
		t.Fatal(err)
	}
	checkModel(t, mustLearn(t, opticks(t), Options{Vocab: 600}), b)
}

func checkModel(t *testing.T, tok *tokenizer.BPE, file []byte) {
	t.Helper()
	got, want := parseModel(t, tok.JSON()), parseModel(t, file)
	if len(want.Model.Merges) < 20 {
		t.Fatalf("only %d merges", len(want.Model.Merges))
	}
	for i, m := range want.Model.Merges {
		if i >= len(got.Model.Merges) || got.Model.Merges[i] != m {
			t.Fatalf("merge %d of %d (%d wanted) is %q, want %q", i, len(got.Model.Merges), len(want.Model.Merges), got.Model.Merges[min(i, len(got.Model.Merges)-1)], m)
		}
	}
	for spelling, id := range want.Model.Vocab {
		if got.Model.Vocab[spelling] != id {
			t.Fatalf("%q has id %d, want %d", spelling, got.Model.Vocab[spelling], id)
		}
	}
	if len(got.Model.Merges) != len(want.Model.Merges) || len(got.Model.Vocab) != len(want.Model.Vocab) {
		t.Errorf("%d merges and %d tokens, want %d and %d", len(got.Model.Merges), len(got.Model.Vocab), len(want.Model.Merges), len(want.Model.Vocab))
	}
}

// The same with the library itself, where it is installed; and it must load what we write and give the same ids.
func TestInstalledLibraryLearnsTheSameAndReadsOurFile(t *testing.T) {
	if err := exec.Command("python3", "-c", "import tokenizers").Run(); err != nil {
		t.Skip("python3 with the tokenizers package is not installed: pip install tokenizers")
	}
	dir := t.TempDir()
	for _, c := range []struct {
		text  []byte
		vocab uint32
	}{{repeats(), 300}, {opticks(t), 3000}} {
		path := filepath.Join(dir, "text")
		if err := os.WriteFile(path, c.text, 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("python3", "../testdata/bpe.py", "learn", fmt.Sprint(c.vocab), path).Output()
		if err != nil {
			t.Fatal(err)
		}
		tok := mustLearn(t, c.text, Options{Vocab: c.vocab})
		checkModel(t, tok, out)
		ours := filepath.Join(dir, "tokenizer.json")
		if err := os.WriteFile(ours, tok.JSON(), 0o600); err != nil {
			t.Fatal(err)
		}
		const script = "import sys,json,tokenizers\n" +
			"t=tokenizers.Tokenizer.from_file(sys.argv[1])\n" +
			"s=open(sys.argv[2],encoding='utf-8',newline='').read()[:100000]\n" +
			"ids=t.encode(s).ids\nassert t.decode(ids)==s\nprint(json.dumps(ids))"
		if out, err = exec.Command("python3", "-c", script, ours, path).Output(); err != nil {
			t.Fatal(err)
		}
		var want []uint32
		if err := json.Unmarshal(out, &want); err != nil {
			t.Fatal(err)
		}
		runes := []rune(string(c.text))
		got := tok.Encode(nil, []byte(string(runes[:min(len(runes), 100_000)])))
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("vocabulary of %d: %d ids differ from the library's %d", c.vocab, len(got), len(want))
		}
	}
}

// plainMerges is the definition: before each merge it counts all pairs again.
func plainMerges(words []word, vocab int, countMin int64) [][2]string {
	split := make([][]string, len(words))
	id := make(map[string]uint32)
	for c := range 256 {
		id[string([]byte{byte(c)})] = tokenizer.ByteToken(byte(c))
	}
	for i, w := range words {
		for j := range len(w.text) {
			split[i] = append(split[i], w.text[j:j+1])
		}
	}
	var merges [][2]string
	for len(id)+1 < vocab {
		counts := make(map[[2]string]int64)
		for i, s := range split {
			for j := 1; j < len(s); j++ {
				counts[[2]string{s[j-1], s[j]}] += words[i].count
			}
		}
		var best [2]string
		for p, n := range counts {
			if of := counts[best]; n > of || n == of && pairOf(id[p[0]], id[p[1]]) < pairOf(id[best[0]], id[best[1]]) {
				best = p
			}
		}
		if counts[best] < countMin {
			break
		}
		merges = append(merges, best)
		if _, ok := id[best[0]+best[1]]; !ok {
			id[best[0]+best[1]] = uint32(len(id) + 1)
		}
		for i, s := range split {
			var out []string
			for j := 0; j < len(s); j++ {
				if j+1 < len(s) && s[j] == best[0] && s[j+1] == best[1] {
					out = append(out, s[j]+s[j+1])
					j++
					continue
				}
				out = append(out, s[j])
			}
			split[i] = out
		}
	}
	return merges
}

// Pairs that overlap themselves are counted once a place by the definition and by the table alike.
func TestTableLearnsWhatTheDefinitionSays(t *testing.T) {
	text := []byte(strings.Repeat("the light of the lights that lit the other slights, otherwise thither \n", 20) + "hot hotter hottest\n")
	words, err := count(t.Context(), lines(text), Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	want := plainMerges(words, 320, 2)
	table := newTable(words, 3)
	got, err := table.learn(t.Context(), Options{Vocab: 320, CountMin: 2})
	if err != nil || len(got) != len(want) || len(got) < 30 {
		t.Fatalf("%d merges, want %d, %v", len(got), len(want), err)
	}
	for i, m := range got {
		if p := [2]string{table.text[m.Left], table.text[m.Right]}; p != want[i] {
			t.Fatalf("merge %d is %q, want %q", i, p, want[i])
		}
	}
}

func TestResultDoesNotDependOnWorkersOrOrder(t *testing.T) {
	text := repeats()
	want := mustLearn(t, text, Options{Vocab: 300, Workers: 1})
	var reversed [][]byte
	for next := lines(text); ; {
		line, err := next()
		if err != nil {
			break
		}
		reversed = append([][]byte{line}, reversed...)
	}
	for _, workers := range []int{2, 5} {
		if got := mustLearn(t, bytes.Join(reversed, nil), Options{Vocab: 300, Workers: workers}); got.Hash() != want.Hash() {
			t.Errorf("%d workers: got %s, want %s", workers, got.Hash(), want.Hash())
		}
	}
}

func TestLearningEndsEarly(t *testing.T) {
	tok := mustLearn(t, []byte("ab ab ab cd"), Options{Vocab: 1000})
	if tok.Vocab() != tokenizer.FirstMerged+2 { // "ab" and " ab"
		t.Errorf("%d tokens out of three words", tok.Vocab())
	}
	long := strings.Repeat("x", wordBytesMax+1)
	if tok := mustLearn(t, []byte(long+" ab ab"), Options{Vocab: 1000}); string(tok.TokenText(tok.Vocab()-1)) == "xx" {
		t.Error("a word that is too long was learnt from")
	}
	for _, c := range []struct {
		name string
		next func() ([]byte, error)
		o    Options
		want string
	}{
		{"nothing", lines(nil), Options{Vocab: 300}, "no text"},
		{"small vocabulary", lines([]byte("ab")), Options{Vocab: 256}, "not in 257"},
		{"large vocabulary", lines([]byte("ab")), Options{Vocab: 1 << 25}, "not in 257"},
		{"failing text", func() ([]byte, error) { return nil, errors.New("disk on fire") }, Options{Vocab: 300}, "disk on fire"},
	} {
		if _, err := Learn(t.Context(), c.next, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", c.name, err)
		}
	}
}

func TestLearningIsInterrupted(t *testing.T) {
	for _, when := range []func(Progress) bool{
		func(p Progress) bool { return p.Bytes > 1000 },
		func(p Progress) bool { return p.MergesGoal > 0 },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		var last Progress
		o := Options{Vocab: 2000, CountMin: 1, Progress: func(p Progress) {
			if last = p; when(p) {
				cancel()
			}
		}}
		if _, err := Learn(ctx, lines(repeats()), o); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v after %+v", err, last)
		}
	}
}
