package llama

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/wire"
)

// remote is an Elsewhere in this process, which fails at a Read.
type remote struct {
	sync.Mutex
	t     *testing.T
	d     *Decoder
	slots []Text
	fails int // the number of Reads before; negative: never
	reads int
}

var errRemote = errors.New("the device is lost")

func (r *remote) Slots() int { return len(r.slots) }
func (r *remote) Rows() int  { return r.d.rows }

func (r *remote) Read(parts []Slotted) error {
	if r.fails == r.reads {
		return errRemote
	}
	r.reads++
	own := make([]Part, len(parts))
	for i, p := range parts {
		text := &r.slots[p.Slot]
		if p.At > len(text.read) || !slices.Equal(text.read[:p.At], p.Text.read) {
			r.t.Errorf("slot %d holds %v, not the %d tokens of the text", p.Slot, text.read, p.At)
			return errRemote
		}
		text.read = text.read[:p.At]
		own[i] = Part{Text: text, Tokens: p.Tokens, Want: p.Want}
	}
	err := r.d.Step(own)
	for i, p := range parts {
		p.Logits = slices.Clone(own[i].Logits)
	}
	return err
}

// Texts that are read elsewhere, more of them than there are slots, have the logits of a Decoder,
// also after the Read at which that fails; Forks share the slots.
func TestTextsAreReadElsewhere(t *testing.T) {
	cfg := smallConfig
	params := Init(cfg, wire.Sum("elsewhere"))
	for _, fails := range []int{-1, 0, 7, 20} {
		pool := exact.NewPool(1)
		host, err := NewDecoder(cfg, params, pool, 8)
		if err != nil {
			t.Fatal(err)
		}
		var told []error
		to := &remote{t: t, d: host.Fork(8), slots: make([]Text, 2), fails: fails}
		on, err := NewDecoderOn(cfg, params, pool, to, func(err error) { told = append(told, err) })
		if err != nil {
			t.Fatal(err)
		}
		decoders := []*Decoder{on, on.Fork(8)}
		var want, got [4]Text
		r := rand.New(rand.NewPCG(1, 1))
		for step := range 40 {
			var parts [2][]Part
			for _, i := range r.Perm(len(want))[:1+r.IntN(2)] {
				n := min(1+r.IntN(4), cfg.Context-want[i].Len())
				if n == 0 || r.IntN(9) == 0 {
					n = 2
					want[i].Free()
					got[i].Free()
				}
				tokens := make([]uint32, n)
				for k := range tokens {
					tokens[k] = uint32(r.IntN(cfg.Vocab))
				}
				w := r.IntN(n + 1)
				parts[0] = append(parts[0], Part{Text: &want[i], Tokens: tokens, Want: w})
				parts[1] = append(parts[1], Part{Text: &got[i], Tokens: tokens, Want: w})
			}
			if err := errors.Join(host.Step(parts[0]), decoders[step%2].Step(parts[1])); err != nil {
				t.Fatal(err)
			}
			for i := range parts[0] {
				if a, b := &parts[0][i], &parts[1][i]; !slices.Equal(a.Logits, b.Logits) || !slices.Equal(a.Text.read, b.Text.read) {
					t.Errorf("fails %d, step %d: other logits or tokens of text %d", fails, step, i)
				}
			}
		}
		if fails < 0 && len(told) > 0 || fails >= 0 && (len(told) != 1 || !errors.Is(told[0], errRemote)) {
			t.Errorf("fails %d: told %v", fails, told)
		}
		three := []Part{{Text: &got[0], Tokens: []uint32{1}}, {Text: &got[1], Tokens: []uint32{1}}, {Text: &got[2], Tokens: []uint32{1}}}
		if fails < 0 {
			for i := range three {
				three[i].Text.Free()
			}
			if err := on.Step(three); err != nil || len(told) != 1 {
				t.Errorf("more texts than slots at once: %v, told %v", err, told)
			}
		}
	}
	if _, err := NewDecoderOn(cfg, params[1:], exact.NewPool(1), new(remote), nil); err == nil {
		t.Error("too few parameters are taken")
	}
}
