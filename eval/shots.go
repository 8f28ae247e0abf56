package eval

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// shotsMax bounds the examples before a question: more than published evaluations use.
const shotsMax = 64

// Shots puts n solved examples before each question, as lm-evaluation-harness 0.4 does with its
// default seed: MMLU has the first n of its subject, other tasks draw n for each question in turn.
// Examples are items of the same task, from the split that the harness takes them from: train, or
// dev of MMLU.
func Shots(task string, items, examples []Item, n int) ([]Item, error) {
	if n < 1 || n > shotsMax {
		return nil, fmt.Errorf("%s: %d examples before a question; want 1 to %d", task, n, shotsMax)
	}
	random := newTwister(harnessSeed)
	out := make([]Item, len(items))
	for i, item := range items {
		pool := examples
		if item.Head != "" {
			pool = ofSubject(examples, item.Head)
		}
		if item.Head == "" && len(pool) >= n {
			pool = random.drawFor(item, pool, n, slices.Contains(tested, task))
		}
		if len(pool) < n {
			return nil, fmt.Errorf("%s: %d examples are too few for %d before each question", task, len(examples), n)
		}
		var before strings.Builder
		for _, e := range pool[:n] {
			before.WriteString(e.question(e.Gold) + e.Choices[e.Gold] + "\n\n")
		}
		item.Shots = before.String()
		out[i] = item
	}
	return out, nil
}

// tested are the tasks whose data sets have a test split with answers. Of the others the harness
// takes the examples' split to be that of the questions: it draws one more, and leaves out the
// question itself.
var tested = []string{"arc_challenge", "arc_easy", "openbookqa", "sciq"}

// drawFor draws n examples for an item from a pool of more.
func (t *twister) drawFor(item Item, pool []Item, n int, tested bool) []Item {
	if tested {
		return t.sample(pool, n)
	}
	other := func(list []Item) []Item {
		return slices.DeleteFunc(slices.Clone(list), func(e Item) bool { return e.same(item) })
	}
	if len(pool) > n {
		if drawn := other(t.sample(pool, n+1)); len(drawn) >= n {
			return drawn[:n]
		}
		if pool = other(pool); len(pool) >= n {
			return t.sample(pool, n)
		}
	}
	return nil
}

func (item Item) same(o Item) bool {
	return item.Context == o.Context && item.Gold == o.Gold && slices.Equal(item.Choices, o.Choices) && slices.Equal(item.Before, o.Before)
}

// ofSubject returns the examples whose prompts begin alike.
func ofSubject(examples []Item, head string) (list []Item) {
	for _, e := range examples {
		if e.Head == head {
			list = append(list, e)
		}
	}
	return list
}

// harnessSeed is the harness's seed for examples.
const harnessSeed = 1234

// twister is the random generator of Python's module random: MT19937.
type twister struct {
	state [624]uint32
	next  int
}

// newTwister seeds as random.Random(seed) does: init_by_array of one word.
func newTwister(seed uint32) *twister {
	t := &twister{next: len(twister{}.state)}
	s := &t.state
	s[0] = 19650218
	for i := 1; i < len(s); i++ {
		s[i] = 1812433253*(s[i-1]^s[i-1]>>30) + uint32(i)
	}
	i := 1
	step := func(factor, add uint32, minus bool) {
		s[i] = (s[i] ^ (s[i-1]^s[i-1]>>30)*factor) + add
		if minus {
			s[i] -= uint32(i)
		}
		if i++; i == len(s) {
			s[0], i = s[len(s)-1], 1
		}
	}
	for range len(s) {
		step(1664525, seed, false)
	}
	for range len(s) - 1 {
		step(1566083941, 0, true)
	}
	s[0] = 1 << 31
	return t
}

func (t *twister) word() uint32 {
	s := &t.state
	if t.next == len(s) {
		for i := range s {
			y := s[i]&(1<<31) | s[(i+1)%len(s)]&(1<<31-1)
			s[i] = s[(i+397)%len(s)] ^ y>>1 ^ (y&1)*0x9908b0df
		}
		t.next = 0
	}
	y := s[t.next]
	t.next++
	y ^= y >> 11
	y ^= y << 7 & 0x9d2c5680
	y ^= y << 15 & 0xefc60000
	return y ^ y>>18
}

// below draws a number less than n.
func (t *twister) below(n int) int {
	shift := 32 - bits.Len32(uint32(n))
	for {
		if r := int(t.word() >> shift); r < n {
			return r
		}
	}
}

// sample draws k of the items without repetition, as random.Random.sample does.
func (t *twister) sample(items []Item, k int) []Item {
	out := make([]Item, k)
	setSize := 21
	if k > 5 {
		size := 1 // the least power of 4 that is at least 3k
		for size < 3*k {
			size *= 4
		}
		setSize += size
	}
	if len(items) <= setSize {
		pool := append([]Item(nil), items...)
		for i := range out {
			j := t.below(len(pool) - i)
			out[i] = pool[j]
			pool[j] = pool[len(pool)-i-1]
		}
		return out
	}
	taken := map[int]bool{}
	for i := range out {
		j := t.below(len(items))
		for taken[j] {
			j = t.below(len(items))
		}
		taken[j] = true
		out[i] = items[j]
	}
	return out
}
