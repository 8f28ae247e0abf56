package tokenizer

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// outside is what the tokenizers library of Hugging Face wrote (testdata/ids.py).
type outside struct {
	SHA256 string
	Vocab  uint32
	Cases  []struct {
		Text string
		IDs  []uint32
	}
}

func readOutside(t *testing.T, b []byte) outside {
	t.Helper()
	var o outside
	if err := json.Unmarshal(b, &o); err != nil {
		t.Fatal(err)
	}
	if len(o.Cases) == 0 {
		t.Fatal("no cases")
	}
	return o
}

func checkOutside(t *testing.T, o outside) {
	t.Helper()
	if got := (Bytes{}).Hash().String(); got != o.SHA256 {
		t.Errorf("tokenizer.json has hash %s, want %s", got, o.SHA256)
	}
	if got := (Bytes{}).Vocab(); got != o.Vocab {
		t.Errorf("vocabulary of %d, want %d", got, o.Vocab)
	}
	for _, c := range o.Cases {
		if got := (Bytes{}).Encode(nil, []byte(c.Text)); !slices.Equal(got, c.IDs) {
			t.Errorf("%q: got ids %v, want %v", c.Text, got, c.IDs)
		}
	}
}

func TestBytesGivesTheIdsOfTheTokenizersLibrary(t *testing.T) {
	b, err := os.ReadFile("testdata/ids.json")
	if err != nil {
		t.Fatal(err)
	}
	checkOutside(t, readOutside(t, b))
}

// The same with the library itself, where it is installed: it must load the file that JSON writes now.
func TestTokenizersLibraryLoadsOurFile(t *testing.T) {
	if err := exec.Command("python3", "-c", "import tokenizers").Run(); err != nil {
		t.Skip("python3 with the tokenizers package is not installed: pip install tokenizers")
	}
	path := filepath.Join(t.TempDir(), "tokenizer.json")
	if err := os.WriteFile(path, Bytes{}.JSON(), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("python3", "testdata/ids.py", path).Output()
	if err != nil {
		t.Fatalf("ids.py: %v", err)
	}
	checkOutside(t, readOutside(t, out))
}

func FuzzBytesRoundTrip(f *testing.F) {
	f.Add([]byte("any\x00bytes\xff\xfe é"))
	f.Fuzz(func(t *testing.T, text []byte) {
		ids := Bytes{}.Encode([]uint32{7}, text)
		if ids[0] != 7 || len(ids) != 1+len(text) {
			t.Fatalf("%d bytes became %d ids", len(text), len(ids)-1)
		}
		back, err := Bytes{}.Decode([]byte("x"), ids[1:])
		if err != nil || !bytes.Equal(back[1:], text) || back[0] != 'x' {
			t.Fatalf("%q came back as %q, %v", text, back, err)
		}
	})
}

func TestIdsBeyondTheVocabularyAreRefused(t *testing.T) {
	_, err := Bytes{}.Decode(nil, []uint32{1, 256})
	if err == nil || !strings.Contains(err.Error(), "token 1 is 256") {
		t.Errorf("got %v", err)
	}
}

func TestPiecesAreDistinctAndVisible(t *testing.T) {
	seen := make(map[rune]byte)
	for c := range 256 {
		r := piece(byte(c))
		if other, ok := seen[r]; ok {
			t.Errorf("bytes %d and %d are both %q", other, c, r)
		}
		seen[r] = byte(c)
		if r <= ' ' || r == 0x7f || r == 0xad || r == 0xa0 {
			t.Errorf("byte %d is the invisible %q", c, r)
		}
	}
	// Spellings that everybody who has seen a GPT-2 vocabulary knows.
	for c, want := range map[byte]rune{' ': 'Ġ', '\n': 'Ċ', '\t': 'ĉ', 0: 'Ā', 'A': 'A', 0xad: 'Ń', 0xc3: 'Ã'} {
		if got := piece(c); got != want {
			t.Errorf("byte %#x is %q, want %q", c, got, want)
		}
	}
}

func TestFindChecksNameAndHash(t *testing.T) {
	if _, err := Find("bytes", Bytes{}.Hash()); err != nil {
		t.Error(err)
	}
	if _, err := Find("gpt2", Bytes{}.Hash()); err == nil || !strings.Contains(err.Error(), `"gpt2"`) {
		t.Errorf("unknown name: %v", err)
	}
	if _, err := Find("bytes", [32]byte{1}); err == nil || !strings.Contains(err.Error(), "hash") {
		t.Errorf("other hash: %v", err)
	}
}

func TestConfigIsJSON(t *testing.T) {
	for _, c := range []struct {
		t   Tokenizer
		end *uint32
		eos string
	}{{Bytes{}, nil, ""}, {mustParse(t, readBPE(t)), nil, "<|endoftext|>"}, {mustParse(t, readBPE(t)), new(uint32), string(mustParse(t, readBPE(t)).TokenText(0))}} {
		var v struct {
			ModelMaxLength int    `json:"model_max_length"`
			Class          string `json:"tokenizer_class"`
			EOS            string `json:"eos_token"`
		}
		if err := json.Unmarshal(ConfigJSON(c.t, 128, c.end), &v); err != nil {
			t.Fatal(err)
		}
		if v.ModelMaxLength != 128 || v.Class != "PreTrainedTokenizerFast" || v.EOS != c.eos {
			t.Errorf("got %+v", v)
		}
	}
}
