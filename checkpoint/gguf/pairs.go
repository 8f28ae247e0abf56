package gguf

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
)

// The types of values.
const (
	valueU32    = 4
	valueI32    = 5
	valueF32    = 6
	valueBool   = 7
	valueString = 8
	valueArray  = 9
)

// The types of tokens, llama.cpp's enum llama_token_type.
const (
	tokenNormal  = 1
	tokenControl = 3
	tokenUser    = 4
	tokenUnused  = 5
	tokenUnknown = 2
	tokenByte    = 6
)

func appendString(dst []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint64(dst, uint64(len(s))), s...)
}

// pairs are keys and values.
type pairs struct {
	b     []byte
	count uint64
}

func (p *pairs) key(key string, valueType uint32) {
	p.b = binary.LittleEndian.AppendUint32(appendString(p.b, key), valueType)
	p.count++
}

func (p *pairs) text(key, s string) {
	p.key(key, valueString)
	p.b = appendString(p.b, s)
}

func (p *pairs) number(key string, v int) {
	p.key(key, valueU32)
	p.b = binary.LittleEndian.AppendUint32(p.b, uint32(v))
}

func (p *pairs) float(key string, v float32) {
	p.key(key, valueF32)
	p.b = binary.LittleEndian.AppendUint32(p.b, math.Float32bits(v))
}

func (p *pairs) flag(key string, v bool) {
	p.key(key, valueBool)
	b := byte(0)
	if v {
		b = 1
	}
	p.b = append(p.b, b)
}

func (p *pairs) array(key string, elementType uint32, n int) {
	p.key(key, valueArray)
	p.b = binary.LittleEndian.AppendUint32(p.b, elementType)
	p.b = binary.LittleEndian.AppendUint64(p.b, uint64(n))
}

func (p *pairs) texts(key string, list []string) {
	p.array(key, valueString, len(list))
	for _, s := range list {
		p.b = appendString(p.b, s)
	}
}

// pairs returns the metadata of the model that llama.cpp needs besides its tensors.
func (m Model) pairs(t Type) (pairs, error) {
	var p pairs
	c := config(m.Config)
	arch := c.architecture()
	p.text("general.architecture", arch)
	p.text("general.name", m.Name)
	p.number("general.alignment", align)
	p.number("general.quantization_version", 2)
	p.number("general.file_type", int(t.fileType()))
	p.number(arch+".vocab_size", c.Vocab)
	p.number(arch+".context_length", c.context())
	p.number(arch+".embedding_length", c.Hidden)
	p.number(arch+".block_count", c.Layers)
	p.number(arch+".feed_forward_length", c.FFN)
	p.number(arch+".attention.head_count", c.Heads)
	p.number(arch+".attention.head_count_kv", c.KVHeads)
	p.number(arch+".attention.key_length", c.HeadDim)
	p.number(arch+".attention.value_length", c.HeadDim)
	p.number(arch+".rope.dimension_count", c.HeadDim)
	p.float(arch+".rope.freq_base", float32(c.Theta))
	if factor, ok := c.linear(); ok && c.QKNorm {
		p.text(arch+".rope.scaling.type", "linear")
		p.float(arch+".rope.scaling.factor", float32(factor))
	}
	p.float(arch+".attention.layer_norm_rms_epsilon", c.Eps)
	if err := p.vocabulary(m.Tokenizer, c.Vocab); err != nil {
		return p, err
	}
	if c.BOS != nil {
		p.number("tokenizer.ggml.bos_token_id", int(*c.BOS))
	}
	if c.EOS != nil {
		p.number("tokenizer.ggml.eos_token_id", int(*c.EOS))
	}
	p.flag("tokenizer.ggml.add_bos_token", false)
	p.flag("tokenizer.ggml.add_eos_token", false)
	if m.Chat != "" {
		p.text("tokenizer.chat_template", m.Chat)
	}
	return p, nil
}

// tokenizerJSON is the part of tokenizer.json used here.
type tokenizerJSON struct {
	Model struct {
		Type   string            `json:"type"`
		Vocab  map[string]int    `json:"vocab"`
		Merges []json.RawMessage `json:"merges"`

		ByteFallback bool `json:"byte_fallback"`
	} `json:"model"`
	AddedTokens []struct {
		ID      int    `json:"id"`
		Content string `json:"content"`
		Special bool   `json:"special"`
	} `json:"added_tokens"`
	PreTokenizer  json.RawMessage `json:"pre_tokenizer"`
	Normalizer    json.RawMessage `json:"normalizer"`
	PostProcessor json.RawMessage `json:"post_processor"`
}

// vocabulary is a tokenizer of llama.cpp's kind gpt2: byte-level BPE.
func (p *pairs) vocabulary(tokenizer []byte, vocab int) error {
	var t tokenizerJSON
	if err := json.Unmarshal(tokenizer, &t); err != nil {
		return fmt.Errorf("tokenizer.json: %w", err)
	}
	if t.Model.Type != "BPE" {
		return fmt.Errorf("tokenizer.json: the model is %q; only byte-level BPE can be written", t.Model.Type)
	}
	pre, err := "", error(nil)
	if !t.Model.ByteFallback {
		if pre, err = preTokenizer(t.PreTokenizer, len(t.Model.Merges)); err != nil {
			return err
		}
	}
	tokens, types := make([]string, vocab), make([]int, vocab)
	for i := range tokens {
		// rows of the embedding that no text uses
		tokens[i], types[i] = fmt.Sprintf("[PAD%d]", i), tokenUnused
	}
	for s, id := range t.Model.Vocab {
		if id < 0 || id >= vocab {
			return fmt.Errorf("tokenizer.json: token %q has id %d, but the model has %d tokens", s, id, vocab)
		}
		tokens[id], types[id] = s, tokenNormal
	}
	for _, a := range t.AddedTokens {
		if a.ID < 0 || a.ID >= vocab {
			return fmt.Errorf("tokenizer.json: token %q has id %d, but the model has %d tokens", a.Content, a.ID, vocab)
		}
		tokens[a.ID], types[a.ID] = a.Content, tokenUser
		if a.Special {
			types[a.ID] = tokenControl
		}
	}
	merges := make([]string, len(t.Model.Merges))
	for i, raw := range t.Model.Merges {
		if merges[i], err = merge(raw); err != nil {
			return fmt.Errorf("tokenizer.json: merge %d: %w", i, err)
		}
	}
	if t.Model.ByteFallback {
		p.sentence(t, tokens, types, merges)
		return nil
	}
	p.text("tokenizer.ggml.model", "gpt2")
	p.text("tokenizer.ggml.pre", pre)
	p.texts("tokenizer.ggml.tokens", tokens)
	p.array("tokenizer.ggml.token_type", valueI32, len(types))
	for _, t := range types {
		p.b = binary.LittleEndian.AppendUint32(p.b, uint32(t))
	}
	p.texts("tokenizer.ggml.merges", merges)
	return nil
}

// sentence is a vocabulary of llama.cpp's kind llama: BPE in SentencePiece's manner, in which the
// pair that makes the token of the highest score merges first. Scores follow the order of merges.
func (p *pairs) sentence(t tokenizerJSON, tokens []string, types []int, merges []string) {
	scores := make([]float32, len(tokens))
	for rank, m := range slices.Backward(merges) {
		left, right, _ := strings.Cut(m, " ")
		if id, ok := t.Model.Vocab[left+right]; ok {
			scores[id] = -float32(rank)
		}
	}
	for i, s := range tokens {
		switch {
		case s == "<unk>":
			types[i] = tokenUnknown
		case len(s) == len("<0x00>") && strings.HasPrefix(s, "<0x"):
			types[i] = tokenByte
		}
	}
	p.text("tokenizer.ggml.model", "llama")
	p.text("tokenizer.ggml.pre", "default")
	p.texts("tokenizer.ggml.tokens", tokens)
	p.array("tokenizer.ggml.scores", valueF32, len(scores))
	for _, s := range scores {
		p.b = binary.LittleEndian.AppendUint32(p.b, math.Float32bits(s))
	}
	p.array("tokenizer.ggml.token_type", valueI32, len(types))
	for _, t := range types {
		p.b = binary.LittleEndian.AppendUint32(p.b, uint32(t))
	}
	front := strings.Contains(string(t.Normalizer), `"Prepend"`) ||
		strings.Contains(string(t.PreTokenizer), `"Metaspace"`) && !strings.Contains(string(t.PreTokenizer), `"never"`)
	p.flag("tokenizer.ggml.add_space_prefix", front)
}

// merge reads a merge in either of its spellings: "a b" and ["a","b"].
func merge(raw json.RawMessage) (string, error) {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s, nil
	}
	var pair []string
	if err := json.Unmarshal(raw, &pair); err != nil || len(pair) != 2 {
		return "", fmt.Errorf("%.80s is neither a string nor a pair of strings", raw)
	}
	return pair[0] + " " + pair[1], nil
}

// qwenSplit is the start of the pattern by which Qwen2 and Qwen3 cut texts into words.
const qwenSplit = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|`

// llama3Split is the start of the pattern by which Llama 3 cuts texts into words.
const llama3Split = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|`

// preTokenizer returns llama.cpp's name for the way in which texts are cut into words before
// merges. Without merges the choice does not matter.
func preTokenizer(raw json.RawMessage, merges int) (string, error) {
	var t struct {
		Type     string            `json:"type"`
		UseRegex *bool             `json:"use_regex"`
		Parts    []json.RawMessage `json:"pretokenizers"`
		Pattern  struct{ Regex string }
	}
	if merges == 0 {
		return "gpt-2", nil
	}
	if err := json.Unmarshal(raw, &t); err != nil {
		return "", fmt.Errorf("tokenizer.json: pre_tokenizer: %w", err)
	}
	switch {
	case t.Type == "ByteLevel" && (t.UseRegex == nil || *t.UseRegex):
		return "gpt-2", nil
	case t.Type == "Split" && strings.HasPrefix(t.Pattern.Regex, llama3Split):
		return "llama-bpe", nil
	case t.Type == "Split" && strings.HasPrefix(t.Pattern.Regex, qwenSplit):
		return "qwen2", nil
	case t.Type == "Sequence":
		for _, part := range t.Parts {
			if name, err := preTokenizer(part, merges); err == nil {
				return name, nil
			}
		}
	}
	return "", fmt.Errorf("tokenizer.json: cannot export this pre_tokenizer: only GPT-2's, Llama 3's and Qwen's are supported")
}
