package tokenizer

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Tokenizers of the families of Llama 2, Mistral, Llama 3 and Qwen give the ids of the library.
func TestFamiliesGiveTheIdsOfTheInstalledLibrary(t *testing.T) {
	if err := exec.Command("python3", "-c", "import tokenizers").Run(); err != nil {
		t.Skip("python3 with the tokenizers package is not installed: .ci/run installs it")
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	corpus := filepath.Join(strings.TrimSpace(string(root)), "src", "testdata", "Isaac.Newton-Opticks.txt")
	args := []string{"testdata/bpe.py", "families", corpus, "2", "20"}
	size := os.Getenv("ENTRAIN_TOKENS_MB") // of mixed text, see tests/interop/tokens
	if size != "" {
		args = append(args, size)
	}
	python := exec.Command("python3", args...)
	var faulty bytes.Buffer
	python.Stderr = &faulty
	out, err := python.StdoutPipe()
	if err == nil {
		err = python.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	made := make(map[string]*BPE)
	ids, others := make(map[string]int), make(map[string]int)
	cases, read, faults := 0, 0, 0
	compare := func(what, text string, got, want []uint32) {
		if !slices.Equal(got, want) && faults < 10 {
			faults++
			at := 0
			for at < min(len(got), len(want)) && got[at] == want[at] {
				at++
			}
			t.Errorf("%s: token %d of %.300q: got %v, want %v", what, at, text, got[at:min(len(got), at+20)], want[at:min(len(want), at+20)])
		}
	}
	for lines := json.NewDecoder(out); ; {
		var c struct {
			bpeCase
			Others          map[string][]uint32
			Name, Tokenizer string
		}
		if err := lines.Decode(&c); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err, faulty.String())
		}
		if c.Name != "" {
			made[c.Name] = mustParse(t, []byte(c.Tokenizer))
			continue
		}
		cases++
		read += len(c.Text)
		for name, tok := range made {
			got := tok.Encode(nil, []byte(c.Text))
			ids[name] += len(got)
			ordinary, ok := c.Ordinary[name]
			if !ok {
				ordinary = c.IDs[name]
			}
			compare(name+" without special tokens", c.Text, got, ordinary)
			if other, ok := c.Others[name]; ok {
				others[name] += len(got)
				compare(name+" by another library", c.Text, got, other)
			}
			compare(name, c.Text, tok.EncodeSpecial(nil, []byte(c.Text)), c.IDs[name])
		}
	}
	if err := python.Wait(); err != nil {
		t.Fatalf("bpe.py: %v: %s", err, &faulty)
	}
	if len(made) < 12 || cases < 150 {
		t.Errorf("%d tokenizers, %d texts", len(made), cases)
	}
	t.Logf("%d texts, %.1f MB; %s", cases, float64(read)/1e6, &faulty)
	for _, name := range slices.Sorted(maps.Keys(ids)) {
		t.Logf("%-20s %9d tokens, the same by tokenizers; %d by tiktoken or sentencepiece", name, ids[name], others[name])
	}
	if id, ok := Begin(made["llama2"]); !ok || id != 1 {
		t.Errorf("a text of Llama 2 begins with %d, %v", id, ok)
	}
	if _, ok := Begin(made["qwen"]); ok {
		t.Error("a text of Qwen begins with a token")
	}
}

// smallSentence is a tokenizer.json in SentencePiece's manner: bytes, letters, and some merges.
func smallSentence(preTokenizer, normalizer string) []byte {
	var vocab strings.Builder
	id := 0
	add := func(s string) {
		if id > 0 {
			vocab.WriteByte(',')
		}
		b, _ := json.Marshal(s)
		vocab.Write(b)
		vocab.WriteByte(':')
		b, _ = json.Marshal(id)
		vocab.Write(b)
		id++
	}
	add("<unk>")
	add("<s>")
	add("</s>")
	for c := range 256 {
		add("<0x" + string("0123456789ABCDEF"[c>>4]) + string("0123456789ABCDEF"[c&15]) + ">")
	}
	for _, s := range []string{blank, "a", "b", blank + blank, "ab", blank + "ab", "é"} {
		add(s)
	}
	return []byte(`{"version":"1.0","truncation":null,"padding":null,"added_tokens":[
		{"id":2,"content":"</s>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}],
		"normalizer":` + normalizer + `,"pre_tokenizer":` + preTokenizer + `,"post_processor":null,
		"decoder":{"type":"Metaspace","replacement":"▁","prepend_scheme":"always","split":true},
		"model":{"type":"BPE","unk_token":"<unk>","fuse_unk":true,"byte_fallback":true,"vocab":{` + vocab.String() + `},
		"merges":[["▁","▁"],["a","b"],["▁","ab"]]}}`)
}

const metaspace = `{"type":"Metaspace","replacement":"▁","prepend_scheme":"first","split":true}`

func TestBlanksStandForSpaces(t *testing.T) {
	tok := mustParse(t, smallSentence(metaspace, "null"))
	for text, want := range map[string][]uint32{
		"ab ab": {264, 264},
		" ab":   {264},
		"  x":   {259, 259, 3 + 'x'},
		"é\xff": {259, 265, 3 + 0xff},
		"</s>":  {259, 3 + '<', 3 + '/', 3 + 's', 3 + '>'},
		"":      nil,
	} {
		if got := tok.Encode(nil, []byte(text)); !slices.Equal(got, want) {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
	for _, c := range []struct{ pre, normal, want string }{
		{`{"type":"Metaspace","replacement":"_"}`, "null", "Metaspace"},
		{`{"type":"Whitespace"}`, "null", "Whitespace"},
		{"null", "null", "neither"},
		{metaspace, `{"type":"Prepend","prepend":"▁"}`, "without a normalizer"},
		{"null", `{"type":"Lowercase"}`, "Lowercase"},
		{`{"type":"Metaspace","replacement":"▁","prepend_scheme":"last"}`, "null", "prepend_scheme"},
	} {
		if _, err := Parse(smallSentence(c.pre, c.normal)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q in it", err, c.want)
		}
	}
	without := bytes.Replace(smallSentence(metaspace, "null"), []byte(`\u003c0x41\u003e`), []byte("zz"), 1)
	if _, err := Parse(without); err == nil || !strings.Contains(err.Error(), "byte <0x41>") {
		t.Errorf("a byte without a token: %v", err)
	}
}

// What is decoded is the text, but for blanks.
func FuzzSentence(f *testing.F) {
	var tokenizers []*BPE
	for _, c := range [][2]string{{metaspace, "null"}, {`{"type":"Metaspace","replacement":"▁","prepend_scheme":"never","split":false}`, "null"},
		{"null", `{"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},{"type":"Replace","pattern":{"String":" "},"content":"▁"}]}`}} {
		tokenizers = append(tokenizers, mustParse(f, smallSentence(c[0], c[1])))
	}
	f.Add([]byte("ab  ab é\xe2\x96 ▁ab\x00</s>"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for i, tok := range tokenizers {
			ids := tok.Encode(nil, text)
			checkBounded(t, tok, text, ids)
			back, err := tok.Decode(nil, ids)
			if err != nil {
				t.Fatal(err)
			}
			want := bytes.ReplaceAll(text, []byte(blank), []byte(" "))
			front := len(want) > 0 && (i == 2 || i == 0 && want[0] != ' ')
			if front {
				want = append([]byte(" "), want...)
			}
			if !bytes.Equal(back, want) {
				t.Fatalf("%d: %q came back as %q, want %q", i, text, back, want)
			}
			tok.EncodeSpecial(nil, text)
		}
	})
}
