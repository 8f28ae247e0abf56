package llama

import (
	"fmt"
	"slices"

	"github.com/entrain-network/entrain/exact"
)

// A Generator reads one text with a Decoder, and predicts its next token. It must not be used
// concurrently.
type Generator struct {
	cfg     Config
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
	return &Generator{cfg: cfg, decoder: d}, nil
}

// Read appends tokens, at least one, to the text and returns the logits of the next token, which
// are valid until the next call. When the context is full, the Generator forgets the older half of
// it and reads the newer half again from position 0. If a token is beyond the vocabulary, Read
// returns an error and reads nothing.
func (g *Generator) Read(tokens ...uint32) ([]float32, error) {
	if err := g.cfg.known(tokens); err != nil {
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
	if err := g.cfg.known(text); err != nil {
		return err
	}
	if i < 0 || i >= len(text) || len(text) > g.cfg.Context {
		return fmt.Errorf("logits from token %d on of %d tokens in a context of %d", i, len(text), g.cfg.Context)
	}
	kept := g.Keep(text[:i+1])
	return g.follow(text[kept:], i-kept, func(j int, logits []float32) bool { return f(kept+j, logits) })
}

// follow reads tokens and calls f with the logits after tokens i, i+1 and so on, until f returns
// false.
func (g *Generator) follow(tokens []uint32, i int, f func(i int, logits []float32) bool) error {
	c := g.cfg
	for at := 0; at < len(tokens); {
		if g.text.Len() == c.Context {
			young := slices.Clone(g.text.read[c.Context-c.Context/2:])
			g.Reset()
			if err := g.follow(young, len(young), nil); err != nil {
				return err
			}
		}
		n := min(len(tokens)-at, g.decoder.rows, c.Context-g.text.Len())
		want := min(n, max(0, at+n-i))
		all, err := g.step(tokens[at:at+n], want)
		at += n
		for j := at - want; j < at && err == nil; j++ {
			if !f(j, all[(j-at+want)*c.Vocab:][:c.Vocab]) {
				return nil
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// step reads tokens and returns the logits after the last want of them.
func (g *Generator) step(tokens []uint32, want int) ([]float32, error) {
	part := []Part{{Text: &g.text, Tokens: tokens, Want: want}}
	if err := g.decoder.Step(part); err != nil {
		return nil, err
	}
	return part[0].Logits, part[0].Err
}

// Reset forgets all tokens.
func (g *Generator) Reset() { g.Keep(nil) }

// Keep forgets all tokens but those that a text begins with, and returns how many those are, less
// than the text's. Read then takes the rest of the text.
func (g *Generator) Keep(text []uint32) int { return g.text.Keep(text, 0) }
