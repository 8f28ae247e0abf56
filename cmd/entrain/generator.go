package main

import (
	"context"
	"io"

	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/tokenizer"
	"github.com/entrain-network/entrain/wire"
)

// generator writes text with a model.
type generator struct {
	model     llama.Config
	tokenizer tokenizer.Tokenizer
	params    []float32
	sampling  llama.Sampling
	seed      wire.Hash // the same seed gives the same text
	special   bool      // the prompt may spell out special tokens
	eos       *uint32   // the token that ends a text as config.json has it, if that is another than the tokenizer's
}

// text continues the prompt by at most so many tokens, or to the token that ends a document, and returns the continuation. Unless out
// is nil, it is written there too as it comes.
func (g *generator) text(ctx context.Context, prompt string, tokens int, out io.Writer) (string, error) {
	reader, err := llama.NewGenerator(g.model, g.params)
	if err != nil {
		return "", err
	}
	ids := g.encode(prompt)
	if len(ids) == 0 {
		ids = append(ids, g.tokenizer.End())
	}
	source := prng.New(g.seed, "entrain/sample")
	var text []byte
	var failed error
	err = reader.Generate(ids, tokens, g.sampling, &source, func(token uint32) bool {
		if failed = ctx.Err(); failed != nil || token == g.tokenizer.End() || g.eos != nil && token == *g.eos {
			return false
		}
		n := len(text)
		// A model's vocabulary may be larger than its tokenizer's, a round number of rows: those tokens have no text.
		if more, err := g.tokenizer.Decode(text, []uint32{token}); err == nil {
			text = more
		}
		if out != nil {
			_, failed = out.Write(text[n:])
		}
		return failed == nil
	})
	if failed != nil {
		err = failed
	}
	return string(text), err
}

// encode cuts a prompt into tokens.
func (g *generator) encode(prompt string) []uint32 {
	if t, ok := g.tokenizer.(interface {
		EncodeSpecial(dst []uint32, text []byte) []uint32
	}); ok && g.special {
		return t.EncodeSpecial(nil, []byte(prompt))
	}
	return g.tokenizer.Encode(nil, []byte(prompt))
}
