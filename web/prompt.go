package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"time"
	"unicode/utf8"

	"github.com/entrain-network/entrain/model"
)

// What a prompt may ask for.
const (
	promptBytesMax  = 4096 // of text
	promptTokensMax = 1024 // to write
	promptFor       = 2 * time.Minute
	temperatureMax  = 5
)

// checkPrompt reports what is wrong with a prompt.
func checkPrompt(p model.Prompt) error {
	switch {
	case len(p.Text) > promptBytesMax || !utf8.ValidString(p.Text):
		return fmt.Errorf("the prompt has %d bytes, at most %d of UTF-8 are taken", len(p.Text), promptBytesMax)
	case p.Tokens < 1 || p.Tokens > promptTokensMax:
		return fmt.Errorf("%d tokens to write, want 1 to %d", p.Tokens, promptTokensMax)
	case !(p.Temperature >= 0 && p.Temperature <= temperatureMax):
		return fmt.Errorf("temperature %g, want 0 to %d", p.Temperature, temperatureMax)
	case len(p.Seed) > promptBytesMax:
		return errors.New("the seed is too long")
	}
	return nil
}

// servePrompt has the model of the participant's newest checkpoint continue a prompt. It writes the
// bytes of the text as they come, for one asker at a time.
func (s *Server) servePrompt(w http.ResponseWriter, r *http.Request, _ *desk) {
	n := s.node(r.PathValue("run"))
	if n == nil || n.Generate == nil {
		fail(w, http.StatusNotFound, "this server has no model of the run: start it with --state and a participant's directory")
		return
	}
	var p model.Prompt
	in := json.NewDecoder(http.MaxBytesReader(w, r.Body, 8*promptBytesMax)) // a byte takes up to six
	in.DisallowUnknownFields()
	err := in.Decode(&p)
	if err == nil {
		err = checkPrompt(p)
	}
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	list, err := n.checkpoints()
	if err != nil || len(list) == 0 {
		fail(w, http.StatusConflict, "the participant has written no checkpoint yet: the first comes at the end of an epoch")
		return
	}
	select {
	case s.prompting <- struct{}{}:
		defer func() { <-s.prompting }()
	default:
		w.Header().Set("Retry-After", "5")
		fail(w, http.StatusServiceUnavailable, "the model is answering somebody else; try again in a moment")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), promptFor)
	defer cancel()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Entrain-Checkpoint", list[0].Name)
	out := &textStream{stream: stream{w: w, c: http.NewResponseController(w)}}
	err = n.Generate(ctx, filepath.Join(n.Checkpoints, list[0].Name), p, out)
	if err != nil && ctx.Err() == nil {
		s.o.Log.Warn("cannot continue a prompt", "err", err)
		if !out.begun {
			fail(w, http.StatusInternalServerError, err.Error())
		}
	}
}

// textStream is an answer that is sent as it is written.
type textStream struct {
	stream
	begun bool
}

// Write implements io.Writer.
func (t *textStream) Write(b []byte) (int, error) {
	t.begun = true
	t.write(string(b))
	return len(b), t.err
}
