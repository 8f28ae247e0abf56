package serve

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/entrain-network/entrain/httpserve"
	"github.com/entrain-network/entrain/tokenizer"
	"github.com/entrain-network/entrain/tokenizer/chat"
	"github.com/entrain-network/entrain/wire"
)

// Server answers requests of OpenAI's API with a model:
//
//	GET  /v1/models        the model's name
//	POST /v1/completions   a text that is continued, whole or streamed
//	POST /v1/chat/completions   a conversation, likewise
//
// What a request asks beyond what is known is refused and named, so that no answer silently ignores
// a part of the question.
type Server struct {
	Model    *Model
	Receipts bool // attach a Receipt to every answer

	batch   *batcher
	reading chan struct{} // has an element for each request that is under way
	started time.Time
}

const (
	bodyMax      = 4 << 20 // bytes of a request
	requestsMost = 256     // requests that are read, wait or are answered; more are refused
	tokensUsual  = 16      // max_tokens where a request says none, as in OpenAI's API
	stopsAsked   = 4
	retryAfter   = "1" // seconds, for clients that are told to come again
	// writeMost is the longest time in which a client must take what it is sent. An answer does not
	// wait for its client, so a slow one costs memory alone.
	writeMost = 30 * time.Second
	// drainMost is how long answers under way go on when the server ends.
	drainMost = 30 * time.Second
)

// NewServer returns a server that computes up to parallel answers at the same time, at least one.
// Their keys and values take at most the given bytes of memory; 0 means those of as many full
// contexts.
func NewServer(m *Model, parallel int, memory int64, receipts bool) (*Server, error) {
	s := &Server{Model: m, Receipts: receipts, batch: newBatcher(m, parallel, memory), reading: make(chan struct{}, requestsMost), started: time.Now()}
	if s.batch.room() < 2 {
		return nil, fmt.Errorf("%d bytes are not enough memory for an answer: %d tokens of the model's context take %d", memory, m.config.Context, m.config.TextBytes(m.config.Context))
	}
	return s, nil
}

// Tokens returns the most tokens of a question and its answer: the model's context, or what there
// is memory for.
func (s *Server) Tokens() int { return s.batch.room() }

// Serve answers requests on l until ctx ends. Then it takes no more, and finishes the answers under
// way within half a minute.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	defer context.AfterFunc(ctx, s.batch.close)()
	server := &http.Server{
		Handler: s.Handler(), ReadTimeout: time.Minute, WriteTimeout: writeMost,
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	return httpserve.Run(ctx, l, server, drainMost)
}

// Handler returns the server's handler.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": []any{s.described()}})
	})
	mux.HandleFunc("GET /v1/models/{name...}", func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("name") != s.Model.Name {
			writeError(w, http.StatusNotFound, "model", s.noModel(r.PathValue("name")))
			return
		}
		writeJSON(w, http.StatusOK, s.described())
	})
	mux.HandleFunc("POST /v1/completions", s.completions)
	mux.HandleFunc("POST /v1/chat/completions", s.completions)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeError(w, http.StatusNotFound, "", fmt.Errorf("%s %.80s: this server has GET /v1/models, POST /v1/completions and POST /v1/chat/completions", r.Method, r.URL.Path))
	})
	return mux
}

// described is the model as /v1/models lists it.
func (s *Server) described() map[string]any {
	return map[string]any{"id": s.Model.Name, "object": "model", "created": s.started.Unix(), "owned_by": "entrain"}
}

func (s *Server) noModel(name string) error {
	return fmt.Errorf("there is no model %.80q here, only %q", name, s.Model.Name)
}

// request is the body of POST /v1/completions and /v1/chat/completions. Fields of OpenAI's API that
// would change the answer and are not known are refused unless they have the value that changes
// nothing.
type request struct {
	Model             string          `json:"model"`
	Prompt            json.RawMessage `json:"prompt"` // text, tokens, or a list with one of these
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

	N        *int            `json:"n"`
	BestOf   *int            `json:"best_of"`
	Echo     bool            `json:"echo"`
	Logprobs json.RawMessage `json:"logprobs"`
	Suffix   *string         `json:"suffix"`
	Bias     map[string]any  `json:"logit_bias"`
	Presence float64         `json:"presence_penalty"`
	Frequent float64         `json:"frequency_penalty"`
	User     string          `json:"user"` // ignored

	Choice    json.RawMessage `json:"tool_choice"`
	Format    json.RawMessage `json:"response_format"`
	Functions json.RawMessage `json:"functions"`
}

// unknown returns the name of what r asks that no answer can have, or "".
func (r *request) unknown() string {
	logprobs, asked := string(r.Logprobs), func(v json.RawMessage, usual string) bool {
		return len(v) > 0 && string(v) != "null" && string(v) != usual
	}
	switch {
	case asked(r.Choice, `"auto"`):
		return "tool_choice"
	case asked(r.Format, "") && !strings.Contains(string(r.Format), `"text"`):
		return "response_format"
	case asked(r.Functions, "[]"):
		return "functions"
	case r.N != nil && *r.N != 1:
		return "n"
	case r.BestOf != nil && *r.BestOf != 1:
		return "best_of"
	case r.Echo:
		return "echo"
	case logprobs != "" && logprobs != "null" && logprobs != "false":
		return "logprobs"
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

// question returns what r asks, in a conversation or not.
func (s *Server) question(r *request, converse bool) (Question, error) {
	q := Question{Most: tokensUsual, Temperature: 1, TopP: 1, TopK: r.TopK, Stop: []string{}}
	for _, most := range []*int{r.MaxTokens, r.MaxAnswer} {
		if most != nil {
			q.Most = *most
		}
	}
	if r.Temperature != nil {
		q.Temperature = *r.Temperature
	}
	if r.TopP != nil {
		q.TopP = *r.TopP
	}
	var seed wire.Hash
	if r.Seed != nil {
		seed = wire.Sum("entrain/serve/seed", []byte(strconv.FormatInt(*r.Seed, 10)))
	} else if _, err := rand.Read(seed[:]); err != nil {
		return q, err
	}
	q.Seed = hex.EncodeToString(seed[:])
	var one string
	if len(r.Stop) > 0 && string(r.Stop) != "null" {
		if json.Unmarshal(r.Stop, &one) == nil {
			q.Stop = append(q.Stop, one)
		} else if err := json.Unmarshal(r.Stop, &q.Stop); err != nil {
			return q, errors.New("stop: neither a text nor a list of texts")
		}
	}
	if len(q.Stop) > stopsAsked {
		return q, fmt.Errorf("stop: %d texts are more than %d", len(q.Stop), stopsAsked)
	}
	var texts []string
	var lists [][]uint32
	switch {
	case converse:
		var err error
		if q.Prompt, err = s.Model.converse(r.Conversation, time.Now()); err != nil {
			return q, err
		}
		if end := s.Model.format.End(); end != "" {
			q.Stop = append(q.Stop, end)
		}
	case json.Unmarshal(r.Prompt, &one) == nil:
		q.Prompt = s.Model.encode(one)
	case json.Unmarshal(r.Prompt, &q.Prompt) == nil:
	case json.Unmarshal(r.Prompt, &texts) == nil && len(texts) == 1:
		q.Prompt = s.Model.encode(texts[0])
	case json.Unmarshal(r.Prompt, &lists) == nil && len(lists) == 1:
		q.Prompt = lists[0]
	default:
		return q, errors.New("prompt: neither one text nor one list of tokens")
	}
	if converse && r.MaxTokens == nil && r.MaxAnswer == nil {
		q.Most = max(1, s.Tokens()-len(q.Prompt)) // as there is memory for
	}
	if err := s.Model.check(q); err != nil {
		return q, err
	}
	if most := len(q.Prompt) + min(q.Most, s.Model.config.Context-len(q.Prompt)); most > s.Tokens() {
		return q, fmt.Errorf("max_tokens: a prompt of %d tokens and an answer of %d are more than the %d that this server has memory for", len(q.Prompt), q.Most, s.Tokens())
	}
	return q, nil
}

// converse returns the tokens that ask for the next message of a conversation.
func (m *Model) converse(c chat.Conversation, now time.Time) ([]uint32, error) {
	if m.format == nil {
		return nil, m.noChat
	}
	return m.format.Prompt(c, now)
}

// encode returns the tokens of a prompt, which begins as texts of the model do.
func (m *Model) encode(text string) []uint32 {
	var ids []uint32
	if begin, ok := tokenizer.Begin(m.words); ok {
		ids = append(ids, begin)
	}
	ids = m.words.Encode(ids, []byte(text))
	if len(ids) == 0 {
		ids = append(ids, m.words.End())
	}
	return ids
}

// completions answers POST /v1/completions and /v1/chat/completions.
func (s *Server) completions(w http.ResponseWriter, r *http.Request) {
	// A page of another origin can post any other type without asking.
	if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); strings.TrimSpace(kind) != "application/json" {
		writeError(w, http.StatusUnsupportedMediaType, "", errors.New("Content-Type must be application/json"))
		return
	}
	select {
	case s.reading <- struct{}{}:
		defer func() { <-s.reading }()
	default:
		writeError(w, http.StatusTooManyRequests, "", errBusy)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyMax))
	if err != nil {
		writeError(w, http.StatusRequestEntityTooLarge, "", fmt.Errorf("the request could not be read, or has more than %d bytes", bodyMax))
		return
	}
	var asked request
	if err := json.Unmarshal(body, &asked); err != nil {
		param, reason := "", err.Error()
		if of, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			what := strings.ReplaceAll(of.Value, "array", "list")
			if param, reason = of.Field, "it is a "+what; param != "" {
				reason = param + " must not be a " + what
			}
		}
		writeError(w, http.StatusBadRequest, param, fmt.Errorf("the request is no JSON of a completion: %s", reason))
		return
	}
	if name := asked.unknown(); name != "" {
		writeError(w, http.StatusBadRequest, name, fmt.Errorf("%s: not supported here: leave it out", name))
		return
	}
	if asked.Model != "" && asked.Model != s.Model.Name {
		writeError(w, http.StatusNotFound, "model", s.noModel(asked.Model))
		return
	}
	converse := r.URL.Path != "/v1/completions"
	q, err := s.question(&asked, converse)
	if err != nil {
		param, _, ok := strings.Cut(err.Error(), ":")
		if !ok || strings.Contains(param, " ") {
			param = ""
		}
		writeError(w, http.StatusBadRequest, param, err)
		return
	}
	body, asked.Prompt, asked.Messages = nil, nil, nil // the answer may take long
	j, err := s.batch.ask(r.Context(), q)
	if err != nil {
		writeFailure(w, err)
		return
	}
	s.reply(w, j, &asked, converse)
}

// reply writes an answer, whole or as a stream.
func (s *Server) reply(w http.ResponseWriter, j *job, asked *request, converse bool) {
	part := s.parts(asked, converse)
	q := j.answer.q
	usage := func(a answer) map[string]any {
		return map[string]any{"prompt_tokens": len(q.Prompt), "completion_tokens": len(a.Tokens), "total_tokens": len(q.Prompt) + len(a.Tokens)}
	}
	client := http.NewResponseController(w)
	if !asked.Stream {
		a, err := j.wait(nil)
		_ = client.SetWriteDeadline(time.Now().Add(writeMost))
		if err != nil {
			writeFailure(w, err)
			return
		}
		whole := part(strings.ToValidUTF8(string(a.text), "\uFFFD"), a.End)
		whole["usage"] = usage(a)
		if s.Receipts {
			whole["receipt"] = s.Model.receipt(q, a)
		}
		writeJSON(w, http.StatusOK, whole)
		return
	}
	begun := false
	send := func(v any) error {
		b, err := json.Marshal(v)
		if err != nil {
			return err
		}
		_ = client.SetWriteDeadline(time.Now().Add(writeMost))
		if !begun {
			begun = true
			w.Header().Set("Content-Type", "text/event-stream")
			w.Header().Set("Cache-Control", "no-store")
		}
		if _, err := fmt.Fprintf(w, "data: %s\n\n", b); err != nil {
			return err
		}
		return client.Flush()
	}
	a, err := j.wait(func(text []byte) error {
		return send(part(strings.ToValidUTF8(string(text), "\uFFFD"), nil))
	})
	switch {
	case err != nil && !begun:
		writeFailure(w, err)
		return
	case err != nil:
		_ = send(errorJSON(statusOf(err), "", err))
		return
	}
	last := part("", a.End)
	if s.Receipts {
		last["receipt"] = s.Model.receipt(q, a)
	}
	if err := send(last); err != nil {
		return
	}
	if asked.Options != nil && asked.Options.Usage {
		total := part("", nil)
		total["choices"], total["usage"] = []any{}, usage(a)
		if err := send(total); err != nil {
			return
		}
	}
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
}

// parts returns a function that makes a completion, or a chunk of one, of a text.
func (s *Server) parts(asked *request, converse bool) func(text string, end any) map[string]any {
	var id [12]byte
	_, _ = rand.Read(id[:])
	return func(text string, end any) map[string]any {
		choice := map[string]any{"index": 0, "logprobs": nil, "finish_reason": end}
		answer := map[string]any{
			"id": "cmpl-" + hex.EncodeToString(id[:]), "object": "text_completion", "created": time.Now().Unix(), "model": s.Model.Name,
			"choices": []any{choice},
		}
		message := map[string]any{"role": "assistant", "content": text}
		switch {
		case !converse:
			choice["text"] = text
		case asked.Stream:
			answer["object"], choice["delta"] = "chat.completion.chunk", message
		default:
			answer["object"], choice["message"] = "chat.completion", message
		}
		return answer
	}
}

// statusOf returns the status of an answer that failed.
func statusOf(err error) int {
	switch {
	case errors.Is(err, errBusy):
		return http.StatusTooManyRequests
	case errors.Is(err, errClosed):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// errorJSON is an error as OpenAI's clients expect it. param names a field of the request, or is
// "".
func errorJSON(status int, param string, err error) map[string]any {
	e := map[string]any{"message": err.Error(), "type": "invalid_request_error", "param": nil, "code": nil}
	switch {
	case status == http.StatusTooManyRequests:
		e["type"], e["code"] = "requests", "rate_limit_exceeded"
	case status >= 500:
		e["type"] = "server_error"
	case status == http.StatusNotFound && param == "model":
		e["code"] = "model_not_found"
	}
	if param != "" {
		e["param"] = param
	}
	return map[string]any{"error": e}
}

// writeFailure writes why there is no answer.
func writeFailure(w http.ResponseWriter, err error) { writeError(w, statusOf(err), "", err) }

func writeError(w http.ResponseWriter, status int, param string, err error) {
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", retryAfter)
	}
	writeJSON(w, status, errorJSON(status, param, err))
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic("serve: an answer has no JSON: " + err.Error())
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n'))
}
