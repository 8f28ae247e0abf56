package learn

import (
	"container/heap"
	"context"
	"slices"
	"sync"

	"github.com/entrain-network/entrain/tokenizer"
)

// pair is two neighbouring tokens, the left one in the upper half.
type pair uint64

func pairOf(left, right uint32) pair { return pair(left)<<32 | pair(right) }

// occurrences lists the words with a pair.
type occurrences struct {
	count int64
	// words that had the pair when the list was made: some may have lost it, none is missing
	words []int32
}

// table is the state of learning: the words as tokens, and all pairs in them.
type table struct {
	tokens [][]uint32 // of each word
	counts []int64    // of each word
	pairs  map[pair]*occurrences
	queue  queue
	text   []string          // of each token
	ids    map[string]uint32 // of each text
	merges []tokenizer.Merge
}

// newTable makes the table of words that are still single bytes.
func newTable(words []word, workers int) *table {
	t := &table{
		tokens: make([][]uint32, len(words)),
		counts: make([]int64, len(words)),
		pairs:  make(map[pair]*occurrences),
		text:   make([]string, tokenizer.FirstMerged),
		ids:    make(map[string]uint32),
	}
	var token [256]uint32
	for c := range 256 {
		token[c] = tokenizer.ByteToken(byte(c))
		t.text[token[c]] = string([]byte{byte(c)})
		t.ids[t.text[token[c]]] = token[c]
	}
	// Each worker takes a stretch of the words. The lists are joined in the order of the stretches,
	// so they are sorted.
	parts := make([]map[pair]*occurrences, workers)
	var started sync.WaitGroup
	for k := range parts {
		parts[k] = make(map[pair]*occurrences)
		from, to := len(words)*k/workers, len(words)*(k+1)/workers
		started.Go(func() {
			for i := from; i < to; i++ {
				t.enter(parts[k], int32(i), words[i], &token)
			}
		})
	}
	started.Wait()
	for _, part := range parts {
		for p, o := range part {
			all := t.pairs[p]
			if all == nil {
				t.pairs[p] = o
				continue
			}
			all.count += o.count
			all.words = append(all.words, o.words...)
		}
	}
	for p, o := range t.pairs {
		t.queue = append(t.queue, entry{o.count, p})
	}
	heap.Init(&t.queue)
	return t
}

// enter adds word i and its pairs.
func (t *table) enter(pairs map[pair]*occurrences, i int32, w word, token *[256]uint32) {
	tokens := make([]uint32, len(w.text))
	for j := range len(w.text) {
		tokens[j] = token[w.text[j]]
	}
	t.tokens[i], t.counts[i] = tokens, w.count
	for j := 1; j < len(tokens); j++ {
		add(pairs, pairOf(tokens[j-1], tokens[j]), w.count, i)
	}
}

// add adds occurrences of a pair in a word.
func add(pairs map[pair]*occurrences, p pair, count int64, i int32) {
	o := pairs[p]
	if o == nil {
		o = new(occurrences)
		pairs[p] = o
	}
	o.count += count
	if n := len(o.words); n == 0 || o.words[n-1] != i {
		o.words = append(o.words, i)
	}
}

// learn merges until there are enough tokens, or no pair is frequent enough.
func (t *table) learn(ctx context.Context, o Options) ([]tokenizer.Merge, error) {
	goal := int(o.Vocab) - tokenizer.FirstMerged
	for len(t.text) < int(o.Vocab) && len(t.queue) > 0 {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		top := heap.Pop(&t.queue).(entry)
		now := t.pairs[top.pair]
		if now == nil {
			continue
		}
		// counts only fall while a pair waits, so requeue it with its new count
		if now.count != top.count {
			if now.count > 0 {
				heap.Push(&t.queue, entry{now.count, top.pair})
			}
			continue
		}
		if top.count < int64(o.CountMin) {
			break
		}
		t.merge(top.pair, now.words)
		if n := len(t.text) - tokenizer.FirstMerged; o.Progress != nil && (n%256 == 0 || n == goal) {
			o.Progress(Progress{Merges: n, MergesGoal: goal})
		}
	}
	return t.merges, nil
}

// merge replaces a pair by one new token in the given words.
func (t *table) merge(p pair, words []int32) {
	left, right := uint32(p>>32), uint32(p)
	text := t.text[left] + t.text[right]
	token, ok := t.ids[text]
	if !ok {
		token = uint32(len(t.text))
		t.text = append(t.text, text)
		t.ids[text] = token
	}
	t.merges = append(t.merges, tokenizer.Merge{Left: left, Right: right, Token: token})
	fresh := make(map[pair]bool)
	for _, i := range words {
		t.mergeWord(i, left, right, token, fresh)
	}
	delete(t.pairs, p)
	delete(fresh, p)
	for p := range fresh { // in any order: the queue's order is total
		if o := t.pairs[p]; o.count > 0 {
			heap.Push(&t.queue, entry{o.count, p})
		}
	}
}

// mergeWord merges in one word, updates the counts of the neighbouring pairs, and adds new pairs to
// fresh.
func (t *table) mergeWord(i int32, left, right, token uint32, fresh map[pair]bool) {
	tokens, count := t.tokens[i], t.counts[i]
	out := tokens[:0] // writes never overtake reads
	lose := func(p pair) {
		if o := t.pairs[p]; o != nil {
			o.count -= count
		}
	}
	gain := func(p pair) {
		add(t.pairs, p, count, i)
		fresh[p] = true
	}
	for j := 0; j < len(tokens); j++ {
		if tokens[j] != left || j+1 == len(tokens) || tokens[j+1] != right {
			out = append(out, tokens[j])
			continue
		}
		if n := len(out); n > 0 {
			lose(pairOf(out[n-1], left))
			gain(pairOf(out[n-1], token))
		}
		if j+2 < len(tokens) {
			lose(pairOf(right, tokens[j+2]))
			gain(pairOf(token, tokens[j+2]))
		}
		out = append(out, token)
		j++
	}
	t.tokens[i] = slices.Clip(out)
}

// entry is a pair waiting to be merged, with its count when it was queued.
type entry struct {
	count int64
	pair  pair
}

// queue is a heap of pairs, the most frequent first.
type queue []entry

// Len is the number of entries.
func (q queue) Len() int { return len(q) }

// Less reports whether entry i comes first.
func (q queue) Less(i, j int) bool {
	return q[i].count > q[j].count || q[i].count == q[j].count && q[i].pair < q[j].pair
}

// Swap exchanges two entries.
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push adds an entry at the end.
func (q *queue) Push(x any) { *q = append(*q, x.(entry)) }

// Pop removes the entry at the end.
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
