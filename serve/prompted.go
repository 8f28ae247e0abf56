package serve

import (
	"context"
	"encoding/hex"
	"io"
	"runtime"
	"sync"
	"time"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/model"
	"github.com/entrain-network/entrain/wire"
)

// Prompted answers prompts, one after the other. It keeps the newest model in memory until nobody
// has asked it for a while. The zero value is ready.
type Prompted struct {
	mu     sync.Mutex // guards what follows, and is held while a text is written
	dir    string
	model  *Model
	reader *llama.Generator
	idle   *time.Timer
}

const (
	// promptedIdle is how long a model that nobody asks stays in memory.
	promptedIdle = 5 * time.Minute
	promptedTopK = 40
)

// Generate writes the continuation of a prompt by the model of the checkpoint in dir.
func (m *Prompted) Generate(ctx context.Context, dir string, p model.Prompt, out io.Writer) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dir != dir {
		pool := exact.NewPool(runtime.GOMAXPROCS(0))
		opened, err := Open(dir, model.Machine{Pool: pool})
		if err != nil {
			pool.Close()
			return err
		}
		m.forget()
		m.dir, m.model, m.reader = dir, opened, opened.decoder.Generator()
	}
	if m.idle != nil {
		m.idle.Stop()
	}
	m.idle = time.AfterFunc(promptedIdle, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.forget()
	})
	tokens, err := m.model.encode(p.Text)
	if err != nil {
		return err
	}
	seed := wire.SHA256([]byte(p.Seed))
	q := Question{Prompt: tokens, Most: p.Tokens, Temperature: p.Temperature, TopK: promptedTopK, TopP: 1, Seed: hex.EncodeToString(seed[:])}
	if err := m.model.check(q); err != nil {
		return err
	}
	_, err = m.model.answer(ctx, m.reader, q, func(text []byte) error {
		_, err := out.Write(text)
		return err
	})
	return err
}

// forget lets go of the model.
func (m *Prompted) forget() {
	if m.model != nil {
		m.model.pool.Close()
	}
	m.dir, m.model, m.reader = "", nil, nil
}
