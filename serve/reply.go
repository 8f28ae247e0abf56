package serve

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// A reply is the answers to a request on their way to who asked.
type reply struct {
	server   *Server
	asked    *request
	converse bool
	scoring  scoring
	list     []wanted
	client   *http.ResponseController
	w        http.ResponseWriter
	id       [12]byte

	mu    sync.Mutex // guards what follows, and w in a stream
	begun bool
	usage struct{ prompt, completion int }
}

// whole writes the answers at once.
func (p *reply) whole(jobs []*job) {
	choices := make([]any, len(jobs))
	for i, j := range jobs {
		a, err := j.wait(nil)
		if err != nil {
			_ = p.client.SetWriteDeadline(time.Now().Add(writeMost))
			writeFailure(p.w, err)
			return
		}
		p.count(i, &a)
		choices[i] = p.last(i, p.list[i].echo+strings.ToValidUTF8(string(a.text), "\uFFFD"), a.scored, a)
	}
	_ = p.client.SetWriteDeadline(time.Now().Add(writeMost))
	answer := p.part(choices...)
	answer["usage"] = p.used()
	writeJSON(p.w, http.StatusOK, answer)
}

// stream writes the answers as they are made, one beside the other.
func (p *reply) stream(jobs []*job, cancel func()) {
	var all sync.WaitGroup
	errs := make([]error, len(jobs))
	for i, j := range jobs {
		all.Go(func() {
			if errs[i] = p.streamOne(i, j); errs[i] != nil {
				cancel()
			}
		})
	}
	all.Wait()
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil && !errors.Is(err, context.Canceled) }); i >= 0 {
		if !p.begun {
			writeFailure(p.w, errs[i])
		} else {
			_ = p.send(errorJSON(statusOf(errs[i]), "", errs[i]))
		}
		return
	}
	if errors.Join(errs...) != nil {
		return // nobody listens
	}
	if p.asked.Options != nil && p.asked.Options.Usage {
		total := p.part()
		total["usage"] = p.used()
		if err := p.send(total); err != nil {
			return
		}
	}
	_, _ = io.WriteString(p.w, "data: [DONE]\n\n")
}

// streamOne writes answer i as it is made.
func (p *reply) streamOne(i int, j *job) error {
	first := p.list[i].echo
	emit := func(text []byte, scores []scored) error {
		said := first + strings.ToValidUTF8(string(text), "\uFFFD")
		first = ""
		return p.send(p.part(p.choice(i, said, scores, nil)))
	}
	if p.asked.silent() {
		emit = nil
	}
	a, err := j.wait(emit)
	if err != nil {
		return err
	}
	p.count(i, &a)
	return p.send(p.part(p.last(i, first, a.untold, a)))
}

// send writes an event of a stream.
func (p *reply) send(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.client.SetWriteDeadline(time.Now().Add(writeMost))
	if !p.begun {
		p.begun = true
		p.w.Header().Set("Content-Type", "text/event-stream")
		p.w.Header().Set("Cache-Control", "no-store")
	}
	if _, err := fmt.Fprintf(p.w, "data: %s\n\n", b); err != nil {
		return err
	}
	return p.client.Flush()
}

// count adds answer i to what was used. If r asks for its prompts alone, it takes the answer away.
func (p *reply) count(i int, a *answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked.silent() {
		a.text, a.Tokens, a.End = nil, nil, endLength
		a.scored = a.scored[:max(0, len(a.scored)-1)]
		a.untold = a.scored
	}
	if i == 0 || p.list[i].prompt != p.list[i-1].prompt {
		p.usage.prompt += len(p.list[i].Prompt)
	}
	p.usage.completion += len(a.Tokens)
}

// used returns the field usage.
func (p *reply) used() map[string]int {
	u := p.usage
	return map[string]int{"prompt_tokens": u.prompt, "completion_tokens": u.completion, "total_tokens": u.prompt + u.completion}
}

// part returns a completion, or a chunk of one, with these choices.
func (p *reply) part(choices ...any) map[string]any {
	object, id := "text_completion", "cmpl-"
	if p.converse {
		object, id = "chat.completion", "chatcmpl-"
		if p.asked.Stream {
			object += ".chunk"
		}
	}
	if choices == nil {
		choices = []any{}
	}
	return map[string]any{"id": id + hex.EncodeToString(p.id[:]), "object": object, "created": time.Now().Unix(), "model": p.server.Model.Name, "choices": choices}
}

// last returns a choice of which no more comes.
func (p *reply) last(i int, text string, scores []scored, a answer) map[string]any {
	choice := p.choice(i, text, scores, a.End)
	if p.server.Receipts && len(a.Tokens) > 0 {
		choice["receipt"] = p.server.Model.receipt(p.list[i].Question, a)
	}
	return choice
}

// choice returns answer i, or a part of it.
func (p *reply) choice(i int, text string, scores []scored, end any) map[string]any {
	choice := map[string]any{"index": i, "logprobs": nil, "finish_reason": end}
	message := map[string]any{"role": "assistant", "content": text}
	switch {
	case !p.converse:
		choice["text"] = text
	case p.asked.Stream:
		choice["delta"] = message
	default:
		choice["message"] = message
	}
	switch {
	case p.scoring.on && p.converse:
		choice["logprobs"] = p.server.Model.chatLikelihoods(scores)
	case p.scoring.on:
		choice["logprobs"] = p.server.Model.likelihoods(scores)
	}
	return choice
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
