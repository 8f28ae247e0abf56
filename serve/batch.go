package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync"

	"github.com/entrain-network/entrain/llama"
)

// A batcher computes answers side by side. Each step reads one token of every answer under way, and
// a block of the prompts of those that begin, in one pass over the parameters. Answers begin and
// end between steps. The next to begin is of the request with the fewest answers under way, the
// oldest of those, so that a request of many answers does not hold up the others. What is computed
// beside an answer never changes it.
type batcher struct {
	model   *Model
	decoder *llama.Decoder
	memory  int64 // bytes of keys and values

	mu      sync.Mutex
	waiting []*job
	running bool  // a goroutine takes steps
	closed  error // why no question is taken any more

	// Of the goroutine that takes steps.
	slots  []slot
	active []*slot // those with a job, in the order in which they got it
	clock  int     // jobs that got a slot so far
}

// A slot holds the text of one answer at a time, and of the last one until another needs its place.
type slot struct {
	text  llama.Text
	bytes int64 // that the text may take
	used  int   // the clock when it got its last job
	job   *job
}

// A job is a question that is asked.
type job struct {
	ctx    context.Context // the request's own
	answer *answering
	unread []uint32      // tokens to read before the next is drawn
	news   chan struct{} // has an element when what follows has changed

	mu     sync.Mutex
	text   []byte   // that is certain
	scored []scored // tokens so far
	done   bool
	err    error
}

const (
	waitingMost = 256 // questions that wait for others; more are refused
	askedMost   = 64  // questions of one request
	promptRows  = 32  // tokens of prompts that a step reads
)

var (
	errBusy   = fmt.Errorf("%d requests wait already: try again later", waitingMost)
	errClosed = errors.New("the server is shutting down: try again later")
)

// newBatcher returns a batcher for the given number of answers side by side, at least one. Their
// keys and values take at most the given bytes; 0 means those of that many full contexts.
func newBatcher(m *Model, parallel int, memory int64) *batcher {
	if most := int64(parallel) * m.config.TextBytes(m.config.Context); memory == 0 || memory > most {
		memory = most
	}
	return &batcher{model: m, decoder: m.decoder.Fork(Rows(parallel)), memory: memory, slots: make([]slot, parallel)}
}

// room returns the most tokens that a prompt and its answer may have.
func (b *batcher) room() int {
	return sort.Search(b.model.config.Context, func(n int) bool { return b.model.config.TextBytes(n+1) > b.memory })
}

// ask begins to answer checked questions, all or none. If ctx ends, they are dropped.
func (b *batcher) ask(ctx context.Context, s scoring, questions ...Question) ([]*job, error) {
	jobs := make([]*job, len(questions))
	for i, q := range questions {
		jobs[i] = &job{ctx: ctx, answer: b.model.begin(q, s), unread: q.Prompt, news: make(chan struct{}, 1)}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed != nil {
		return nil, b.closed
	}
	b.waiting = slices.DeleteFunc(b.waiting, func(j *job) bool { return j.ctx.Err() != nil })
	if len(b.waiting)+len(jobs) > waitingMost {
		return nil, errBusy
	}
	b.waiting = append(b.waiting, jobs...)
	if !b.running {
		b.running = true
		go b.run()
	}
	return jobs, nil
}

// close refuses further questions, and drops those that wait.
func (b *batcher) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = errClosed
	for _, j := range b.waiting {
		j.tell(errClosed, true)
	}
	b.waiting = nil
}

// run takes steps until nothing is left to answer.
func (b *batcher) run() {
	for b.admit() {
		parts, jobs := b.parts()
		if err := b.decoder.Step(parts); err != nil {
			for _, s := range b.active {
				s.end(err)
			}
			continue
		}
		tokens, more := make([]uint32, len(parts)), make([]bool, len(parts))
		b.model.pool.Run(len(parts), func(i int) {
			if parts[i].Err == nil {
				tokens[i], more[i] = jobs[i].job.read(&parts[i])
			}
		})
		for i, s := range jobs {
			j := s.job
			j.unread = j.unread[len(parts[i].Tokens):]
			switch {
			case parts[i].Err == nil && len(j.unread) > 0:
			case parts[i].Err != nil || !more[i]:
				s.end(parts[i].Err)
			default:
				j.unread = tokens[i : i+1]
				j.tell(nil, false)
			}
		}
	}
}

// read scores tokens of the prompt, and draws the one after it, by the logits of a part. It reports
// whether the answer goes on.
func (j *job) read(p *llama.Part) (token uint32, more bool) {
	a, width := j.answer, j.answer.model.config.Vocab
	next := len(a.q.Prompt) - len(j.unread) + len(p.Tokens) - p.Want + 1
	for i := range p.Want {
		logits := p.Logits[i*width : (i+1)*width]
		if next+i < len(a.q.Prompt) {
			a.scored = append(a.scored, a.scoring.score(a.q.Prompt[next+i], logits))
		} else {
			token, more = a.next(logits)
		}
	}
	return token, more
}

// parts returns what a step reads, and in which slots: a token of each answer, and of the prompts,
// the oldest first, as many as there is room for.
func (b *batcher) parts() (parts []llama.Part, slots []*slot) {
	room := promptRows
	for _, s := range b.active {
		n := 1
		if len(s.job.answer.Tokens) == 0 {
			if n = min(len(s.job.unread), room); n == 0 {
				continue
			}
			room -= n
		}
		part := llama.Part{Text: &s.text, Tokens: s.job.unread[:n]}
		switch {
		case s.job.answer.scoring.prompt:
			part.Want = n
		case n == len(s.job.unread):
			part.Want = 1
		}
		parts, slots = append(parts, part), append(slots, s)
	}
	return parts, slots
}

// admit ends what nobody waits for, and gives slots to questions as far as there are slots and
// memory. It reports whether there is anything to do.
func (b *batcher) admit() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.active {
		if s.job != nil && s.job.ctx.Err() != nil {
			s.end(s.job.ctx.Err())
		}
	}
	b.active = slices.DeleteFunc(b.active, func(s *slot) bool { return s.job == nil })
	for len(b.waiting) > 0 && len(b.active) < len(b.slots) {
		i := b.next()
		if j := b.waiting[i]; j.ctx.Err() == nil && !b.place(j) {
			break
		}
		b.waiting = slices.Delete(b.waiting, i, i+1)
	}
	b.running = len(b.active) > 0
	return b.running
}

// next returns which of the waiting jobs is next.
func (b *batcher) next() int {
	under := map[context.Context]int{} // answers under way of each request
	for _, s := range b.active {
		under[s.job.ctx]++
	}
	first := 0
	for i, j := range b.waiting {
		if under[j.ctx] < under[b.waiting[first].ctx] {
			first = i
		}
	}
	return first
}

// place gives a job the free slot whose text begins most like its own, or that has been free for
// the longest time. It reports false if other jobs need the memory.
func (b *batcher) place(j *job) bool {
	prompt := j.answer.q.Prompt
	most := len(prompt) + j.answer.most
	need, taken := b.model.config.TextBytes(most), int64(0)
	var free []*slot // the one to use first
	for i := range b.slots {
		if s := &b.slots[i]; s.job == nil {
			free = append(free, s)
		} else {
			taken += s.bytes
		}
	}
	if taken+need > b.memory {
		return false
	}
	slices.SortFunc(free, func(x, y *slot) int {
		return cmp.Or(cmp.Compare(y.text.Shared(prompt), x.text.Shared(prompt)), cmp.Compare(x.used, y.used))
	})
	s, others := free[0], free[1:]
	s.bytes = max(s.bytes, need)
	for _, o := range free {
		taken += o.bytes
	}
	// What is kept of answers before goes, the oldest first, until there is memory.
	slices.SortFunc(others, func(x, y *slot) int { return cmp.Compare(x.used, y.used) })
	for _, o := range others {
		if taken > b.memory {
			taken -= o.bytes
			o.free()
		}
	}
	if taken > b.memory {
		s.free()
		s.bytes = need
	}
	b.clock++
	s.job, s.used = j, b.clock
	if j.answer.scoring.prompt {
		s.text.Keep(nil, most) // each of its tokens is read for its logits
	} else {
		j.unread = prompt[s.text.Keep(prompt, most):]
	}
	b.active = append(b.active, s)
	return true
}

func (s *slot) free() {
	s.text.Free()
	s.bytes = 0
}

// end ends the slot's job, if it has one.
func (s *slot) end(err error) {
	if s.job != nil {
		s.job.tell(err, true)
		s.job = nil
	}
}

// tell makes known what is new of the answer.
func (j *job) tell(err error, done bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.text, j.scored, j.err, j.done = j.answer.text[:j.answer.sure], j.answer.scored, err, done
	select {
	case j.news <- struct{}{}:
	default:
	}
}

// wait returns the answer, once it is complete. Until then it passes the text to emit as it becomes
// certain, with the scores of tokens so far that were not passed before, unless emit is nil: who
// reads slowly gets more at once, and delays nobody else.
func (j *job) wait(emit func(text []byte, scores []scored) error) (answer, error) {
	said, told := 0, 0
	for {
		select {
		case <-j.news:
		case <-j.ctx.Done():
			return answer{}, j.ctx.Err()
		}
		j.mu.Lock()
		text, scores, done, err := j.text, j.scored, j.done, j.err
		j.mu.Unlock()
		if err != nil {
			return answer{}, err
		}
		if emit != nil && len(text) > said {
			if err := emit(text[said:], scores[told:]); err != nil {
				return answer{}, err
			}
			said, told = len(text), len(scores)
		}
		if done {
			a := j.answer.answer
			a.untold = a.scored[told:]
			return a, nil
		}
	}
}
