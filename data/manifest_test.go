package data

import (
	"bytes"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/wire"
)

// example is a manifest that Check accepts, of 2.5 shards and a short held-out part.
func example() Manifest {
	return Manifest{
		Version: 1, Name: "opticks", Tokenizer: Tokenizer{"bytes", wire.Hash{9}}, Vocab: 256, TokenBytes: 2, ShardTokens: 1024,
		Tokens: 2560, HeldOutTokens: 7,
		Shards: []Shard{
			{"train-00000.bin", 1024, 2048, wire.Hash{1}},
			{"train-00001.bin", 1024, 2048, wire.Hash{2}},
			{"train-00002.bin", 512, 1024, wire.Hash{3}},
		},
		HeldOut: []Shard{{"heldout-00000.bin", 7, 14, wire.Hash{4}}},
	}
}

func TestManifestRoundTrip(t *testing.T) {
	m := example()
	got, err := ParseManifest(m.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), m.Bytes()) || got.Hash() != m.Hash() {
		t.Errorf("got %+v", got)
	}
	m.Name = "other"
	if got.Hash() == m.Hash() {
		t.Error("two manifests have one hash")
	}
}

func TestManifestsThatAreRefused(t *testing.T) {
	edit := func(f func(m *Manifest)) []byte {
		m := example()
		f(&m)
		return m.Bytes()
	}
	text := func(old, new string) []byte {
		b := bytes.Replace(example().Bytes(), []byte(old), []byte(new), 1)
		if bytes.Equal(b, example().Bytes()) {
			t.Fatalf("%q is not in the manifest", old)
		}
		return b
	}
	for _, c := range []struct {
		name  string
		bytes []byte
		want  string
	}{
		{"other version", edit(func(m *Manifest) { m.Version = 2 }), "version 2"},
		{"no name", edit(func(m *Manifest) { m.Name = "" }), "name"},
		{"name for a terminal to choke on", edit(func(m *Manifest) { m.Name = "a\x1b[2J" }), "name"},
		{"long name", edit(func(m *Manifest) { m.Name = strings.Repeat("a", 65) }), "name"},
		{"no tokenizer", edit(func(m *Manifest) { m.Tokenizer.Name = "" }), "tokenizer"},
		{"no vocabulary", edit(func(m *Manifest) { m.Vocab = 0 }), "vocab"},
		{"vocabulary beyond token ids", edit(func(m *Manifest) { m.Vocab = 1<<24 + 1 }), "vocab"},
		{"tokens of 3 bytes", edit(func(m *Manifest) { m.TokenBytes = 3 }), "token_bytes"},
		{"vocabulary beyond its tokens", edit(func(m *Manifest) { m.Vocab = 65537 }), "does not fit"},
		{"tiny shards", edit(func(m *Manifest) { m.ShardTokens = 1023 }), "shard_tokens"},
		{"giant shards", edit(func(m *Manifest) { m.ShardTokens = 1<<30 + 1 }), "shard_tokens"},
		{"too many shards", edit(func(m *Manifest) { m.Shards = make([]Shard, shardsMax) }), "65537 shards"},
		{"path outside the directory", edit(func(m *Manifest) { m.Shards[0].File = "../x" }), `"../x"`},
		{"shard named as the manifest", edit(func(m *Manifest) { m.Shards[0].File = manifestFile }), manifestFile},
		{"file used twice", edit(func(m *Manifest) { m.HeldOut[0].File = "train-00000.bin" }), "twice"},
		{"short shard in the middle", edit(func(m *Manifest) { m.Shards[1].Tokens = 1000 }), "all but the last"},
		{"long shard at the end", edit(func(m *Manifest) { m.Shards[2].Tokens = 1025 }), "all but the last"},
		{"empty shard", edit(func(m *Manifest) { m.Shards[2].Tokens = 0 }), "all but the last"},
		{"bytes that are not the tokens'", edit(func(m *Manifest) { m.Shards[0].Bytes-- }), "2047 bytes"},
		{"wrong total", edit(func(m *Manifest) { m.Tokens++ }), "2560 tokens, not 2561"},
		{"wrong held-out total", edit(func(m *Manifest) { m.HeldOutTokens = 0 }), "held_out"},
		{"chat template that is too long", edit(func(m *Manifest) { m.Chat = strings.Repeat("a", chatBytesMax+1) }), "chat"},
		{"not JSON", []byte("hello"), "not JSON"},
		{"unknown field", text(`"vocab"`, `"words": 1, "vocab"`), "words"},
		{"repeated field", text(`"vocab": 256`, `"vocab": 3, "vocab": 256`), "canonical"},
		{"other case", text(`"vocab"`, `"Vocab"`), "canonical"},
		{"other spacing", text("\n  ", " "), "canonical"},
		{"more after it", append(example().Bytes(), '\n'), "canonical"},
		{"hash in upper case", text("0900", "0A00"), "hexadecimal"},
		{"too large", make([]byte, manifestBytesMax+1), "more than"},
	} {
		if _, err := ParseManifest(c.bytes); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", c.name, err, c.want)
		}
	}
}

func FuzzParseManifest(f *testing.F) {
	f.Add(example().Bytes())
	chat := example()
	chat.Chat = "{% for m in messages %}<é>{% endfor %}\n"
	f.Add(chat.Bytes())
	f.Add(Manifest{}.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ParseManifest(b)
		if err != nil {
			return
		}
		if !bytes.Equal(m.Bytes(), b) {
			t.Errorf("%q parses but is written as %q", b, m.Bytes())
		}
		if err := m.Check(); err != nil {
			t.Errorf("%q parses, but: %v", b, err)
		}
	})
}
