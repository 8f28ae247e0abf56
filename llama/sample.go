package llama

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/prng"
)

// Sampling controls how the next token is chosen from the logits.
type Sampling struct {
	Temperature float32 // divides the logits; 0 always takes the likeliest token
	TopK        int     // the draw is among the TopK likeliest tokens; 0: all tokens
	TopP        float32 // and of these among the likeliest, with this share of the weights; 0: all
}

// Check returns the first fault of s, or nil.
func (s Sampling) Check() error {
	if !(s.Temperature >= 0 && s.Temperature <= 100) {
		return fmt.Errorf("temperature: %g must be 0 to 100", s.Temperature)
	}
	if s.TopK < 0 {
		return fmt.Errorf("top-k: %d must not be negative", s.TopK)
	}
	if !(s.TopP >= 0 && s.TopP <= 1) {
		return fmt.Errorf("top-p: %g must be 0 to 1", s.TopP)
	}
	return nil
}

// A choice is a candidate for the next token, with its weight in the draw.
type choice struct {
	token  uint32
	weight float32
}

// better orders choices: the likelier first, of equally likely ones the smaller token.
func better(a, b choice) int {
	return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.token, b.token))
}

// Choose draws the next token from logits, which must be finite. Of equally likely tokens the
// smaller one ranks first. The same source gives the same token on every machine.
func (s Sampling) Choose(logits []float32, source *prng.Source) uint32 {
	n := len(logits)
	if s.TopK > 0 {
		n = min(n, s.TopK)
	}
	if s.Temperature == 0 {
		n = 1
	}
	choices := likeliest(logits, n)
	if s.Temperature == 0 {
		return choices[0].token
	}
	most, total := choices[0].weight, float32(0)
	for i := range choices {
		choices[i].weight = exact.Exp((choices[i].weight - most) / s.Temperature)
		total += choices[i].weight
	}
	if s.TopP > 0 && s.TopP < 1 {
		enough, n := float32(total*s.TopP), 0
		total = 0
		for n < len(choices) && (n == 0 || total < enough) {
			total += choices[n].weight
			n++
		}
		choices = choices[:n]
	}
	// A draw is 24 random bits, a binary32 in [0, 1). total is at least 1, the weight of the likeliest
	// token.
	at := float32(float32(source.Uint64()>>40) * 0x1p-24)
	at = float32(at * total)
	for _, c := range choices {
		if at < c.weight {
			return c.token
		}
		at -= c.weight
	}
	return choices[0].token // rounding in the subtractions left a remainder
}

// likeliest returns the n best choices, in order. If those are few, it keeps a list of candidates,
// and cuts it to n whenever it has twice as many.
func likeliest(logits []float32, n int) []choice {
	if n > len(logits)/8 {
		return ranked(logits)[:n]
	}
	choices, worst := make([]choice, 0, 2*n+1), float32(math.Inf(-1))
	for i, l := range logits {
		if l < worst || l == worst && len(choices) >= n { // of equals the earlier is better
			continue
		}
		if choices = append(choices, choice{uint32(i), l}); len(choices) > 2*n {
			slices.SortFunc(choices, better)
			choices = choices[:n]
			worst = choices[n-1].weight
		}
	}
	slices.SortFunc(choices, better)
	return choices[:n]
}

// ranked returns all choices, in order, by a radix sort, which is stable.
func ranked(logits []float32) []choice {
	const digit, passes = 11, 3
	var counts [passes][1 << digit]int32
	from, to := make([]choice, len(logits)), make([]choice, len(logits))
	keys := func(weight float32) uint32 { // ascends as the weight descends
		bits := math.Float32bits(weight + 0) // -0 is +0
		return bits ^ (^uint32(int32(bits)>>31) & (1<<31 - 1))
	}
	for i, l := range logits {
		from[i] = choice{uint32(i), l}
		for pass := range passes {
			counts[pass][keys(l)>>(digit*pass)&(1<<digit-1)]++
		}
	}
	for pass := range passes {
		at := int32(0)
		for i, n := range counts[pass] {
			counts[pass][i], at = at, at+n
		}
		for _, c := range from {
			place := &counts[pass][keys(c.weight)>>(digit*pass)&(1<<digit-1)]
			to[*place] = c
			*place++
		}
		from, to = to, from
	}
	return from
}

// Generate reads prompt, at least one token, and passes each of the next n tokens to emit, until
// emit returns false.
func (g *Generator) Generate(prompt []uint32, n int, s Sampling, source *prng.Source, emit func(token uint32) bool) error {
	if err := s.Check(); err != nil {
		return err
	}
	logits, err := g.Read(prompt...)
	for i := range n {
		if err != nil {
			return err
		}
		token := s.Choose(logits, source)
		if !emit(token) || i+1 == n {
			return nil
		}
		logits, err = g.Read(token)
	}
	return err
}
