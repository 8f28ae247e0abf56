package web

import "github.com/entrain-network/entrain/view"

// series is a curve of what package view keeps none of. It never has more than view.CurveMax
// buckets: when it is full, neighbours are joined, and every bucket from then on covers twice as
// many steps. Minimum and maximum are kept, so that no spike is lost.
type series struct {
	buckets view.Curve
	width   uint32 // steps in a bucket
}

// add takes the value of a step. Those of earlier buckets than the last are ignored: what is added
// is settled, in order.
func (s *series) add(step uint32, tokens uint64, v float64) {
	s.width = max(s.width, 1)
	from := step - step%s.width
	if n := len(s.buckets); n > 0 && s.buckets[n-1].From >= from {
		if b := &s.buckets[n-1]; b.From == from {
			join(b, view.Bucket{To: step, Tokens: tokens, Min: v, Max: v, Mean: v, Count: 1})
		}
		return
	}
	s.buckets = append(s.buckets, view.Bucket{From: from, To: step, Tokens: tokens, Min: v, Max: v, Mean: v, Count: 1})
	if len(s.buckets) <= view.CurveMax {
		return
	}
	s.width *= 2
	kept := s.buckets[:0]
	for _, b := range s.buckets {
		b.From -= b.From % s.width
		if n := len(kept); n > 0 && kept[n-1].From == b.From {
			join(&kept[n-1], b)
		} else {
			kept = append(kept, b)
		}
	}
	s.buckets = kept
}

// join makes one bucket of two neighbours.
func join(b *view.Bucket, next view.Bucket) {
	b.To, b.Tokens = max(b.To, next.To), max(b.Tokens, next.Tokens)
	b.Min, b.Max = min(b.Min, next.Min), max(b.Max, next.Max)
	b.Count += next.Count
	b.Mean += (next.Mean - b.Mean) * float64(next.Count) / float64(b.Count)
}

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

// since returns what whoever knows a version lacks; ok is false if that is nothing.
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
