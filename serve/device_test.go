package serve

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/model"
)

// lost is a device in this process, which is lost after some reads.
type lost struct {
	sync.Mutex
	d      *llama.Decoder
	texts  []llama.Text
	tokens [][]uint32 // of each text
	left   int
}

var errLost = errors.New("the device is lost")

func (l *lost) Slots() int { return len(l.texts) }
func (l *lost) Rows() int  { return l.d.Rows() }

func (l *lost) Read(parts []llama.Slotted) error {
	if l.left--; l.left < 0 {
		return errLost
	}
	own := make([]llama.Part, len(parts))
	for i, p := range parts {
		text := &l.texts[p.Slot]
		if kept := l.tokens[p.Slot][:p.At]; text.Keep(append(slices.Clone(kept), 0), 0) != p.At {
			return fmt.Errorf("slot %d lacks the first %d tokens", p.Slot, p.At)
		}
		l.tokens[p.Slot] = append(l.tokens[p.Slot][:p.At], p.Tokens...)
		own[i] = llama.Part{Text: text, Tokens: p.Tokens, Want: p.Want}
	}
	err := l.d.Step(own)
	for i, p := range parts {
		p.Logits = slices.Clone(own[i].Logits)
	}
	return err
}

// A device that is lost amid answers side by side changes none of them.
func TestAnswersGoOnWithoutTheirDevice(t *testing.T) {
	const parallel = 4
	m := open(t, "device")
	opened, err := model.Open(write(t, "device", tiny))
	if err != nil {
		t.Fatal(err)
	}
	alone := m.decoder
	to := &lost{d: alone.Fork(Rows(parallel)), texts: make([]llama.Text, parallel), tokens: make([][]uint32, parallel), left: 60}
	var told []error
	if m.decoder, err = llama.NewDecoderOn(opened.Config, opened.Params, m.pool, to, func(err error) { told = append(told, err) }); err != nil {
		t.Fatal(err)
	}
	b, r := newBatcher(m, parallel, 0), rand.New(rand.NewPCG(5, 7))
	var group sync.WaitGroup
	for i := range 24 {
		q := questionOf(r, m.config)
		group.Go(func() {
			jobs, err := b.ask(t.Context(), scoring{}, q)
			if err != nil {
				t.Error(err)
				return
			}
			got, err := jobs[0].wait(nil)
			want, failed := m.answer(t.Context(), alone.Generator(), q, func([]byte) error { return nil })
			if err != nil || failed != nil || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("question %d: %v, alone %v; %v, %v", i, got, want, err, failed)
			}
		})
	}
	group.Wait()
	if len(told) != 1 || !errors.Is(told[0], errLost) {
		t.Errorf("told %v", told)
	}
}
