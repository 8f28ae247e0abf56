package serve

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/entrain-network/entrain/tokenizer/chat"
	"github.com/entrain-network/entrain/wire"
)

// What a request may ask.
const (
	tokensUsual = 16 // max_tokens where a request says none, as in OpenAI's API
	stopsAsked  = 4
	topMost     = 20 // likeliest tokens beside each
	hottest     = 2  // temperature, as in OpenAI's API; a receipt may state more
)

// request is the body of POST /v1/completions and /v1/chat/completions. Fields of OpenAI's API that
// would change the answer and are not known are refused unless they have the value that changes
// nothing.
type request struct {
	Model             string          `json:"model"`
	Prompt            json.RawMessage `json:"prompt"` // text, tokens, or a list of either
	chat.Conversation                 // in place of the prompt
	MaxTokens         *int            `json:"max_tokens"`
	MaxAnswer         *int            `json:"max_completion_tokens"` // the same, of a chat
	Temperature       *float32        `json:"temperature"`
	TopP              *float32        `json:"top_p"`
	TopK              int             `json:"top_k"` // not in OpenAI's API
	Seed              *int64          `json:"seed"`
	Stop              json.RawMessage `json:"stop"` // a text or some
	Stream            bool            `json:"stream"`
	Options           *struct {
		Usage bool `json:"include_usage"`
	} `json:"stream_options"`

	N           *int            `json:"n"` // answers to each prompt
	Echo        bool            `json:"echo"`
	Logprobs    json.RawMessage `json:"logprobs"` // a number, or of a chat whether
	TopLogprobs int             `json:"top_logprobs"`

	BestOf   *int           `json:"best_of"`
	Suffix   *string        `json:"suffix"`
	Bias     map[string]any `json:"logit_bias"`
	Presence float64        `json:"presence_penalty"`
	Frequent float64        `json:"frequency_penalty"`

	Choice    json.RawMessage `json:"tool_choice"`
	Format    json.RawMessage `json:"response_format"`
	Functions json.RawMessage `json:"functions"`
}

// harmless are fields that change no answer.
var harmless = []string{
	"user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_retention", "parallel_tool_calls",
}

// known are the names of the fields that a request may have.
var known = func() map[string]bool {
	names := make(map[string]bool)
	for _, f := range reflect.VisibleFields(reflect.TypeFor[request]()) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			names[name] = true
		}
	}
	for _, name := range harmless {
		names[name] = true
	}
	return names
}()

// unknown returns the name of what r asks that no answer can have, or "". body is r's JSON.
func (r *request) unknown(body []byte) string {
	var all map[string]json.RawMessage
	_ = json.Unmarshal(body, &all) // it is r's
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !known[name] && string(all[name]) != "null" {
			return name
		}
	}
	asked := func(v json.RawMessage, usual string) bool {
		return len(v) > 0 && string(v) != "null" && string(v) != usual
	}
	switch {
	case asked(r.Choice, `"auto"`):
		return "tool_choice"
	case asked(r.Format, "") && !plain(r.Format):
		return "response_format"
	case asked(r.Functions, "[]"):
		return "functions"
	case r.BestOf != nil && *r.BestOf != r.answers():
		return "best_of"
	case r.Suffix != nil && *r.Suffix != "":
		return "suffix"
	case len(r.Bias) > 0:
		return "logit_bias"
	case r.Presence != 0:
		return "presence_penalty"
	case r.Frequent != 0:
		return "frequency_penalty"
	}
	return ""
}

// plain reports whether a response_format asks for nothing but text.
func plain(format json.RawMessage) bool {
	var f struct {
		Type string `json:"type"`
	}
	return json.Unmarshal(format, &f) == nil && f.Type == "text"
}

// answers returns how many answers to each prompt r asks for.
func (r *request) answers() int {
	if r.N == nil {
		return 1
	}
	return *r.N
}

// settings returns a question without a prompt.
func (r *request) settings() (Question, error) {
	q := Question{Most: tokensUsual, Temperature: 1, TopP: 1, TopK: r.TopK, Stop: []string{}}
	for _, most := range []struct {
		name   string
		tokens *int
	}{{"max_tokens", r.MaxTokens}, {"max_completion_tokens", r.MaxAnswer}} {
		if most.tokens == nil {
			continue
		}
		if q.Most = *most.tokens; q.Most < 1 && !r.silent() {
			return q, fmt.Errorf("%s: %d must be at least 1", most.name, q.Most)
		}
	}
	if r.silent() {
		q.Most = 1
	}
	if r.Temperature != nil {
		q.Temperature = *r.Temperature
	}
	if r.TopP != nil {
		q.TopP = *r.TopP
	}
	switch {
	case q.Temperature < 0 || q.Temperature > hottest:
		return q, fmt.Errorf("temperature: %g must be 0 to %d", q.Temperature, hottest)
	case q.TopP < 0 || q.TopP > 1:
		return q, fmt.Errorf("top_p: %g must be 0 to 1", q.TopP)
	case q.TopK < 0:
		return q, fmt.Errorf("top_k: %d must be at least 0", q.TopK)
	case r.Options != nil && !r.Stream:
		return q, errors.New("stream_options: set stream too")
	}
	var one string
	if len(r.Stop) > 0 && string(r.Stop) != "null" {
		if json.Unmarshal(r.Stop, &one) == nil {
			q.Stop = append(q.Stop, one)
		} else if err := json.Unmarshal(r.Stop, &q.Stop); err != nil {
			return q, errors.New("stop: neither a text nor a list of texts")
		}
	}
	if len(q.Stop) > stopsAsked {
		return q, fmt.Errorf("stop: it has %d texts, at most %d are allowed", len(q.Stop), stopsAsked)
	}
	return q, nil
}

// silent reports whether r asks for its prompts alone.
func (r *request) silent() bool { return r.Echo && r.MaxTokens != nil && *r.MaxTokens == 0 }

// seed returns the seed of answer k to a prompt.
func (r *request) seed(k int) (string, error) {
	var seed wire.Hash
	if r.Seed == nil {
		_, err := rand.Read(seed[:])
		return hex.EncodeToString(seed[:]), err
	}
	text := strconv.FormatInt(*r.Seed, 10)
	if k > 0 {
		text += "/" + strconv.Itoa(k)
	}
	seed = wire.Sum("entrain/serve/seed", []byte(text))
	return hex.EncodeToString(seed[:]), nil
}

// scoring returns what r asks about the likelihoods of tokens.
func (r *request) scoring(converse bool) (s scoring, err error) {
	s.top = r.TopLogprobs
	switch asked := len(r.Logprobs) > 0 && string(r.Logprobs) != "null"; {
	case converse && asked:
		if json.Unmarshal(r.Logprobs, &s.on) != nil {
			return s, errors.New("logprobs: neither true nor false")
		}
	case asked && string(r.Logprobs) != "false":
		if s.on = true; json.Unmarshal(r.Logprobs, &s.top) != nil {
			return s, errors.New("logprobs: not a number of tokens")
		}
	}
	switch {
	case s.top < 0 || s.top > topMost:
		name := "logprobs"
		if converse {
			name = "top_logprobs"
		}
		return s, fmt.Errorf("%s: %d of the likeliest tokens: want 0 to %d", name, s.top, topMost)
	case !s.on && s.top > 0:
		return s, errors.New("top_logprobs: set logprobs too")
	case converse && r.Echo:
		return s, errors.New("echo: not of a conversation")
	}
	s.prompt = s.on && r.Echo
	return s, nil
}
