package tokenizer

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func readBPE(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/bpe.json")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func mustParse(t testing.TB, b []byte) *BPE {
	t.Helper()
	parsed, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.(*BPE)
}

// edited is testdata/bpe.json after a change.
func edited(t testing.TB, change func(map[string]any)) []byte {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(readBPE(t), &v); err != nil {
		t.Fatal(err)
	}
	change(v)
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func regexOf(t testing.TB, p pattern) string {
	for _, known := range patterns {
		if known.pattern == p {
			return known.regex
		}
	}
	t.Fatalf("pattern %d has no regex", p)
	return ""
}

// variants are the tokenizers of testdata/bpe.py: one vocabulary, cut in all ways.
func variants(t testing.TB) map[string]*BPE {
	byteLevel := func(regex bool) map[string]any {
		return map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": regex}
	}
	sequence := func(steps ...map[string]any) map[string]any {
		return map[string]any{"type": "Sequence", "pretokenizers": steps}
	}
	split := func(p pattern) map[string]any {
		return map[string]any{"type": "Split", "pattern": map[string]any{"Regex": regexOf(t, p)}, "behavior": "Isolated", "invert": false}
	}
	digits := func(individual bool) map[string]any {
		return map[string]any{"type": "Digits", "individual_digits": individual}
	}
	out := make(map[string]*BPE)
	for name, p := range map[string]map[string]any{
		"gpt2":    byteLevel(true),
		"llama3":  sequence(split(gpt4), byteLevel(false)),
		"qwen2":   sequence(split(gpt4Digit), byteLevel(false)),
		"gpt4o":   sequence(split(o200k), byteLevel(false)),
		"digits":  sequence(digits(true), byteLevel(true)),
		"numbers": sequence(digits(false), byteLevel(true)),
		"whole":   byteLevel(false),
	} {
		out[name] = mustParse(t, edited(t, func(v map[string]any) { v["pre_tokenizer"] = p }))
	}
	return out
}

// bpeCase is a line of what bpe.py writes.
type bpeCase struct {
	Text     string
	IDs      map[string][]uint32
	Ordinary map[string][]uint32
}

func checkBPE(t *testing.T, lines []byte) {
	t.Helper()
	tokenizers := variants(t)
	s := bufio.NewScanner(bytes.NewReader(lines))
	s.Buffer(nil, 16<<20)
	cases, faults := 0, 0
	for s.Scan() {
		var c bpeCase
		if err := json.Unmarshal(s.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		cases++
		for name, tok := range tokenizers {
			want, ok := c.IDs[name]
			if !ok {
				want = c.IDs["gpt2"]
			}
			ordinary, ok := c.Ordinary[name]
			if !ok {
				ordinary = want
			}
			if got := tok.EncodeSpecial(nil, []byte(c.Text)); !slices.Equal(got, want) && faults < 10 {
				faults++
				t.Errorf("%s of %q: got %v, want %v", name, c.Text, got, want)
			}
			got := tok.Encode(nil, []byte(c.Text))
			if !slices.Equal(got, ordinary) && faults < 10 {
				faults++
				t.Errorf("%s of %q without special tokens: got %v, want %v", name, c.Text, got, ordinary)
			}
		}
	}
	if err := s.Err(); err != nil || cases < 50 {
		t.Errorf("%d cases, %v", cases, err)
	}
}

func TestBPEGivesTheIdsOfTheTokenizersLibrary(t *testing.T) {
	b, err := os.ReadFile("testdata/bpe_ids.json")
	if err != nil {
		t.Fatal(err)
	}
	checkBPE(t, b)
}

// The same with the library itself, where it is installed, on more and other texts.
func TestBPEGivesTheIdsOfTheInstalledLibrary(t *testing.T) {
	if err := exec.Command("python3", "-c", "import tokenizers").Run(); err != nil {
		t.Skip("python3 with the tokenizers package is not installed: pip install tokenizers")
	}
	for _, seed := range []string{"2"} {
		out, err := exec.Command("python3", "testdata/bpe.py", "ids", "testdata/bpe.json", seed).Output()
		if err != nil {
			t.Fatalf("bpe.py: %v", err)
		}
		checkBPE(t, out)
	}
}

// The two ways to merge agree, on words that make many merges possible.
func TestLongAndShortWordsAreMergedAlike(t *testing.T) {
	tok := variants(t)["whole"]
	rapid.Check(t, func(t *rapid.T) {
		letters := rapid.SampledFrom([]string{"e", "tha", "ea rst", " ,.\nethoa", "aA\x00é"}).Draw(t, "letters")
		word := []byte(rapid.StringOfN(rapid.RuneFrom([]rune(letters)), 2, shortWord/2, shortWord).Draw(t, "word"))
		var m merger
		short, long := m.short(tok, nil, word), m.long(tok, nil, word)
		if !slices.Equal(short, long) {
			t.Fatalf("%q: %v as a short word, %v as a long one", word, short, long)
		}
	})
}

func TestAWordOfAMegabyteIsNoHardship(t *testing.T) {
	tok := variants(t)["gpt2"]
	text := bytes.Repeat([]byte("the"), 400_000)
	ids := tok.Encode(nil, text) // with one look at all pairs a merge, this would take hours
	if back, err := tok.Decode(nil, ids); err != nil || !bytes.Equal(back, text) {
		t.Errorf("%d ids do not come back, %v", len(ids), err)
	}
}

// checkBounded encodes text with the number of its ids as the bound, and with one less.
func checkBounded(t *testing.T, tok *BPE, text []byte, ids []uint32) {
	t.Helper()
	if got, ok := EncodeBounded(tok, nil, string(text), len(ids)); !ok || !slices.Equal(got, ids) {
		t.Fatalf("%q has %d ids, and with that bound %d, %t", text, len(ids), len(got), ok)
	}
	if _, ok := EncodeBounded(tok, nil, string(text), len(ids)-1); ok {
		t.Fatalf("%q has %d ids, and less with a lower bound", text, len(ids))
	}
}

func TestNoMoreIsEncodedThanWanted(t *testing.T) {
	const most, size = 100, 1 << 20
	sentence := mustParse(t, smallSentence(metaspace, "null"))
	for name, tok := range map[string]*BPE{"gpt2": variants(t)["gpt2"], "sentence": sentence} {
		for _, text := range []string{strings.Repeat("the", size/3), strings.Repeat("a word ", size/7), strings.Repeat(" ", size)} {
			if ids, ok := EncodeBounded(tok, nil, text, most); ok || len(ids) > 2*most {
				t.Errorf("%s: %.20q has %d ids, %t, with a bound of %d", name, text, len(ids), ok, most)
			}
		}
	}
}

// Added tokens that begin alike are told apart, and the longest is taken.
func TestTheLongestAddedTokenIsTaken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringOfN(rapid.RuneFrom([]rune("ab")), 1, 4, 4)
		var list []addedToken
		for i, content := range rapid.SliceOfN(word, 1, 8).Draw(t, "contents") {
			list = append(list, addedToken{id: uint32(i), content: content, special: rapid.Bool().Draw(t, "special")})
		}
		text := rapid.StringOfN(rapid.RuneFrom([]rune("ab")), 0, 6, 6).Draw(t, "text")
		want := -1
		for i, a := range list {
			if a.special && strings.HasPrefix(text, a.content) && (want < 0 || len(a.content) > len(list[want].content)) {
				want = i
			}
		}
		got := longestAt(newAddedTokens(list, normalizer{}).list, text, func(a *addedToken) bool { return a.special })
		if (got != nil) != (want >= 0) || got != nil && int(got.id) != want {
			t.Fatalf("%v, want %d", got, want)
		}
	})
}

func FuzzBPERoundTrip(f *testing.F) {
	f.Add([]byte("any\x00bytes\xff\xfe é <|endoftext|>    word words 12345 'LL \r\n\r\n x"))
	f.Add([]byte("\xc5'\xc5\xbf'\xc5 \xe2\x80\u2003\u0301A\u0301'S"))
	tokenizers := variants(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		for name, tok := range tokenizers {
			ids := tok.Encode([]uint32{7}, text)
			back, err := tok.Decode([]byte("x"), ids[1:])
			if err != nil || ids[0] != 7 || back[0] != 'x' || !bytes.Equal(back[1:], text) {
				t.Fatalf("%s: %q came back as %q, %v", name, text, back, err)
			}
			tok.words.each(text, func(word []byte) {
				if len(word) == 0 {
					t.Fatalf("%s: an empty word in %q", name, text)
				}
			})
			checkBounded(t, tok, text, ids[1:])
			tok.EncodeSpecial(nil, text)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add(readBPE(f))
	f.Add(Bytes{}.JSON())
	f.Add([]byte(`{"version":"1.0","model":{"vocab":{"a":0},"merges":["a a",["a","b"]]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		tok, err := Parse(b)
		if err != nil {
			return
		}
		if !bytes.Equal(tok.JSON(), b) {
			t.Fatal("what was parsed is not what it says")
		}
		text := []byte("the light, 12 'll\xff")
		if tok.End() >= tok.Vocab() {
			t.Errorf("end %d of %d", tok.End(), tok.Vocab())
		}
		for _, id := range tok.Encode(nil, text) {
			if id >= tok.Vocab() {
				t.Errorf("id %d of %d", id, tok.Vocab())
			}
		}
	})
}

func TestBPEIsWhatItsFileSays(t *testing.T) {
	b := readBPE(t)
	tok := mustParse(t, b)
	if tok.Name() != "bpe-604" || tok.Vocab() != 604 || tok.End() != 0 {
		t.Errorf("got %s, %d tokens, end %d", tok.Name(), tok.Vocab(), tok.End())
	}
	if got := string(tok.TokenText(0)); got != "<|endoftext|>" || tok.TokenText(604) != nil {
		t.Errorf("token 0 is %q", got)
	}
	again, err := Resolve(tok.Name(), tok.Hash(), b)
	if err != nil || again.Hash() != tok.Hash() {
		t.Errorf("resolved: %v", err)
	}
	if _, err := Resolve(tok.Name(), tok.Hash(), append(b, ' ')); err == nil || !strings.Contains(err.Error(), "has hash") {
		t.Errorf("another file: got %v", err)
	}
	if _, err := Resolve("bpe-7", tok.Hash(), b); err == nil || !strings.Contains(err.Error(), "bpe-604") {
		t.Errorf("another name: got %v", err)
	}
	if got, err := Resolve("bytes", Bytes{}.Hash(), nil); err != nil || got != (Bytes{}) {
		t.Errorf("bytes: got %v, %v", got, err)
	}
	if got, err := Parse(Bytes{}.JSON()); err != nil || got != (Bytes{}) {
		t.Errorf("the file of bytes: got %v, %v", got, err)
	}
}

func TestIgnoredMergesTakeWholeWordsFromTheVocabulary(t *testing.T) {
	b := edited(t, func(v map[string]any) {
		model := v["model"].(map[string]any)
		model["vocab"].(map[string]any)["zqzq"] = 700
	})
	if got := mustParse(t, b).Encode(nil, []byte("zqzq")); len(got) != 4 {
		t.Errorf("no merges lead to the word, but it became %v", got)
	}
	b = bytes.Replace(b, []byte(`"ignore_merges":false`), []byte(`"ignore_merges":true`), 1)
	if got := mustParse(t, b).Encode(nil, []byte("zqzq")); !slices.Equal(got, []uint32{700}) {
		t.Errorf("got %v, want the word's own id", got)
	}
}

func TestFilesThatAreNotUnderstoodAreRefused(t *testing.T) {
	set := func(path string, value any) func(map[string]any) {
		return func(v map[string]any) {
			keys := strings.Split(path, ".")
			for _, key := range keys[:len(keys)-1] {
				v = v[key].(map[string]any)
			}
			v[keys[len(keys)-1]] = value
		}
	}
	added := func(token map[string]any) func(map[string]any) {
		return func(v map[string]any) { v["added_tokens"] = append(v["added_tokens"].([]any), token) }
	}
	for _, c := range []struct {
		name   string
		change func(map[string]any)
		want   string
	}{
		{"version", set("version", "2.0"), `unknown version "2.0"`},
		{"normalizer", set("normalizer", map[string]any{"type": "Lowercase"}), "normalizer"},
		{"model", set("model.type", "WordPiece"), `"WordPiece"`},
		{"dropout", set("model.dropout", 0.1), "dropout"},
		{"prefix", set("model.continuing_subword_prefix", "##"), "continuing_subword_prefix"},
		{"suffix", set("model.end_of_word_suffix", "</w>"), "end_of_word_suffix"},
		{"no vocab", set("model.vocab", map[string]any{}), "no vocab"},
		{"vocab of the wrong kind", set("model.vocab", []any{}), "vocab is not an object"},
		{"negative id", set("model.vocab.zz", -1), `id of "zz"`},
		{"large id", set("model.vocab.zz", 1<<23), "is not below"},
		{"id twice", set("model.vocab.zz", 5), "both have id 5"},
		{"missing byte", func(v map[string]any) { delete(v["model"].(map[string]any)["vocab"].(map[string]any), "Ā") }, "byte 0x00"},
		{"unknown merge", set("model.merges", []any{"q zzz"}), "not in the vocab"},
		{"merge of three", set("model.merges", []any{[]any{"a", "b", "c"}}), "3 spellings"},
		{"merge without a space", set("model.merges", []any{"ab"}), "two spellings"},
		{"merge twice", set("model.merges", []any{"t h", "t h"}), "earlier one"},
		{"decoder", set("decoder", map[string]any{"type": "Metaspace"}), `"Metaspace"`},
		{"no decoder", set("decoder", nil), "ByteLevel"},
		{"no pre-tokenizer", set("pre_tokenizer", nil), "needs ByteLevel"},
		{"unknown pre-tokenizer", set("pre_tokenizer", map[string]any{"type": "Whitespace"}), `"Whitespace"`},
		{"prefix space", set("pre_tokenizer.add_prefix_space", true), "add_prefix_space"},
		{"unknown field", set("model.magic", 1), "magic"},
		{"word pieces", func(v map[string]any) {
			m := v["model"].(map[string]any)
			m["type"], m["max_input_chars_per_word"] = "WordPiece", 100
		}, `"WordPiece"`},
		{"stripped", set("normalizer", map[string]any{"type": "Strip", "strip_left": true, "strip_right": true}), `"Strip"`},
		{"added twice", added(map[string]any{"id": 600, "content": "<mask>"}), "occurs twice"},
		{"added with a used id", added(map[string]any{"id": 5, "content": "<x>"}), "both have id 5"},
		{"added with two ids", added(map[string]any{"id": 701, "content": "the"}), "in the vocab"},
		{"empty added", added(map[string]any{"id": 701, "content": ""}), "empty"},
		{"no end", set("added_tokens", []any{}), "ends a document"},
	} {
		if _, err := Parse(edited(t, c.change)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q in it", c.name, err, c.want)
		}
	}
	whole := string(readBPE(t))
	for _, c := range [][2]string{
		{whole + "{}", "data after the object"},
		{whole[:len(whole)/2], "unexpected EOF"},
		{"\n\n\n" + strings.Replace(whole, `"vocab":{`, `"vocab":{"!":7,`, 1), "occurs twice"},
		{"{\n\n\"version\": 7}", "at line 3"},
		{strings.Repeat(" ", JSONBytesMax+1), "more than"},
	} {
		if _, err := Parse([]byte(c[0])); err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("got %v, want %q in it", err, c[1])
		}
	}
}

func TestSplitsThatAreNotKnownAreRefused(t *testing.T) {
	byteLevel := `{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true}`
	known, err := json.Marshal(regexOf(t, gpt4))
	if err != nil {
		t.Fatal(err)
	}
	split := `{"type":"Split","pattern":{"Regex":` + string(known) + `},"behavior":"%","invert":false},`
	for _, c := range [][2]string{
		{`{"type":"Split","pattern":{"Regex":"\\w+"},"behavior":"Isolated","invert":false},`, `not one of the`},
		{`{"type":"Split","pattern":{"String":"x"},"behavior":"Isolated","invert":false},`, "not supported"},
		{strings.Replace(split, "%", "Removed", 1), "Removed"},
		{strings.Replace(split, "%", "Isolated", 1), "use_regex after a Split"},
		{`{"type":"Metaspace"},`, "Metaspace"},
		{byteLevel + ",", "step 1 of 2"},
	} {
		_, err := parseSplitter(json.RawMessage(`{"type":"Sequence","pretokenizers":[` + c[0] + byteLevel + `]}`))
		if err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%s: got %v, want %q in it", c[0], err, c[1])
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	tok := variants(b)["gpt2"]
	path := filepath.Join("testdata", "bpe.py")
	text, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(text)))
	var ids []uint32
	for b.Loop() {
		ids = tok.Encode(ids[:0], text)
	}
}
