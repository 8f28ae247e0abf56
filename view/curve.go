package view

import "github.com/entrain-network/entrain/coordinator"

// Curve is a quantity by steps, downsampled: each bucket covers a stretch of steps, and all of them
// about as many.
type Curve []Bucket

// Bucket holds the measurements of the steps From to To.
type Bucket struct {
	From   coordinator.Step `json:"from"`
	To     coordinator.Step `json:"to"`
	Tokens uint64           `json:"tokens"` // trained by all members up to To
	Min    float64          `json:"min"`
	Max    float64          `json:"max"`
	Mean   float64          `json:"mean"`
	Count  uint32           `json:"count"` // values
}

// Last returns the newest value, the mean of the last bucket; ok is false if there is none.
func (c Curve) Last() (v float64, ok bool) {
	if len(c) == 0 {
		return 0, false
	}
	return c[len(c)-1].Mean, true
}

// curve collects values. When it has more buckets than curveMax, neighbours are joined and new
// buckets cover twice the steps.
type curve struct {
	buckets Curve
	width   coordinator.Step // steps in a bucket; 0 is 1
}

// add takes a value of a step; tokens are those trained by then. Steps come in about their order: a
// value of a step that lies before the last bucket goes to that where it belongs.
func (c *curve) add(step coordinator.Step, tokens uint64, v float64) {
	c.width = max(c.width, 1)
	for i := len(c.buckets) - 1; i >= 0; i-- {
		b := &c.buckets[i]
		switch {
		case step >= b.From && step-b.From < c.width:
			b.take(step, tokens, v)
			return
		case step > b.From:
			c.insert(i+1, step, tokens, v)
			return
		}
	}
	c.insert(0, step, tokens, v)
}

// spread takes a value of a step, and between which two others it lies.
func (c *curve) spread(step coordinator.Step, tokens uint64, low, v, high float64) {
	c.add(step, tokens, v)
	for i := len(c.buckets) - 1; i >= 0; i-- {
		if b := &c.buckets[i]; step >= b.From && step-b.From < c.width {
			b.Min, b.Max = min(b.Min, low), max(b.Max, high)
			return
		}
	}
}

func (c *curve) insert(at int, step coordinator.Step, tokens uint64, v float64) {
	b := Bucket{From: step - step%c.width, To: step, Tokens: tokens, Min: v, Max: v, Mean: v, Count: 1}
	c.buckets = append(c.buckets, Bucket{})
	copy(c.buckets[at+1:], c.buckets[at:])
	c.buckets[at] = b
	for len(c.buckets) > curveMax { // steps that lie far apart may take several
		c.halve()
	}
}

func (b *Bucket) take(step coordinator.Step, tokens uint64, v float64) {
	b.To, b.Tokens = max(b.To, step), max(b.Tokens, tokens)
	b.Min, b.Max = min(b.Min, v), max(b.Max, v)
	b.Count++
	b.Mean += (v - b.Mean) / float64(b.Count)
}

// halve joins neighbours.
func (c *curve) halve() {
	c.width *= 2
	out := c.buckets[:0]
	for _, b := range c.buckets {
		from := b.From - b.From%c.width
		if n := len(out); n > 0 && out[n-1].From == from {
			o := &out[n-1]
			count := o.Count + b.Count
			o.Mean += (b.Mean - o.Mean) * float64(b.Count) / float64(count)
			o.Min, o.Max, o.Count = min(o.Min, b.Min), max(o.Max, b.Max), count
			o.To, o.Tokens = max(o.To, b.To), max(o.Tokens, b.Tokens)
			continue
		}
		b.From = from
		out = append(out, b)
	}
	c.buckets = out
}

// copy returns the curve as of now.
func (c *curve) copy() Curve { return append(Curve{}, c.buckets...) }
