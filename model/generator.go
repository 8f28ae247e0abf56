package model

import (
	"context"
	"crypto/rand"
	"io"
	"runtime"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/tokenizer"
	"github.com/entrain-network/entrain/wire"
)

// Prompt is a text to be continued.
type Prompt struct {
	Text        string  `json:"text"`
	Tokens      int     `json:"tokens"`      // to write, at most
	Temperature float32 `json:"temperature"` // 0 always takes the likeliest token
	Seed        string  `json:"seed"`        // the same one gives the same text
}

// Generator writes text with a model.
type Generator struct {
	Model     llama.Config
	Tokenizer tokenizer.Tokenizer
	Params    []float32
	Pool      *exact.Pool // nil: one worker
	Sampling  llama.Sampling
	Seed      wire.Hash // the same seed gives the same text
	Special   bool      // special tokens spelled out in the prompt count as such
	// eos is the token that ends a text by config.json, where the tokenizer's differs.
	eos    *uint32
	reader *llama.Generator // made by On, or the first Text
}

// Begin opens the model of a checkpoint on a device, as --device names it. The same seed gives the
// same text; "" draws one. tell is told why a device is not used. The caller calls free at the end.
func (g *Generator) Begin(dir, device, seed string, tell func(text string)) (free func(), err error) {
	if err := g.Open(dir); err != nil {
		return nil, err
	}
	if seed != "" {
		g.Seed = wire.Sum("entrain/generate", []byte(seed))
	} else if _, err := rand.Read(g.Seed[:]); err != nil {
		return nil, err
	}
	g.Pool = exact.NewPool(runtime.GOMAXPROCS(0))
	release, err := g.On(device, tell)
	if err != nil {
		g.Pool.Close()
		return nil, err
	}
	return func() { release(); g.Pool.Close() }, nil
}

// On makes the generator compute on a device, as --device names it, unless it names the processors.
// tell is told why a device is not used. The caller calls free at the end.
func (g *Generator) On(device string, tell func(text string)) (free func(), err error) {
	d, free, err := Machine{Pool: g.pool(), Device: device, Tell: tell}.NewDecoder(g.Model, g.Params)
	if err == nil {
		g.reader = d.Generator()
	}
	return free, err
}

func (g *Generator) pool() *exact.Pool {
	if g.Pool == nil {
		return exact.NewPool(1) // which starts no goroutine
	}
	return g.Pool
}

// Text continues the prompt by at most the given number of tokens, or up to the token that ends a
// document, and returns the continuation. It also writes it to out as it is made, unless out is
// nil.
func (g *Generator) Text(ctx context.Context, prompt string, tokens int, out io.Writer) (string, error) {
	if g.reader == nil {
		if _, err := g.On("", nil); err != nil {
			return "", err
		}
	}
	ids := g.Encode(prompt)
	if len(ids) == 0 {
		ids = append(ids, g.Tokenizer.End())
	}
	source := prng.New(g.Seed, "entrain/sample")
	var text []byte
	var failed error
	kept := g.reader.Keep(ids)
	err := g.reader.Generate(ids[kept:], tokens, g.Sampling, &source, func(token uint32) bool {
		if failed = ctx.Err(); failed != nil || token == g.Tokenizer.End() || g.eos != nil && token == *g.eos {
			return false
		}
		n := len(text)
		// A model's vocabulary may be larger than its tokenizer's, rounded up:
		// those tokens have no text.
		if more, err := g.Tokenizer.Decode(text, []uint32{token}); err == nil {
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

// Encode returns the tokens of a prompt, which begins as texts of the model do.
func (g *Generator) Encode(prompt string) []uint32 {
	var ids []uint32
	if begin, ok := tokenizer.Begin(g.Tokenizer); ok {
		ids = append(ids, begin)
	}
	if t, ok := g.Tokenizer.(interface {
		EncodeSpecial(dst []uint32, text []byte) []uint32
	}); ok && g.Special {
		return t.EncodeSpecial(ids, []byte(prompt))
	}
	return g.Tokenizer.Encode(ids, []byte(prompt))
}

// Open reads the model of a checkpoint.
func (g *Generator) Open(dir string) error {
	m, err := Open(dir)
	if err != nil {
		return err
	}
	g.Model, g.Params, g.eos = m.Config, m.Params, m.Saved.Config.EOS
	g.Tokenizer, err = m.Tokenizer()
	return err
}
