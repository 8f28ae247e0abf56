package serve

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/model"
	_ "github.com/entrain-network/entrain/tests/heap"
	"github.com/entrain-network/entrain/tokenizer"
	"github.com/entrain-network/entrain/wire"
)

var tiny = llama.Config{Vocab: 260, Hidden: 32, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 8, FFN: 48, Context: 64, Theta: 10000, Eps: 1e-5, QKNorm: true}

// open makes a checkpoint of random parameters and opens it.
func open(t testing.TB, seed string) *Model { return openOf(t, seed, tiny) }

// write makes a checkpoint of random parameters and returns its directory.
func write(t testing.TB, seed string, cfg llama.Config) string {
	t.Helper()
	m := checkpoint.Model{
		Run: "tiny", Config: model.CheckpointConfig(cfg), Tokenizer: tokenizer.Bytes{}, Layout: cfg.Layout(), Params: llama.Init(cfg, wire.Sum(seed)),
		Chat: "{% for m in messages %}{{ m.role[0] }}:{{ m.content }};{% endfor %}{% if add_generation_prompt %}a:{% endif %}",
	}
	for i := range m.Params { // far from an even choice of tokens
		m.Params[i] *= 3
	}
	dir := filepath.Join(t.TempDir(), "checkpoint")
	if _, err := model.Write(t.Context(), dir, m, checkpoint.Options{}); err != nil {
		t.Fatal(err)
	}
	return dir
}

func openOf(t testing.TB, seed string, cfg llama.Config) *Model {
	t.Helper()
	pool := exact.NewPool(2)
	t.Cleanup(pool.Close)
	opened, err := Open(write(t, seed, cfg), model.Machine{Pool: pool})
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

type completion struct {
	Object  string
	Choices []struct {
		Text    string
		Finish  *string `json:"finish_reason"`
		Receipt *Receipt
	}
	Usage map[string]int
	Error struct{ Message, Param string }
}

// post sends a request and returns what is answered.
func post(t *testing.T, server *httptest.Server, body string) (c completion, status int, raw []byte) {
	t.Helper()
	path := "/v1/completions"
	if strings.Contains(body, `"messages"`) {
		path = "/v1/chat/completions"
	}
	r, err := http.Post(server.URL+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if raw, err = io.ReadAll(r.Body); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &c); err != nil && r.Header.Get("Content-Type") == "application/json" {
		t.Fatalf("%s: %v", raw, err)
	}
	return c, r.StatusCode, raw
}

// streamed puts the texts of a stream together, and returns its receipt.
func streamed(t *testing.T, raw []byte) (text, end string, receipt *Receipt) {
	t.Helper()
	lines := bufio.NewScanner(bytes.NewReader(raw))
	done := false
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if data == "[DONE]" {
			done = true
			continue
		}
		var c completion
		if err := json.Unmarshal([]byte(data), &c); err != nil || done {
			t.Fatalf("%s: %v", data, err)
		}
		for _, choice := range c.Choices {
			text += choice.Text
			if choice.Finish != nil {
				end, receipt = *choice.Finish, choice.Receipt
			}
		}
	}
	if !done {
		t.Errorf("the stream does not end by [DONE]: %s", raw)
	}
	return text, end, receipt
}

func start(t *testing.T, m *Model, parallel int) *httptest.Server {
	s, err := NewServer(m, parallel, 0, true)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	return server
}

// The same question has the same answer: whole, streamed, alone and among others; and its receipt is
// verified by another copy of the model.
func TestAnAnswerIsAFunctionOfTheQuestion(t *testing.T) {
	m, other := open(t, "a"), open(t, "a")
	server := start(t, m, 3)
	for _, more := range []string{``, `,"temperature":0`, `,"top_p":0.5,"temperature":2`, `,"top_k":3`, `,"stop":["e","ab"],"max_tokens":40,"temperature":1.9`} {
		ask := `{"model":"tiny","prompt":"The rays","seed":7` + more + `%s}`
		first, status, _ := post(t, server, fmt.Sprintf(ask, ""))
		if status != http.StatusOK || len(first.Choices) != 1 || first.Choices[0].Receipt == nil || first.Usage["prompt_tokens"] != 8 {
			t.Fatalf("%s: status %d, %+v", more, status, first)
		}
		text, err := other.Verify(t.Context(), *first.Choices[0].Receipt)
		if err != nil || strings.ToValidUTF8(text, "\uFFFD") != first.Choices[0].Text {
			t.Errorf("%s: verified as %q, %v, answered %q", more, text, err, first.Choices[0].Text)
		}
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				_, _, raw := post(t, server, fmt.Sprintf(ask, `,"stream":true`))
				got, end, receipt := streamed(t, raw)
				if end != *first.Choices[0].Finish || fmt.Sprint(*receipt) != fmt.Sprint(*first.Choices[0].Receipt) {
					t.Errorf("%s: streamed %q, which ends by %q, with %+v", more, got, end, receipt)
				}
				if !strings.Contains(first.Choices[0].Text, "\uFFFD") && got != first.Choices[0].Text {
					t.Errorf("%s: streamed %q, whole %q", more, got, first.Choices[0].Text)
				}
			})
		}
		group.Wait()
	}
}

// A receipt that states anything else is refused, whatever was changed.
func TestAReceiptThatLiesIsRefused(t *testing.T) {
	m := open(t, "a")
	c, _, raw := post(t, start(t, m, 1), `{"prompt":"Of light","seed":1,"max_tokens":12}`)
	list, err := parseReceipts(raw)
	if err != nil || len(list) != 1 || fmt.Sprint(list[0]) != fmt.Sprint(*c.Choices[0].Receipt) {
		t.Fatalf("%+v is read as %+v, %v", c.Choices, list, err)
	}
	honest := list[0]
	for name, change := range map[string]func(r *Receipt){
		"another token":  func(r *Receipt) { r.Tokens[5] ^= 1 },
		"one token less": func(r *Receipt) { r.Tokens = r.Tokens[:11] },
		"one token more": func(r *Receipt) { r.Tokens = append(r.Tokens, 1) },
		"no answer":      func(r *Receipt) { r.Tokens = nil },
		"no such token":  func(r *Receipt) { r.Tokens[3] = 1 << 31 },
		"a long answer":  func(r *Receipt) { r.Tokens = append(r.Tokens, make([]uint32, 1e5)...) },
		"a longer limit": func(r *Receipt) { r.Most = 1 << 40 },
		"another end":    func(r *Receipt) { r.End = endStop },
		"another seed":   func(r *Receipt) { r.Seed = strings.Repeat("1", 64) },
		"another prompt": func(r *Receipt) { r.Prompt[0] ^= 1 },
		"fewer tokens":   func(r *Receipt) { r.Most = 3 },
		"other sampling": func(r *Receipt) { r.Temperature = 0 },
		"a shorter list": func(r *Receipt) { r.TopK = 1 },
		"a stop that is in": func(r *Receipt) {
			r.Stop = []string{string(rune(r.Tokens[2]&0x7f | 0x20))}
			r.Tokens[2] = r.Tokens[2]&0x7f | 0x20
		},
	} {
		list, err := parseReceipts(raw)
		if err != nil {
			t.Fatal(err)
		}
		lie := list[0]
		change(&lie)
		if _, err := m.Verify(t.Context(), lie); !errors.Is(err, ErrAnswer) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, change := range map[string]func(r *Receipt){
		"another model":     func(r *Receipt) { r.Model = strings.Repeat("0", 64) },
		"another tokenizer": func(r *Receipt) { r.Tokenizer = "" },
		"other numerics":    func(r *Receipt) { r.Numerics = "exact8" },
		"a huge prompt":     func(r *Receipt) { r.Prompt = make([]uint32, 1000) },
		"no prompt":         func(r *Receipt) { r.Prompt = nil },
		"a token too large": func(r *Receipt) { r.Prompt[0] = 1 << 30 },
		"no seed":           func(r *Receipt) { r.Seed = "" },
		"nothing asked":     func(r *Receipt) { r.Most = -1 },
		"no temperature":    func(r *Receipt) { r.Temperature = -1 },
		"an empty stop":     func(r *Receipt) { r.Stop = []string{""} },
	} {
		list, _ := parseReceipts(raw)
		lie := list[0]
		change(&lie)
		if _, err := m.Verify(t.Context(), lie); err == nil || errors.Is(err, ErrAnswer) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := open(t, "b").Verify(t.Context(), honest); err == nil || errors.Is(err, ErrAnswer) {
		t.Errorf("another model verifies it: %v", err)
	}
	for _, text := range []string{``, `{}`, `[]`, `{"receipt":"x"}`, `{"choices":[{"receipt":{"receipt":"entrain/answer/1","magic":1}}]}`, `{"choices":[{}]}`} {
		if _, err := parseReceipts([]byte(text)); err == nil {
			t.Errorf("%q is read as a receipt", text)
		}
	}
}

// A true receipt does not make another text beside it true.
func TestTheTextBesideAReceiptIsTheAnswers(t *testing.T) {
	m := open(t, "a")
	server := start(t, m, 1)
	for body, asked := range map[string]string{
		`{"prompt":"Of light","seed":1,"max_tokens":12}`:             "Of light",
		`{"prompt":"Of light","seed":1,"max_tokens":12,"echo":true}`: "Of light",
		`{"prompt":[79,102],"seed":1,"max_tokens":12,"echo":true}`:   "Of",
		`{"prompt":"a","seed":1,"max_tokens":12,"n":2,"logprobs":2}`: "a",
	} {
		_, _, raw := post(t, server, body)
		list, err := parseReceipts(raw)
		if err != nil {
			t.Fatal(err)
		}
		for i, stated := range beside(raw, list) {
			got, text, err := m.VerifyStated(t.Context(), stated)
			if err != nil || stated.Text == "" || !strings.HasSuffix(got, asked) || !strings.HasSuffix(stated.Text, strings.ToValidUTF8(text, "\uFFFD")) {
				t.Errorf("%s: answer %d, %q, to %q, is verified as %q, %v", body, i, stated.Text, got, text, err)
			}
			for _, lie := range []string{"no" + stated.Text, stated.Text + "no", "no"} {
				stated.Text = lie
				if _, _, err := m.VerifyStated(t.Context(), stated); !errors.Is(err, ErrAnswer) {
					t.Errorf("%s: %q passes: %v", body, lie, err)
				}
			}
		}
	}
	talk := `{"choices":[{"message":{"content":"yes"}}]}`
	if got := beside([]byte(talk), make([]Receipt, 1))[0].Text; got != "yes" {
		t.Errorf("of a conversation it reads %q", got)
	}
}

// A model of a run in 8 bits answers in 8 bits. Its receipt says so, holds for it, and not for the
// same parameters in binary32.
func TestAModelInEightBitsProvesItsAnswers(t *testing.T) {
	cfg := tiny
	cfg.HeadDim, cfg.FFN = 32, 64
	binary32 := openOf(t, "eight", cfg)
	cfg.Numerics = llama.Exact8
	m := openOf(t, "eight", cfg)
	body := `{"prompt":"Light","max_tokens":30,"seed":5}`
	c, status, _ := post(t, start(t, m, 1), body)
	if status != 200 || c.Choices[0].Receipt == nil || c.Choices[0].Receipt.Numerics != "exact8" {
		t.Fatalf("status %d, receipts %+v", status, c.Choices)
	}
	text, err := m.Verify(t.Context(), *c.Choices[0].Receipt)
	if err != nil || strings.ToValidUTF8(text, "\uFFFD") != c.Choices[0].Text {
		t.Errorf("the answer %q is verified as %q, %v", c.Choices[0].Text, text, err)
	}
	other, _, _ := post(t, start(t, binary32, 1), body)
	if c.Choices[0].Receipt.Model != other.Choices[0].Receipt.Model || c.Choices[0].Text == other.Choices[0].Text {
		t.Errorf("in binary32 the answer is the same, or the parameters are not: %q", c.Choices[0].Text)
	}
	if _, err := binary32.Verify(t.Context(), *c.Choices[0].Receipt); err == nil || !strings.Contains(err.Error(), "numerics") {
		t.Errorf("in binary32: %v", err)
	}
}

// A parameter out of OpenAI's range, or that nothing here knows, is refused with its name.
func TestARefusalNamesTheParameter(t *testing.T) {
	server := start(t, open(t, "a"), 1)
	for field, param := range map[string]string{
		`"temperature":9`: "temperature", `"temperature":2.01`: "temperature", `"temperature":-0.1`: "temperature", `"top_p":1.5`: "top_p", `"top_p":-1`: "top_p",
		`"top_k":-1`: "top_k", `"n":0`: "n", `"n":-2`: "n", `"n":1000`: "n", `"max_tokens":-5`: "max_tokens", `"max_tokens":0`: "max_tokens",
		`"max_completion_tokens":-1`: "max_completion_tokens", `"presence_penalty":3`: "presence_penalty", `"frequency_penalty":-3`: "frequency_penalty",
		`"logit_bias":{"5":101}`: "logit_bias", `"min_p":0.1`: "min_p", `"repetition_penalty":1.2`: "repetition_penalty", `"Temperature":1`: "Temperature",
		`"stream_options":{"include_usage":true}`: "stream_options", `"seed":1.5`: "seed", `"stop":[""]`: "stop", `"best_of":0`: "best_of",
		`"stream":"yes"`: "stream", `"temperature":"hot"`: "temperature", `"temperature":1e39`: "temperature",
	} {
		for _, rest := range []string{`"prompt":"a"`, `"messages":[{"role":"user","content":"a"}]`} {
			body := "{" + rest + "," + field + "}"
			c, status, raw := post(t, server, body)
			if status != http.StatusBadRequest || c.Error.Param != param || !strings.Contains(c.Error.Message, param) || !strings.Contains(string(raw), `"type":"invalid_request_error"`) {
				t.Errorf("%s: status %d: %s", body, status, raw)
			}
		}
	}
	for param, body := range map[string]string{
		"logprobs":     `{"prompt":"a","logprobs":21}`,
		"top_logprobs": `{"messages":[{"role":"user","content":"a"}],"logprobs":true,"top_logprobs":21}`,
	} {
		if c, status, raw := post(t, server, body); status != http.StatusBadRequest || c.Error.Param != param {
			t.Errorf("%s: status %d: %s", body, status, raw)
		}
	}
	for _, field := range []string{`"temperature":2`, `"temperature":0`, `"top_p":0`, `"n":null`, `"min_p":null`, `"user":"u"`, `"store":false`, `"logit_bias":{}`, `"presence_penalty":0`} {
		if _, status, raw := post(t, server, `{"prompt":"a","max_tokens":2,`+field+`}`); status != http.StatusOK {
			t.Errorf("%s: status %d: %s", field, status, raw)
		}
	}
}

func TestWhatCannotBeAnsweredIsRefused(t *testing.T) {
	m := open(t, "a")
	server := start(t, m, 1)
	for body, want := range map[string]string{
		`{`:                                                         "not JSON",
		`{"prompt":"a","max_tokens":"x"}`:                           "max_tokens must not be a string",
		`{"prompt":"a","max_tokens":1e30}`:                          "max_tokens must not be a number",
		`[]`:                                                        "it is a list",
		`{"prompt":"a","model":"gpt-4"}`:                            "no model",
		`{"prompt":"a","n":-1}`:                                     "n: -1",
		`{"prompt":"a","n":65}`:                                     "n: 65 answers",
		`{"prompt":["a","b"],"n":33}`:                               "each of 2 prompts",
		`{"prompt":"a","logprobs":30}`:                              "logprobs: 30",
		`{"prompt":"a","logprobs":true}`:                            "logprobs: not a number",
		`{"prompt":"a","top_logprobs":3}`:                           "set logprobs too",
		`{"prompt":"a","best_of":3,"n":2}`:                          "best_of",
		`{"prompt":"a","best_of":3}`:                                "best_of",
		`{"prompt":"a","suffix":"b"}`:                               "suffix",
		`{"prompt":"a","logit_bias":{"5":1}}`:                       "logit_bias",
		`{"prompt":"a","presence_penalty":1}`:                       "presence_penalty",
		`{"prompt":"a","frequency_penalty":1}`:                      "frequency_penalty",
		`{"prompt":[[1],[1000]]}`:                                   "vocabulary",
		`{"prompt":[[1],"b"]}`:                                      "prompt: neither",
		`{}`:                                                        "prompt",
		`{"prompt":[]}`:                                             "empty",
		`{"prompt":[1000]}`:                                         "vocabulary",
		`{"prompt":"` + strings.Repeat("a", 64) + `"}`:              "no room",
		`{"prompt":"` + strings.Repeat("a", bodyMax-20) + `"}`:      "no room",
		`{"prompt":["` + strings.Repeat(`","`, 64) + `"]}`:          "65 prompts",
		`{"prompt":[` + strings.Repeat(`1,`, 64) + `1]}`:            "no room",
		`{"prompt":"a","max_tokens":0}`:                             "at least 1",
		`{"prompt":"a","temperature":-1}`:                           "temperature",
		`{"prompt":"a","top_p":2}`:                                  "top_p",
		`{"prompt":"a","top_k":-2}`:                                 "top_k",
		`{"prompt":"a","stop":[""]}`:                                "stop",
		`{"prompt":"a","stop":7}`:                                   "stop",
		`{"prompt":"a","stop":["a","b","c","d","e"]}`:               "5 texts",
		`{"messages":[{"role":"user","content":"a"}],"echo":true}`:  "echo",
		`{"messages":[{"role":"user","content":"a"}],"logprobs":2}`: "logprobs: neither",
		`{"messages":[]}`:                                           "messages: want a list",
		`{"messages":[{"role":"x","content":"a"}]}`:                 "role",
		`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{}}]}]}`:                                      "part that is not text",
		`{"messages":[{"role":"user","content":"` + strings.Repeat("a", 64) + `"}]}`:                                          "messages: the conversation fills",
		`{"messages":[{"role":"user","content":"a"}],"tool_choice":"required"}`:                                               "tool_choice",
		`{"messages":[{"role":"user","content":"a"}],"response_format":{"type":"json_object"}}`:                               "response_format",
		`{"messages":[{"role":"user","content":"a"}],"response_format":{"type":"json_schema","json_schema":{"name":"text"}}}`: "response_format",
		`{"messages":[{"role":"user","content":"a"}],"tools":{}}`:                                                             "tools",
	} {
		c, status, _ := post(t, server, body)
		if status < 400 || status >= 500 || !strings.Contains(c.Error.Message, want) {
			t.Errorf("%.200s: status %d, %q, want %q in it", body, status, c.Error.Message, want)
		}
	}
	r, err := http.Post(server.URL+"/v1/completions", "text/plain", strings.NewReader(`{"prompt":"a"}`))
	if err != nil || r.StatusCode != http.StatusUnsupportedMediaType {
		t.Errorf("a page of another origin is answered: %v, %v", r.Status, err)
	}
	r.Body.Close()
	if c, _, _ := post(t, server, `{"prompt":"a","max_tokens":10000,"seed":3}`); c.Usage["total_tokens"] > m.config.Context {
		t.Errorf("an answer of %v tokens outgrows the context", c.Usage)
	}
	one, _, _ := post(t, server, `{"prompt":[84,104],"seed":3}`)
	for _, prompt := range []string{`"Th"`, `["Th"]`, `[[84,104]]`} { // a list may have one prompt
		if c, status, _ := post(t, server, `{"prompt":`+prompt+`,"seed":3}`); status != 200 || fmt.Sprint(*c.Choices[0].Receipt) != fmt.Sprint(*one.Choices[0].Receipt) {
			t.Errorf("prompt %s: status %d, %+v", prompt, status, c)
		}
	}
	for path, want := range map[string]int{"/v1/models": 200, "/v1/models/tiny": 200, "/v1/models/x": 404, "/": 404, "/v1/embeddings": 404} {
		r, err := http.Get(server.URL + path)
		if err != nil || r.StatusCode != want {
			t.Errorf("%s: %v, %v", path, r.Status, err)
		}
		r.Body.Close()
	}
}

// What is streamed is never taken back: neither the beginning of a stop nor a part of a character.
func TestWhatIsCertain(t *testing.T) {
	for _, c := range []struct {
		text  string
		stops []string
		want  int
	}{
		{"abc", nil, 3}, {"abc", []string{"cd"}, 2}, {"abc", []string{"bcd", "cx"}, 1}, {"ab\xc3", nil, 2}, {"ab\xe2\x82", nil, 2},
		{"abé", nil, 4}, {"ab\xff", nil, 3}, {"", []string{"a"}, 0}, {"xé", []string{"éa"}, 1},
	} {
		if got := certain([]byte(c.text), c.stops); got != c.want {
			t.Errorf("%q with stops %q: %d, want %d", c.text, c.stops, got, c.want)
		}
	}
}

// pythonClient is what the official client does with a server.
const pythonClient = `
import json, sys
from openai import OpenAI, BadRequestError
client = OpenAI(base_url=sys.argv[1] + "/v1", api_key="none", max_retries=0)
assert [m.id for m in client.models.list()] == ["tiny"]
whole = client.completions.create(model="tiny", prompt="The rays", max_tokens=20, seed=5, temperature=0.5)
assert whole.choices[0].finish_reason in ("stop", "length") and whole.usage.total_tokens > 8
parts = list(client.completions.create(model="tiny", prompt="The rays", max_tokens=20, seed=5, temperature=0.5, stream=True, stream_options={"include_usage": True}))
assert parts[-1].usage.total_tokens == whole.usage.total_tokens
streamed = [p for p in parts if p.choices]
assert streamed[-1].choices[0].model_extra["receipt"] == whole.choices[0].model_extra["receipt"]
talk = dict(model="tiny", messages=[{"role": "system", "content": "Be brief."}, {"role": "user", "content": [{"type": "text", "text": "Light?"}]}], max_completion_tokens=9, seed=2)
said = client.chat.completions.create(**talk)
assert said.object == "chat.completion" and said.choices[0].message.role == "assistant" and said.usage.completion_tokens <= 9
assert bytes(said.choices[0].model_extra["receipt"]["prompt"]).decode() == "s:Be brief.;u:Light?;a:"
parts = list(client.chat.completions.create(stream=True, **talk))
assert "".join(p.choices[0].delta.content for p in parts).replace("\ufffd", "") == said.choices[0].message.content.replace("\ufffd", "")
assert parts[-1].choices[0].finish_reason == said.choices[0].finish_reason and parts[-1].choices[0].model_extra["receipt"] == said.choices[0].model_extra["receipt"]
print(json.dumps(said.choices[0].model_extra["receipt"]))
try:
    client.completions.create(model="tiny", prompt="a", best_of=2)
    raise SystemExit("best_of=2 was accepted")
except BadRequestError as e:
    assert e.param == "best_of", e
print(json.dumps(whole.choices[0].model_extra["receipt"]))

# Two answers to each of two prompts, whole and streamed; likelihoods, of a chat too.
many = dict(model="tiny", prompt=["The rays", "Of light"], n=2, max_tokens=8, seed=5, temperature=0.5, echo=True, logprobs=2)
all = client.completions.create(**many)
assert [c.index for c in all.choices] == [0, 1, 2, 3] and len({c.text for c in all.choices}) == 4
assert all.choices[1].text.startswith("The rays") and all.choices[2].text.startswith("Of light")
texts, scored = [""] * 4, [0] * 4
for part in client.completions.create(stream=True, **many):
    for c in part.choices:
        texts[c.index] += c.text
        scored[c.index] += len(c.logprobs.tokens)
for c in all.choices:
    l = c.logprobs
    assert len(l.tokens) == len(l.token_logprobs) == len(l.top_logprobs) == len(l.text_offset) == scored[c.index], c
    assert texts[c.index].replace("\ufffd", "") == c.text.replace("\ufffd", "")
    assert l.token_logprobs[0] is None and l.top_logprobs[0] is None and l.text_offset[:3] == [0, 1, 2] and "".join(l.tokens).startswith(c.text[:8])
    for k, own, top in zip(l.tokens[1:], l.token_logprobs[1:], l.top_logprobs[1:]):
        assert top[k] == own and 2 <= len(top) <= 3
    print(json.dumps(c.model_extra["receipt"]))
said = client.chat.completions.create(logprobs=True, top_logprobs=3, n=2, **talk)
for c in said.choices:
    assert len(c.logprobs.content) == len(c.model_extra["receipt"]["answer"])
    for token in c.logprobs.content:
        assert len(token.top_logprobs) == 3 and token.logprob <= token.top_logprobs[0].logprob
none = client.completions.create(model="tiny", prompt=[84, 104], max_tokens=0, echo=True, logprobs=0)
assert none.choices[0].text == "Th" and len(none.choices[0].logprobs.tokens) == 2 and none.usage.completion_tokens == 0
`

func TestTheOfficialClientIsServed(t *testing.T) {
	if err := exec.Command("python3", "-c", "import importlib.util as u; assert u.find_spec('openai')").Run(); err != nil {
		t.Skip("no python3 with openai in PATH: .ci/run installs one")
	}
	m := open(t, "a")
	out, err := exec.Command("python3", "-c", pythonClient, start(t, m, 1).URL).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	if len(lines) != 6 {
		t.Fatalf("it printed %s", out)
	}
	for _, line := range lines {
		list, err := parseReceipts(line)
		if err == nil {
			_, err = m.Verify(t.Context(), list[0])
		}
		if err != nil {
			t.Errorf("the receipt %s that the client got: %v", line, err)
		}
	}
}

// Whatever a request asks, it is answered or refused with a status that says so, and an answer has no more tokens than were asked for.
func FuzzRequest(f *testing.F) {
	for _, body := range []string{
		`{"prompt":"ab","max_tokens":2,"seed":1,"temperature":0.5,"top_p":0.9,"top_k":3,"stop":["a","b"],"stream":true,"stream_options":{"include_usage":true}}`,
		`{"prompt":[1,2],"max_tokens":1,"n":2,"logprobs":2,"logit_bias":{},"user":"u"}`, `{"prompt":[[1,2]],"max_tokens":-1}`, `{"prompt":["a","b"]}`,
		`{"messages":[{"role":"user","content":"hi"},{"role":"user","content":[{"type":"text","text":"x"}]}],"max_completion_tokens":2,"tools":[]}`, `{"messages":null}`, `[`,
	} {
		f.Add([]byte(body))
	}
	server, err := NewServer(open(f, "fuzz"), 1, 0, true)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(server.batch.close)
	handler := server.Handler()
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, path := range []string{"/v1/completions", "/v1/chat/completions"} {
			r := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			switch w.Code {
			case http.StatusOK, http.StatusBadRequest, http.StatusNotFound:
			default:
				t.Errorf("%s of %s is answered by %d: %s", path, body, w.Code, w.Body)
			}
			var c completion
			if json.Unmarshal(w.Body.Bytes(), &c) != nil {
				continue // a stream
			}
			for _, v := range c.Choices {
				if v.Receipt != nil && len(v.Receipt.Tokens) > v.Receipt.Most {
					t.Errorf("%s: %d tokens are an answer to %s", path, len(v.Receipt.Tokens), body)
				}
			}
		}
	})
}

func FuzzReceipt(f *testing.F) {
	f.Add([]byte(`{"receipt":"entrain/answer/1","model":"","tokenizer":"","numerics":"exact","prompt":[1],"max_tokens":1,"answer":[1],"end":"stop"}`))
	f.Add([]byte(`{"choices":[{"receipt":{"receipt":"entrain/answer/1","stop":["a"]}}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := parseReceipts(b)
		if err != nil {
			return
		}
		r := list[0]
		text, err := json.Marshal(r)
		if err != nil {
			t.Skip("JSON has no such number, so no receipt can")
		}
		again, err := parseReceipts(text)
		if err != nil || len(again) != 1 || fmt.Sprint(again[0]) != fmt.Sprint(r) {
			t.Fatalf("%s is read back as %+v, %v", text, again, err)
		}
	})
}
