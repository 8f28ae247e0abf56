package llama

import (
	"fmt"

	"github.com/entrain-network/entrain/exact"
)

// Elsewhere computes Steps where the model and the keys and values of texts are not in this
// process's memory, such as on a GPU, to the bits of a Decoder. It is locked for each Step, so that
// the Forks of a Decoder take turns.
type Elsewhere interface {
	Lock()
	Unlock()
	// Slots returns the number of texts that it holds at once, at least one.
	Slots() int
	// Rows returns the most tokens of all parts of a Read.
	Rows() int
	// Read reads parts of different texts, and sets the Logits of each.
	Read(parts []Slotted) error
}

// A Slotted is a Part of a text that is in a slot.
type Slotted struct {
	*Part
	Slot int // 0 to Slots
	// At is the number of tokens before Part.Tokens. What the slot holds behind them is forgotten.
	At int
}

// away is what computes the Steps of a Decoder and its Forks, until its first failure.
type away struct {
	to     Elsewhere
	rows   int
	params []float32
	failed func(error)
	over   bool // it has failed
	slots  []slot
	clock  int // steps so far
}

// A slot holds the keys and values of a text.
type slot struct {
	text *Text
	used int // the clock at its last step
}

// NewDecoderOn returns a Decoder whose Steps, and those of its Forks, to computes. After its first
// failure, which failed is told, they are computed on pool as NewDecoder's, and what texts have
// read is read again. The Decoder retains params; a Step reads up to the rows of to.
func NewDecoderOn(cfg Config, params []float32, pool *exact.Pool, to Elsewhere, failed func(error)) (*Decoder, error) {
	if err := cfg.checkParams(params); err != nil {
		return nil, err
	}
	d := newDecoderWeights(cfg).decoder(pool, to.Rows())
	d.away = &away{rows: to.Rows(), params: params, failed: failed, to: to, slots: make([]slot, to.Slots())}
	return d, nil
}

// step computes a step of d elsewhere. It reports false if the pool must compute it.
func (a *away) step(d *Decoder, parts []Part) bool {
	if a == nil {
		return false
	}
	a.to.Lock()
	defer a.to.Unlock()
	if a.over {
		return false
	}
	err := a.read(parts)
	if err == nil {
		return true
	}
	a.over = true
	a.failed(err)
	d.pack(a.params)
	return false
}

// read gives each text a slot and reads the parts. A text that had to leave its slot, because
// others were read since, is read again first.
func (a *away) read(parts []Part) error {
	if len(parts) > len(a.slots) {
		return fmt.Errorf("%d texts at once, more than %d", len(parts), len(a.slots))
	}
	a.clock++
	slotted := make([]Slotted, len(parts))
	for i := range parts {
		p := &parts[i]
		at := a.find(p.Text)
		if at >= 0 {
			a.slots[at].used = a.clock
		}
		slotted[i] = Slotted{p, at, p.Text.Len()}
	}
	for i := range slotted {
		p := &slotted[i]
		if p.Slot >= 0 {
			continue
		}
		p.Slot = a.oldest()
		a.slots[p.Slot] = slot{p.Text, a.clock}
		if err := p.Text.again(a.rows, func(q Part) error {
			return a.to.Read([]Slotted{{&q, p.Slot, q.Text.Len()}})
		}); err != nil {
			return err
		}
	}
	return a.to.Read(slotted)
}

// find returns the slot of a text, or -1.
func (a *away) find(t *Text) int {
	for i := range a.slots {
		if a.slots[i].text == t {
			return i
		}
	}
	return -1
}

// oldest returns the slot that has not been used for the longest time.
func (a *away) oldest() (oldest int) {
	for i := range a.slots {
		if a.slots[i].used < a.slots[oldest].used {
			oldest = i
		}
	}
	return oldest
}
