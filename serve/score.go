package serve

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/entrain-network/entrain/llama"
)

// scoring says which tokens are scored. The zero value scores none.
type scoring struct {
	on     bool
	prompt bool // of the prompt too, but the first, which nothing predicts
	top    int  // likeliest tokens that are named beside each
}

// scored is a token with its log-likelihood before sampling, in nats.
type scored struct {
	token  uint32
	chance float64 // NaN for the first token of a prompt
	likely []llama.Choice
	sum    float64 // what the logits of likely exceed their log-likelihoods by
}

// score returns a token's score by the logits before it.
func (s scoring) score(token uint32, logits []float32) scored {
	sum := llama.LogSum(logits)
	return scored{token, float64(logits[token]) - sum, llama.Likeliest(logits, s.top), sum}
}

// likeliest calls f with the likeliest tokens and their log-likelihoods.
func (s scored) likeliest(f func(token uint32, chance float64)) {
	for _, c := range s.likely {
		f(c.Token, float64(c.Weight)-s.sum)
	}
}

// tokenText returns the bytes of a token, nil if it has none, and its name, as OpenAI's API has it.
func (m *Model) tokenText(token uint32) (text []byte, name string) {
	text, err := m.words.Decode(nil, []uint32{token})
	switch {
	case err != nil: // the vocabulary is larger than the tokenizer's
		return nil, fmt.Sprintf("token:%d", token)
	case utf8.Valid(text):
		return text, string(text)
	}
	var b strings.Builder
	b.WriteString("bytes:")
	for _, c := range text {
		fmt.Fprintf(&b, `\x%02x`, c)
	}
	return text, b.String()
}

// likelihoods returns the field logprobs of a completion, or a part of one, with offsets in it.
func (m *Model) likelihoods(list []scored) map[string]any {
	names, offsets := make([]string, len(list)), make([]int, len(list))
	chances, tops, offset := make([]any, len(list)), make([]any, len(list)), 0
	for i, s := range list {
		var text []byte
		text, names[i] = m.tokenText(s.token)
		offsets[i] = offset
		offset += utf8.RuneCount(text)
		if math.IsNaN(s.chance) {
			continue
		}
		top := map[string]float64{names[i]: s.chance}
		s.likeliest(func(token uint32, chance float64) {
			_, name := m.tokenText(token)
			if most, ok := top[name]; !ok || most < chance { // names may coincide
				top[name] = chance
			}
		})
		chances[i], tops[i] = s.chance, top
	}
	return map[string]any{"tokens": names, "token_logprobs": chances, "top_logprobs": tops, "text_offset": offsets}
}

// chatLikelihoods returns the field logprobs of a message.
func (m *Model) chatLikelihoods(list []scored) map[string]any {
	one := func(token uint32, chance float64) map[string]any {
		text, name := m.tokenText(token)
		var b []int // JSON would write bytes in base64
		for _, c := range text {
			b = append(b, int(c))
		}
		return map[string]any{"token": name, "logprob": chance, "bytes": b}
	}
	content := make([]any, len(list))
	for i, s := range list {
		top := make([]any, 0, len(s.likely))
		s.likeliest(func(token uint32, chance float64) { top = append(top, one(token, chance)) })
		said := one(s.token, s.chance)
		said["top_logprobs"] = top
		content[i] = said
	}
	return map[string]any{"content": content, "refusal": nil}
}
