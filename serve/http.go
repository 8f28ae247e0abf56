package serve

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/entrain-network/entrain/httpserve"
	"github.com/entrain-network/entrain/tokenizer"
	"github.com/entrain-network/entrain/tokenizer/chat"
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
	reading *httpserve.Places // of requests that are under way
	parsing chan struct{}     // has an element for each whose prompts are being made tokens
	started time.Time
}

const (
	bodyMax = 4 << 20 // bytes of a request
	// requestsMost bounds those that are read, wait or are answered, half of them of one address.
	requestsMost = 256
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
	s := &Server{Model: m, Receipts: receipts, batch: newBatcher(m, parallel, memory), reading: httpserve.NewPlaces(requestsMost, requestsMost/2), parsing: make(chan struct{}, runtime.GOMAXPROCS(0)), started: time.Now()}
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
		Handler: httpserve.LocalOnly(s.Handler(), l.Addr()), ReadTimeout: time.Minute, WriteTimeout: writeMost,
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

// A wanted is an answer that a request asks for.
type wanted struct {
	Question
	prompt int    // its number
	echo   string // text before the answer
}

// questions returns what r asks, in a conversation or not, and what is to be scored.
func (s *Server) questions(r *request, converse bool) (list []wanted, score scoring, err error) {
	q, err := r.settings()
	if err != nil {
		return nil, score, err
	}
	if score, err = r.scoring(converse); err != nil {
		return nil, score, err
	}
	var prompts []wanted
	if !converse {
		prompts, err = s.prompts(r, q)
	} else if q.Prompt, err = s.Model.converse(r.Conversation, time.Now()); err == nil {
		if end := s.Model.format.End(); end != "" {
			q.Stop = append(q.Stop, end)
		}
		if r.MaxTokens == nil && r.MaxAnswer == nil {
			q.Most = max(1, s.Tokens()-len(q.Prompt)) // as there is memory for
		}
		prompts = []wanted{{Question: q}}
	}
	if errors.Is(err, ErrTooLong) {
		err = fmt.Errorf("messages: %w", err)
	}
	if err != nil {
		return nil, score, err
	}
	n := r.answers()
	if n < 1 || n > askedMost/max(1, len(prompts)) {
		return nil, score, fmt.Errorf("n: %d answers to each of %d prompts: want 1 to %d in all", n, len(prompts), askedMost)
	}
	for _, p := range prompts {
		if p.Seed, err = r.seed(0); err != nil {
			return nil, score, err
		}
		if err := s.Model.check(p.Question); err != nil {
			return nil, score, err
		}
		if most := len(p.Prompt) + min(p.Most, s.Model.config.Context-len(p.Prompt)); most > s.Tokens() {
			return nil, score, fmt.Errorf("max_tokens: a prompt of %d tokens and an answer of %d are more than the %d that this server has memory for", len(p.Prompt), p.Most, s.Tokens())
		}
		list = append(list, p)
		for k := 1; k < n; k++ {
			if p.Seed, err = r.seed(k); err != nil {
				return nil, score, err
			}
			list = append(list, p)
		}
	}
	return list, score, nil
}

// prompts returns q for each prompt of r, a text or tokens or a list of either.
func (s *Server) prompts(r *request, q Question) (list []wanted, err error) {
	var one string
	var tokens []uint32
	var texts []string
	var lists [][]uint32
	switch {
	case json.Unmarshal(r.Prompt, &one) == nil:
		texts = []string{one}
	case json.Unmarshal(r.Prompt, &tokens) == nil:
		lists = [][]uint32{tokens}
	case json.Unmarshal(r.Prompt, &texts) == nil:
	case json.Unmarshal(r.Prompt, &lists) == nil:
		texts = nil
	default:
		return nil, errors.New("prompt: neither a text, nor tokens, nor a list of either")
	}
	if n := len(texts) + len(lists); n > askedMost {
		return nil, fmt.Errorf("prompt: %d prompts are more than %d", n, askedMost)
	}
	for _, text := range texts {
		if q.Prompt, err = s.Model.encode(text); err != nil {
			return nil, err
		}
		list = append(list, wanted{q, len(list), text})
	}
	for _, tokens := range lists {
		q.Prompt = tokens
		list = append(list, wanted{q, len(list), s.Model.echo(tokens[:min(len(tokens), s.Model.config.Context)])})
	}
	for i := range list {
		if !r.Echo {
			list[i].echo = ""
		}
	}
	return list, nil
}

// echo returns the text of a prompt of tokens.
func (m *Model) echo(tokens []uint32) string {
	var text []byte
	for _, t := range tokens {
		said, _ := m.tokenText(t)
		text = append(text, said...)
	}
	return strings.ToValidUTF8(string(text), "\uFFFD")
}

// converse returns the tokens that ask for the next message of a conversation, or ErrTooLong.
func (m *Model) converse(c chat.Conversation, now time.Time) ([]uint32, error) {
	if m.format == nil {
		return nil, m.noChat
	}
	ids, err := m.format.Prompt(c, now, m.config.Context-1)
	if errors.Is(err, chat.ErrLong) {
		err = fmt.Errorf("%w of %d tokens", ErrTooLong, m.config.Context)
	}
	return ids, err
}

// encode returns the tokens of a prompt, which begins as texts of the model do.
func (m *Model) encode(text string) ([]uint32, error) {
	var ids []uint32
	if begin, ok := tokenizer.Begin(m.words); ok {
		ids = append(ids, begin)
	}
	ids, ok := tokenizer.EncodeBounded(m.words, ids, text, m.config.Context-1)
	if !ok {
		return nil, fmt.Errorf("prompt: it leaves no room in the model's context of %d tokens", m.config.Context)
	}
	if len(ids) == 0 {
		ids = append(ids, m.words.End())
	}
	return ids, nil
}

// completions answers POST /v1/completions and /v1/chat/completions.
func (s *Server) completions(w http.ResponseWriter, r *http.Request) {
	// A page of another origin can post any other type without asking.
	if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); strings.TrimSpace(kind) != "application/json" {
		writeError(w, http.StatusUnsupportedMediaType, "", errors.New("Content-Type must be application/json; curl sends it with -H 'Content-Type: application/json'"))
		return
	}
	from := httpserve.Stranger(r.RemoteAddr)
	if !s.reading.Take(from) {
		writeError(w, http.StatusTooManyRequests, "", errBusy)
		return
	}
	defer s.reading.Give(from)
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyMax))
	if err != nil {
		writeError(w, http.StatusRequestEntityTooLarge, "", fmt.Errorf("the request could not be read, or has more than %d bytes", bodyMax))
		return
	}
	converse := r.URL.Path != "/v1/completions"
	asked, list, score, ok := s.parse(w, body, converse)
	if !ok {
		return
	}
	body, asked.Prompt, asked.Messages = nil, nil, nil // the answers may take long
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel() // none goes on without the others
	questions := make([]Question, len(list))
	for i := range list {
		questions[i] = list[i].Question
	}
	jobs, err := s.batch.ask(ctx, score, questions...)
	if err != nil {
		writeFailure(w, err)
		return
	}
	p := &reply{server: s, asked: asked, converse: converse, scoring: score, list: list, client: http.NewResponseController(w), w: w}
	_, _ = rand.Read(p.id[:])
	if asked.Stream {
		p.stream(jobs, cancel)
	} else {
		p.whole(jobs)
	}
}

// parse reads a request, or answers why it is refused and returns false.
func (s *Server) parse(w http.ResponseWriter, body []byte, converse bool) (asked *request, list []wanted, score scoring, ok bool) {
	s.parsing <- struct{}{} // it takes several times the memory of the body
	defer func() { <-s.parsing }()
	asked = new(request)
	if err := json.Unmarshal(body, asked); err != nil {
		param, reason := "", err.Error()
		if of, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			what := strings.ReplaceAll(of.Value, "array", "list")
			if param, reason = of.Field, "it is a "+what; param != "" {
				reason = param + " must not be a " + what
			}
		}
		writeError(w, http.StatusBadRequest, param, fmt.Errorf("the request is not JSON of a completion: %s", reason))
		return nil, nil, score, false
	}
	if name := asked.unknown(body); name != "" {
		writeError(w, http.StatusBadRequest, name, fmt.Errorf("%s: not supported here: leave it out", name))
		return nil, nil, score, false
	}
	if asked.Model != "" && asked.Model != s.Model.Name {
		writeError(w, http.StatusNotFound, "model", s.noModel(asked.Model))
		return nil, nil, score, false
	}
	list, score, err := s.questions(asked, converse)
	if err != nil {
		param, _, ok := strings.Cut(err.Error(), ":")
		if !ok || strings.Contains(param, " ") {
			param = ""
		}
		writeError(w, http.StatusBadRequest, param, err)
		return nil, nil, score, false
	}
	return asked, list, score, true
}
