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

// A Choice is a candidate for the next token, with its logit, or its weight in the draw.
type Choice struct {
	Token  uint32
	Weight float32
}

// better orders choices: the likelier first, of equally likely ones the smaller token.
func better(a, b Choice) int {
	return cmp.Or(cmp.Compare(b.Weight, a.Weight), cmp.Compare(a.Token, b.Token))
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
	choices := Likeliest(logits, n)
	if s.Temperature == 0 {
		return choices[0].Token
	}
	most, total := choices[0].Weight, float32(0)
	for i := range choices {
		choices[i].Weight = exact.Exp((choices[i].Weight - most) / s.Temperature)
		total += choices[i].Weight
	}
	if s.TopP > 0 && s.TopP < 1 {
		enough, n := float32(total*s.TopP), 0
		total = 0
		for n < len(choices) && (n == 0 || total < enough) {
			total += choices[n].Weight
			n++
		}
		choices = choices[:n]
	}
	// A draw is 24 random bits, a binary32 in [0, 1). total is at least 1, the weight of the likeliest
	// token.
	at := float32(float32(source.Uint64()>>40) * 0x1p-24)
	at = float32(at * total)
	for _, c := range choices {
		if at < c.Weight {
			return c.Token
		}
		at -= c.Weight
	}
	return choices[0].Token // rounding in the subtractions left a remainder
}

// LogSum returns the logarithm of the sum of the exponentials of logits, in binary64: what a logit
// exceeds it by is the token's log-likelihood, in nats.
func LogSum(logits []float32) float64 {
	most, sum := float64(slices.Max(logits)), 0.0
	for _, v := range logits {
		sum += math.Exp(float64(v) - most)
	}
	return most + math.Log(sum)
}

// Likeliest returns the n best choices by their logits, or all if those are fewer, in order; of
// equals the smaller token is first. If those are few, it keeps a list of candidates, and cuts it
// to n whenever it has twice as many.
func Likeliest(logits []float32, n int) []Choice {
	switch n = min(n, len(logits)); {
	case n <= 0:
		return nil
	case n > len(logits)/8:
		return ranked(logits)[:n]
	}
	choices, worst := make([]Choice, 0, 2*n+1), float32(math.Inf(-1))
	for i, l := range logits {
		if l < worst || l == worst && len(choices) >= n { // of equals the earlier is better
			continue
		}
		if choices = append(choices, Choice{uint32(i), l}); len(choices) > 2*n {
			slices.SortFunc(choices, better)
			choices = choices[:n]
			worst = choices[n-1].Weight
		}
	}
	slices.SortFunc(choices, better)
	return choices[:n]
}

// ranked returns all choices, in order, by a radix sort, which is stable.
func ranked(logits []float32) []Choice {
	const digit, passes = 11, 3
	var counts [passes][1 << digit]int32
	from, to := make([]Choice, len(logits)), make([]Choice, len(logits))
	keys := func(weight float32) uint32 { // ascends as the weight descends
		bits := math.Float32bits(weight + 0) // -0 is +0
		return bits ^ (^uint32(int32(bits)>>31) & (1<<31 - 1))
	}
	for i, l := range logits {
		from[i] = Choice{uint32(i), l}
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
			place := &counts[pass][keys(c.Weight)>>(digit*pass)&(1<<digit-1)]
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
