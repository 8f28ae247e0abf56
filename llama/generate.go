package llama

import (
	"fmt"
	"slices"

	"github.com/entrain-network/entrain/exact"
)

// A Generator reads one text with a Decoder, and predicts its next token. It must not be used
// concurrently.
type Generator struct {
	decoder *Decoder
	text    Text
}

// readRows is the most tokens that a Generator reads at once.
const readRows = 32

// NewGenerator returns a Generator that has read nothing, and works on pool. params is laid out by
// cfg's Layout; the Generator does not retain it.
func NewGenerator(cfg Config, params []float32, pool *exact.Pool) (*Generator, error) {
	d, err := NewDecoder(cfg, params, pool, readRows)
	if err != nil {
		return nil, err
	}
	return &Generator{decoder: d}, nil
}

// Read appends tokens, at least one, to the text and returns the logits of the next token, which
// are valid until the next call. When the context is full, the Generator forgets the older half of
// it and reads the newer half again from position 0. If a token is beyond the vocabulary, Read
// returns an error and reads nothing.
func (g *Generator) Read(tokens ...uint32) ([]float32, error) {
	if err := g.decoder.known(tokens); err != nil {
		return nil, err
	}
	var last []float32
	err := g.follow(tokens, len(tokens)-1, func(_ int, logits []float32) bool {
		last = logits
		return true
	})
	return last, err
}

// Follow reads a text, at least one token and at most a context, from its beginning, and calls f
// with the logits after tokens i, i+1 and so on, until f returns false. It reads many tokens at
// once, so it is much faster than Generate, and may have read more than f has seen.
func (g *Generator) Follow(text []uint32, i int, f func(i int, logits []float32) bool) error {
	if err := g.decoder.known(text); err != nil {
		return err
	}
	if i < 0 || i >= len(text) || len(text) > g.decoder.cfg.Context {
		return fmt.Errorf("logits from token %d on of %d tokens in a context of %d", i, len(text), g.decoder.cfg.Context)
	}
	kept := g.Keep(text[:i+1])
	return g.follow(text[kept:], i-kept, func(j int, logits []float32) bool { return f(kept+j, logits) })
}

// follow reads tokens and calls f with the logits after tokens i, i+1 and so on, until f returns
// false.
func (g *Generator) follow(tokens []uint32, i int, f func(i int, logits []float32) bool) error {
	c := g.decoder.cfg
	for at := 0; at < len(tokens); {
		if g.text.Len() == c.Context {
			young := slices.Clone(g.text.read[c.Context-c.Context/2:])
			g.Reset()
			if err := g.follow(young, len(young), nil); err != nil {
				return err
			}
		}
		n := min(len(tokens)-at, g.decoder.rows, c.Context-g.text.Len())
		part := []Part{{Text: &g.text, Tokens: tokens[at : at+n], Want: min(n, max(0, at+n-i))}}
		if err := g.decoder.Step(part); err != nil {
			return err
		}
		at += n
		for j := at - part[0].Want; j < at; j++ {
			logits := part[0].Logits[(j-at+part[0].Want)*c.Vocab:][:c.Vocab]
			if part[0].Err != nil {
				return part[0].Err
			}
			if !f(j, logits) {
				return nil
			}
		}
	}
	return nil
}

// Reset forgets all tokens.
func (g *Generator) Reset() { g.Keep(nil) }

// Keep forgets all tokens but those that a text begins with, and returns how many those are, less
// than the text's. Read then takes the rest of the text.
func (g *Generator) Keep(text []uint32) int { return g.text.Keep(text, 0) }
