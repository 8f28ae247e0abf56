package web

import (
	"strconv"

	"github.com/entrain-network/entrain/view"
)

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
