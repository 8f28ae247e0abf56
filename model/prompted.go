package model

import (
	"context"
	"crypto/sha256"
	"io"
	"runtime"
	"sync"
	"time"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
)

// Prompt is a text to be continued.
type Prompt struct {
	Text        string  `json:"text"`
	Tokens      int     `json:"tokens"`      // to write, at most
	Temperature float32 `json:"temperature"` // 0 always takes the likeliest token
	Seed        string  `json:"seed"`        // the same one gives the same text
}

// Prompted answers prompts, one after the other. It keeps the newest model in memory until nobody
// has asked it for a while. The zero value is ready.
type Prompted struct {
	mu   sync.Mutex // guards what follows, and is held while a text is written
	dir  string
	g    *Generator
	idle *time.Timer
}

const (
	// promptedIdle is how long a model that nobody asks stays in memory.
	promptedIdle = 5 * time.Minute
	promptedTopK = 40
)

// Generate writes the continuation of a prompt by the model of the checkpoint in dir.
func (m *Prompted) Generate(ctx context.Context, dir string, p Prompt, out io.Writer) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dir != dir {
		g := &Generator{Pool: exact.NewPool(runtime.GOMAXPROCS(0))}
		if err := g.Open(dir); err != nil {
			g.Pool.Close()
			return err
		}
		m.forget()
		m.dir, m.g = dir, g
	}
	if m.idle != nil {
		m.idle.Stop()
	}
	m.idle = time.AfterFunc(promptedIdle, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.forget()
	})
	m.g.Sampling, m.g.Seed = llama.Sampling{Temperature: p.Temperature, TopK: promptedTopK}, sha256.Sum256([]byte(p.Seed))
	_, err := m.g.Text(ctx, p.Text, p.Tokens, out)
	return err
}

// forget lets go of the model.
func (m *Prompted) forget() {
	if m.g != nil {
		m.g.Pool.Close()
	}
	m.dir, m.g = "", nil
}
