package network

import (
	"cmp"
	"maps"
	"slices"
)

// Comparison is what a member sends in a round, in both networks.
type Comparison struct {
	Kinds []Rates `json:"kinds"` // between node and network
	// Wire is what the networks sent: gossip messages on each hop, then streams by protocol. The
	// simulation's streams are one.
	Wire []Rates `json:"wire"`
	// Carried is bytes as in Record.
	Carried float64 `json:"carried"`
}

// Rates are messages of a kind.
type Rates struct {
	Kind      string  `json:"kind"`
	Simulated Rate    `json:"simulated"`
	Real      Rate    `json:"real"`
	Messages  float64 `json:"messages"` // real over simulated; 0 if there are none
	Bytes     float64 `json:"bytes"`
}

// Rate is a number of messages and of their bytes, a member and round.
type Rate struct {
	Messages float64 `json:"messages"`
	Bytes    float64 `json:"bytes"`
}

// warm is the first round that is compared: members come before.
const warm = 2

// Compare compares a simulated run with a real one.
func Compare(simulated, over []Record) (c Comparison) {
	if len(simulated) <= warm || len(over) <= warm {
		return c
	}
	a, b := newSpan(simulated), newSpan(over)
	counts := [2]Counts{a.last.Counts.Sub(a.first.Counts), b.last.Counts.Sub(b.first.Counts)}
	for k := range kinds {
		c.Kinds = appendRates(c.Kinds, k.String(), a.rate(counts[0][k]), b.rate(counts[1][k]))
	}
	names := maps.Clone(b.last.Wire)
	maps.Copy(names, a.last.Wire)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		c.Wire = appendRates(c.Wire, name, a.rate(a.wire(name)), b.rate(b.wire(name)))
	}
	slices.SortStableFunc(c.Wire, func(x, y Rates) int { return cmp.Compare(y.Real.Bytes, x.Real.Bytes) })
	c.Carried = float64(b.last.Carried-b.first.Carried) / b.memberRounds
	return c
}

func appendRates(list []Rates, name string, simulated, over Rate) []Rates {
	if simulated.Messages == 0 && over.Messages == 0 {
		return list
	}
	return append(list, Rates{name, simulated, over, ratio(over.Messages, simulated.Messages), ratio(over.Bytes, simulated.Bytes)})
}

// span is the rounds of a run that are compared.
type span struct {
	first, last  Record
	memberRounds float64 // the rounds of all members
}

func newSpan(list []Record) span {
	s := span{first: list[warm-1], last: list[len(list)-1]}
	for i := warm; i < len(list); i++ {
		s.memberRounds += float64(list[i-1].Present) * float64(list[i].Round-list[i-1].Round)
	}
	return s
}

func (s span) wire(name string) Count {
	now, before := s.last.Wire[name], s.first.Wire[name]
	return Count{Messages: now.Messages - before.Messages, Bytes: now.Bytes - before.Bytes}
}

func (s span) rate(c Count) Rate {
	return Rate{float64(c.Messages) / s.memberRounds, float64(c.Bytes) / s.memberRounds}
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
