package serve

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// Likelihoods are those of the model's softmax, of the prompt and the answer, beside other answers
// and however the prompt is cut into parts; and to score a prompt changes no answer.
func TestLikelihoodsAreTheModels(t *testing.T) {
	m := open(t, "a")
	server := start(t, m, 3)
	prompt := strings.Repeat("The rays of light ", 3)[:40]
	body := `{"prompt":["` + prompt + `","` + prompt[:9] + `"],"seed":3,"max_tokens":6,"n":2`
	plain, _, _ := post(t, server, body+`}`)
	_, status, raw := post(t, server, body+`,"echo":true,"logprobs":4}`)
	var got struct {
		Choices []struct {
			Text     string
			Receipt  Receipt
			Logprobs struct {
				Tokens  []string
				Chances []*float64           `json:"token_logprobs"`
				Tops    []map[string]float64 `json:"top_logprobs"`
			}
		}
	}
	if err := json.Unmarshal(raw, &got); err != nil || status != 200 || len(got.Choices) != 4 || len(plain.Choices) != 4 {
		t.Fatalf("%s, %v", raw, err)
	}
	for i, c := range got.Choices {
		if fmt.Sprint(c.Receipt) != fmt.Sprint(*plain.Choices[i].Receipt) {
			t.Errorf("answer %d is another when its prompt is scored", i)
		}
		text := append(slices.Clone(c.Receipt.Prompt), c.Receipt.Tokens...)
		if len(c.Logprobs.Chances) != len(text) || c.Logprobs.Chances[0] != nil {
			t.Fatalf("answer %d has %d likelihoods of %d tokens", i, len(c.Logprobs.Chances), len(text))
		}
		err := m.decoder.Generator().Follow(text[:len(text)-1], 0, func(at int, logits []float32) bool {
			sum := 0.0
			for _, v := range logits {
				sum += math.Exp(float64(v))
			}
			likelier := 0
			for _, v := range logits {
				if v > logits[text[at+1]] {
					likelier++
				}
			}
			want, top := float64(logits[text[at+1]])-math.Log(sum), c.Logprobs.Tops[at+1]
			if got := *c.Logprobs.Chances[at+1]; math.Abs(got-want) > 1e-9 || top[c.Logprobs.Tokens[at+1]] != got {
				t.Errorf("answer %d: token %d has %g, want %g; %v", i, at+1, got, want, top)
			}
			above := 0
			for _, v := range top {
				if v > want+1e-9 {
					above++
				}
			}
			if above != min(4, likelier) {
				t.Errorf("answer %d: %d of %v are likelier than token %d, want %d", i, above, top, at+1, min(4, likelier))
			}
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
