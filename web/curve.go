package web

import (
	"strconv"

	"github.com/entrain-network/entrain/view"
)

// published is a curve as pages have it, with the version of the history in which each bucket
// changed last, so that a page that was away for a moment is sent what it lacks.
type published struct {
	buckets view.Curve
	changed []uint64
	shrunk  uint64 // version in which buckets went away last
}

// update takes the newest curve.
func (p *published) update(c view.Curve, version uint64) {
	if len(c) < len(p.buckets) {
		p.shrunk = version
	}
	changed := make([]uint64, len(c))
	for i, b := range c {
		changed[i] = version
		if i < len(p.buckets) && p.buckets[i] == b {
			changed[i] = p.changed[i]
		}
	}
	p.buckets, p.changed = c, changed
}

// curvePatch makes a page's curve the newest one: it keeps the first At buckets and appends the
// others.
type curvePatch struct {
	At      int    `json:"at"`
	Buckets bucket `json:"buckets"`
}

// since returns what a page lacks that knows a version; ok is false if that is nothing.
func (p *published) since(version uint64) (patch curvePatch, ok bool) {
	at := len(p.buckets)
	for i := range p.buckets {
		if p.changed[i] > version || p.shrunk > version {
			at = i
			break
		}
	}
	return curvePatch{At: at, Buckets: bucket(p.buckets[at:])}, at < len(p.buckets) || p.shrunk > version
}

// bucket is a part of a curve in a compact form for pages.
type bucket view.Curve

// MarshalJSON writes a list of [from, to, tokens, mean, min, max].
func (c bucket) MarshalJSON() ([]byte, error) {
	b := append(make([]byte, 0, 2+48*len(c)), '[')
	for i, p := range c {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(append(b, '['), uint64(p.From), 10)
		b = strconv.AppendUint(append(b, ','), uint64(p.To), 10)
		b = strconv.AppendUint(append(b, ','), p.Tokens, 10)
		for _, v := range []float64{p.Mean, p.Min, p.Max} {
			b = appendNumber(append(b, ','), v)
		}
		b = append(b, ']')
	}
	return append(b, ']'), nil
}

// appendNumber appends a number with as many digits as a chart can show; JSON has no infinities.
func appendNumber(b []byte, v float64) []byte {
	if v-v != 0 {
		return append(b, "null"...)
	}
	return strconv.AppendFloat(b, v, 'g', 7, 64)
}
