package serve

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/tokenizer/chat"
	"github.com/entrain-network/entrain/wire"
)

// ErrTooLong reports that a conversation leaves no room in the model's context.
var ErrTooLong = errors.New("the conversation fills the model's context")

// A Talk is one conversation with a Model.
type Talk struct {
	model    *Model
	reader   *llama.Generator
	messages []said
}

type said struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Talk begins a conversation. It returns an error if nothing says how the model converses.
func (m *Model) Talk() (*Talk, error) {
	if m.format == nil {
		return nil, m.noChat
	}
	return &Talk{model: m, reader: m.decoder.Generator()}, nil
}

// Forget begins the conversation again.
func (t *Talk) Forget() { t.messages = nil }

// Say adds what the user says, and the model's answer, which it writes to out as it is made. After
// an error the conversation is as before.
func (t *Talk) Say(ctx context.Context, text string, out io.Writer) error {
	m, all := t.model, append(t.messages[:len(t.messages):len(t.messages)], said{"user", text})
	b, err := json.Marshal(all)
	if err != nil {
		return err
	}
	q := Question{Most: m.config.Context, Temperature: talkTemperature, TopP: 1}
	if q.Prompt, err = m.converse(chat.Conversation{Messages: b}, time.Now()); err != nil {
		return err
	}
	if end := m.format.End(); end != "" {
		q.Stop = []string{end}
	}
	var seed wire.Hash
	if _, err := rand.Read(seed[:]); err != nil {
		return err
	}
	q.Seed = hex.EncodeToString(seed[:])
	a, err := m.answer(ctx, t.reader, q, func(text []byte) error {
		_, err := out.Write(text)
		return err
	})
	if err == nil {
		t.messages = append(all, said{"assistant", string(a.text)})
	}
	return err
}

// talkTemperature is that of the other commands that write text.
const talkTemperature = 0.8

// lineMost bounds the bytes of a line that Converse reads.
const lineMost = 1 << 20

// Converse answers each line of in on out, until in or ctx ends. A line "/new" begins another
// conversation. The prompt and advice go to aside.
func (t *Talk) Converse(ctx context.Context, in io.Reader, out, aside io.Writer, prompt string) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, lineMost)
	read := make(chan string) // so that ctx may end while a line is read
	go func() {
		defer close(read)
		for lines.Scan() {
			select {
			case read <- lines.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		fmt.Fprint(aside, prompt)
		text, more := "", false
		select {
		case text, more = <-read:
		case <-ctx.Done():
			return ctx.Err()
		}
		if !more {
			return lines.Err()
		}
		switch text = strings.TrimSpace(text); text {
		case "":
		case "/new":
			t.Forget()
		default:
			err := t.Say(ctx, text, out)
			if errors.Is(err, ErrTooLong) {
				fmt.Fprintf(aside, "%v: \"/new\" begins another conversation\n", err)
				continue
			}
			if err != nil {
				return err
			}
			if _, err := io.WriteString(out, "\n"); err != nil {
				return err
			}
		}
	}
}
