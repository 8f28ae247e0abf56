package data

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/data/source"
	"github.com/entrain-network/entrain/tokenizer"
	"github.com/entrain-network/entrain/wire"
)

// chatOptions are those of a tokenizer in testdata/chat, with its template.
func chatOptions(t testing.TB, name string) PrepareOptions {
	t.Helper()
	o := docOptions()
	o.HeldOutPermille = 0
	var err error
	if o.Tokenizer, err = ReadTokenizer("source/testdata/chat/" + name); err != nil {
		t.Fatal(err)
	}
	if o.Chat, err = ReadChat("source/testdata/chat/" + name); err != nil {
		t.Fatal(err)
	}
	return o
}

// Conversations in every form become the tokens that transformers' apply_chat_template gives, and
// all are masked that the assistant does not say.
func TestConversationsAreTransformers(t *testing.T) {
	b, err := os.ReadFile("source/testdata/chat/ids.json")
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]map[string]struct {
		IDs  []uint32
		Said string
	}
	if err := json.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}
	saved, err := source.Expand([]string{"source/testdata/chat/saved"}, "train")
	if err != nil || len(saved) != 2 {
		t.Fatal(saved, err)
	}
	test, err := source.Expand([]string{"source/testdata/chat/saved"}, "test")
	if err != nil {
		t.Fatal(err)
	}
	for name, of := range want {
		for _, c := range []struct {
			what  string
			files []string
		}{
			{"conversations", []string{"messages.jsonl"}}, {"conversations", []string{"shared.jsonl"}}, {"conversations", []string{"split.jsonl"}},
			{"conversations", []string{"shared.json"}}, {"conversations", []string{"messages.parquet"}}, {"conversations", []string{"file.arrow"}},
			{"conversations", []string{"stream.arrow"}}, {"conversations", saved}, {"pairs", test},
			{"pairs", []string{"pairs.jsonl"}}, {"pairs", []string{"pairs.json"}}, {"pairs", []string{"answers.jsonl"}}, {"pairs", []string{"prompts.jsonl"}},
		} {
			o := chatOptions(t, name)
			if name == "sentence" && c.what == "conversations" {
				continue // its template ignores the system's messages
			}
			paths := slices.Clone(c.files)
			for i, path := range paths {
				if !strings.Contains(path, "/") {
					paths[i] = filepath.Join("source/testdata/chat", path)
				}
			}
			dir := t.TempDir()
			m := mustPrepare(t, dir, paths, o)
			got, _ := allTokens(t, dir, m)
			check(t, name+" "+paths[0], o, got, of[c.what].IDs, of[c.what].Said)
			if !m.Masked || m.TokenBytes != 2 {
				t.Errorf("%s: %+v", name, m)
			}
		}
	}
}

// check compares tokens and masks, and shows the first that differs.
func check(t *testing.T, name string, o PrepareOptions, got, ids []uint32, said string) {
	t.Helper()
	text := func(ids []uint32) string {
		b, _ := o.Tokenizer.Decode(nil, ids)
		return string(b)
	}
	plain := slices.Clone(got)
	for i := range plain {
		plain[i] &^= Masked
	}
	for i := range plain {
		if i == len(ids) || plain[i] != ids[i] || (got[i]&Masked == 0) != (said[i] == '1') {
			from, to := max(0, i-10), i+10
			t.Errorf("%s: token %d differs: %v %q, want %v %q %s", name, i, got[from:min(to, len(got))], text(plain[from:min(to, len(got))]),
				ids[from:min(to, len(ids))], text(ids[from:min(to, len(ids))]), said[from:min(to, len(ids))])
			return
		}
	}
	if len(got) != len(ids) || len(got) < 100 {
		t.Errorf("%s: %d tokens, want %d", name, len(got), len(ids))
	}
}

// broadly is a tokenizer with more tokens than 2 bytes and a mask hold.
type broadly struct{ tokenizer.Tokenizer }

func (broadly) Vocab() uint32 { return 40_000 }

// Masks are in the shards, so in proofs and mixes too, whatever the size of tokens.
func TestMasksAreInTheShards(t *testing.T) {
	narrow, text := chatOptions(t, "bytes"), chatOptions(t, "bytes")
	broad := narrow
	broad.Tokenizer = broadly{narrow.Tokenizer}
	text.Name = "text"
	plain := mustPrepare(t, t.TempDir(), files(t, []byte(strings.Repeat("no mask ", 500))), text)
	if plain.Masked {
		t.Error("text is masked")
	}
	var texts [2]string
	for i, o := range []PrepareOptions{narrow, broad} {
		dir := t.TempDir()
		o.HeldOutPermille = 300
		m := mustPrepare(t, dir, []string{"source/testdata/chat/messages.jsonl"}, o)
		if m.TokenBytes != 2+2*i || m.HeldOutTokens == 0 {
			t.Errorf("%+v", m)
		}
		s := mustOpen(t, dir, m, Options{SequenceTokens: 20})
		got, proven := make([]uint32, 21), make([]uint32, 21)
		masked := 0
		for k := range s.Len() {
			if err := s.Read(k, got); err != nil {
				t.Fatal(err)
			}
			proof, err := s.Prove(k)
			if err == nil {
				err = Proven(proven, m.Hash(), wire.Hash{}, k, proof)
			}
			if err != nil || !slices.Equal(got, proven) {
				t.Fatalf("sequence %d: read %v, proven %v, %v", k, got, proven, err)
			}
			for _, token := range got {
				masked += int(token >> 31)
			}
		}
		if masked < 100 || masked > int(s.Len())*20 {
			t.Errorf("%d of %d tokens are masked", masked, m.Tokens)
		}
		train, _ := allTokens(t, dir, m)
		for k := range train {
			train[k] &^= Masked
		}
		b, err := o.Tokenizer.Decode(nil, train)
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(b) // only the narrow tokenizer takes special tokens for such
	}
	if texts[0] != texts[1] || len(texts[0]) < 1000 {
		t.Error("the size of tokens makes a difference")
	}

	// A set of text and one of conversations are mixed.
	dir := t.TempDir()
	sets := []string{filepath.Join(dir, "chat"), filepath.Join(dir, "text")}
	narrow.Name = "chat"
	mustPrepare(t, sets[0], []string{"source/testdata/chat/messages.jsonl"}, narrow)
	mustPrepare(t, sets[1], files(t, []byte(strings.Repeat("no mask ", 500))), text)
	if _, err := MakeMix(t.Context(), filepath.Join(dir, "mix"), "mix", []uint32{1, 1}, sets); err != nil {
		t.Fatal(err)
	}
	m, err := ReadManifest(filepath.Join(dir, "mix"))
	if err != nil || !m.Masked {
		t.Fatal(m, err)
	}
	s := mustOpen(t, filepath.Join(dir, "mix"), m, Options{SequenceTokens: 20})
	got, without := make([]uint32, 21), 0
	for k := range s.Len() {
		if err := s.Read(k, got); err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(got, func(token uint32) bool { return token&Masked != 0 }) {
			without++
		}
	}
	if uint64(without) < s.Len()/2 || uint64(without) > s.Len()*9/10 {
		t.Errorf("%d of %d sequences of the mix are without masks", without, s.Len())
	}
}

func TestRowsThatAreNoConversations(t *testing.T) {
	good := `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}` + "\n"
	for _, c := range []struct {
		name, text, field string
		want              []string
	}{
		{"a.jsonl", good + `{"messages":[{"role":"boss","content":"a"}]}`, "", []string{"line 2", "role of message 0"}},
		{"a.jsonl", good + `{"messages":[{"role":"user"},{"from":"gpt"}]}`, "", []string{"line 2", "message 1 has no value"}},
		{"a.jsonl", good + `{"messages":[{"from":"cat","value":"a"}]}`, "", []string{"line 2", `"cat"`}},
		{"a.jsonl", good + `{"messages":"text"}`, "", []string{"line 2", "not a list"}},
		{"a.jsonl", good + `{"tools":[]}` + "\n" + `{"messages":null}` + "\n" + `{"messages":{"role":"user"}}`, "", []string{"line 4", "an object, not a list"}},
		{"a.jsonl", `{"dialog":[],"x":"y"}`, "", []string{"line 1", "--field", "dialog, x"}},
		{"a.jsonl", `{"instruction":"a","output":3}`, "", []string{"line 1", `"output"`, "not a string"}},
		{"a.jsonl", `{"instruction":"a"}`, "", []string{"none of the fields"}},
		{"a.jsonl", `{"turns":["a","b"]}`, "turns", []string{`"turns" holds a list`}},
		{"a.jsonl", `{"messages":[{"role":"user","content":"a"}]}`, "", []string{"no tokens to train on"}},
		{"a.json", "[" + good + "," + good, "", []string{"row 3", "no end"}},
		{"a.json", `[{"messages":[]}, 12]`, "", []string{"row 2", "want an object"}},
		{"a.arrow", "ARROW1\x00\x00", "", []string{"a.arrow", "not a table of Arrow"}},
	} {
		o := chatOptions(t, "bytes")
		o.Field = c.field
		_, err := Prepare(t.Context(), t.TempDir(), []string{written(t, c.name, []byte(c.text))}, o)
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q in it", c.text, err, want)
			}
		}
	}
	o := chatOptions(t, "bytes")
	o.Chat = ""
	if _, err := Prepare(t.Context(), t.TempDir(), []string{"source/testdata/chat/messages.jsonl"}, o); err == nil || !strings.Contains(err.Error(), "chat_template.jinja") {
		t.Errorf("without a template: %v", err)
	}
}
