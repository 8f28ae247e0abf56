package model

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/tokenizer"
)

// Of several tokens that end a text, an imported model keeps the one that ends an answer: what is
// exported stops there in programs that read one.
func TestAnImportEndsAnswersWhereItsTemplateDoes(t *testing.T) {
	plain, err := tokenizer.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	added := func(id, text string) string {
		return `{"id": ` + id + `, "content": "` + text + `", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}`
	}
	file := bytes.Replace(plain.JSON(), []byte(`"added_tokens": [`), []byte(`"added_tokens": [`+added("300", "<|turn|>")+`, `+added("301", "<|eom|>")+`, `), 1)
	cfg := llama.Config{Vocab: 304, Hidden: 8, Layers: 1, Heads: 2, KVHeads: 1, HeadDim: 4, FFN: 8, Context: 16, Theta: 10000, Eps: 1e-5}
	const template = `{% for m in messages %}{{ m.content }}<|turn|>{% endfor %}`
	for name, c := range map[string]struct {
		config, generation, chat string
		want                     uint32
	}{
		"one":                           {"0", "", template, 0},
		"several":                       {"[0, 301, 300]", "", template, 300},
		"several, no template":          {"[301, 0, 300]", "", "", 301},
		"several, none of the template": {"[301, 0]", "", template, 301},
		"several to generate":           {"0", "[0, 300]", template, 300},
		"another to generate":           {"301", "300", template, 300},
		"none":                          {"null", "", template, 300},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "model")
			save(t, dir, cfg, llama.Init(cfg, [32]byte{1}), [32]byte{})
			write := func(file, text string) {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			config, err := os.ReadFile(filepath.Join(dir, checkpoint.ConfigFile))
			if err != nil || !strings.Contains(string(config), `"eos_token_id": null`) {
				t.Fatalf("%s, %v", config, err)
			}
			write(checkpoint.ConfigFile, strings.Replace(string(config), `"eos_token_id": null`, `"eos_token_id": `+c.config, 1))
			write(checkpoint.TokenizerFile, string(file))
			for _, file := range []string{checkpoint.GenerationFile, checkpoint.ManifestFile} {
				if err := os.Remove(filepath.Join(dir, file)); err != nil {
					t.Fatal(err)
				}
			}
			if c.generation != "" {
				write(checkpoint.GenerationFile, `{"eos_token_id": `+c.generation+`}`)
			}
			if c.chat != "" {
				write(checkpoint.ChatFile, c.chat)
			}
			m, err := Import(dir, "")
			if err != nil {
				t.Fatal(err)
			}
			if *m.Config.EOS != c.want {
				t.Errorf("answers end with token %d, not %d", *m.Config.EOS, c.want)
			}
		})
	}
}
