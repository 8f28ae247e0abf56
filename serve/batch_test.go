package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/entrain-network/entrain/llama"
)

// questionOf returns one of many different questions.
func questionOf(r *rand.Rand, c llama.Config) Question {
	q := Question{Most: 1 + r.IntN(40), Temperature: float32(r.IntN(3)), TopK: r.IntN(2) * 9, TopP: 1 - float32(r.IntN(2))/3, Seed: fmt.Sprintf("%064x", r.Uint64()), Stop: []string{}}
	if r.IntN(3) == 0 {
		q.Stop = []string{"e", "xyz"}
	}
	for range 1 + r.IntN(c.Context-2) {
		q.Prompt = append(q.Prompt, uint32(r.IntN(4)*r.IntN(c.Vocab/4))) // often with the same beginning
	}
	return q
}

// Answers that are computed side by side, beginning and ending in any order, some given up, in
// memory for fewer than there are slots, are those that the model gives alone.
func TestAnswersSideBySideAreThoseOfTheModelAlone(t *testing.T) {
	for _, numerics := range []llama.Numerics{llama.Exact, llama.Exact8} {
		cfg := tiny
		cfg.HeadDim, cfg.FFN, cfg.Numerics = 32, 64, numerics
		m := openOf(t, "side", cfg)
		b := newBatcher(m, 5, 3*cfg.TextBytes(cfg.Context))
		var group sync.WaitGroup
		r := rand.New(rand.NewPCG(1, 7))
		for i := range 60 {
			q := questionOf(r, cfg)
			group.Go(func() {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				jobs, err := b.ask(ctx, scoring{}, q)
				if err != nil {
					t.Error(err)
					return
				}
				said := ""
				a, err := jobs[0].wait(func(text []byte, _ []scored) error {
					said += string(text)
					if i%7 == 0 {
						cancel() // and goes away
					}
					return nil
				})
				if i%7 == 0 && errors.Is(err, context.Canceled) {
					return
				}
				alone, failed := m.answer(t.Context(), m.decoder.Generator(), q, func([]byte) error { return nil })
				if err != nil || failed != nil || fmt.Sprint(a) != fmt.Sprint(alone) || said != string(alone.text) {
					t.Errorf("question %d: %v beside others, %v alone; %v, %v", i, a, alone, err, failed)
					return
				}
				if text, err := m.Verify(t.Context(), *m.receipt(q, a)); err != nil || text != said {
					t.Errorf("question %d: its receipt: %q, %v", i, text, err)
				}
			})
		}
		group.Wait()
		if _, err := b.ask(t.Context(), scoring{}, Question{Prompt: []uint32{1}, Most: 1, Seed: strings.Repeat("0", 64)}); err != nil {
			t.Error(err)
		}
	}
}

func TestQuestionsWaitInALineOfBoundedLength(t *testing.T) {
	m := open(t, "a")
	b := newBatcher(m, 2, 0)
	b.running = true // by this test
	ask := func() ([]*job, error) {
		return b.ask(t.Context(), scoring{}, Question{Prompt: []uint32{1, 2}, Most: 20, Seed: strings.Repeat("0", 64)})
	}
	gone, leave := context.WithCancel(t.Context())
	if _, err := b.ask(gone, scoring{}, Question{Prompt: []uint32{1}, Most: 1, Seed: strings.Repeat("0", 64)}); err != nil {
		t.Fatal(err)
	}
	leave() // who goes away makes room
	var jobs []*job
	for range waitingMost {
		j, err := ask()
		if err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, j...)
	}
	if _, err := ask(); !errors.Is(err, errBusy) {
		t.Errorf("a question beyond the line: %v", err)
	}
	b.run()
	for i, j := range jobs {
		if a, err := j.wait(nil); err != nil || len(a.Tokens) == 0 {
			t.Errorf("question %d: %v, %v", i, a, err)
		}
	}
	b.close()
	if _, err := ask(); !errors.Is(err, errClosed) {
		t.Errorf("a question to a closed server: %v", err)
	}
}

// A request of many answers does not hold up one that comes after it.
func TestSlotsGoToRequestsInTurn(t *testing.T) {
	m := open(t, "a")
	b := newBatcher(m, 2, 0)
	b.running = true // by this test
	ask := func(n int) []*job {
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		jobs, err := b.ask(ctx, scoring{}, slices.Repeat([]Question{{Prompt: []uint32{1, 2}, Most: 20, Seed: strings.Repeat("0", 64)}}, n)...)
		if err != nil {
			t.Fatal(err)
		}
		return jobs
	}
	many := ask(askedMost)
	one, two := ask(1)[0], ask(1)[0]
	for i, want := range [][]*job{{many[0], one}, {one, many[1]}, {many[1], two}, {two, many[2]}, {many[2], many[3]}} {
		b.admit()
		if len(b.active) != 2 || b.active[0].job != want[0] || b.active[1].job != want[1] {
			t.Fatalf("at turn %d others are answered", i)
		}
		b.active[0].end(nil)
	}
}

// The memory of keys and values stays within its bound, which the texts in it keep to.
func TestMemoryIsBounded(t *testing.T) {
	m := open(t, "a")
	most := m.config.TextBytes(30) * 2
	b := newBatcher(m, 4, most)
	r := rand.New(rand.NewPCG(2, 3))
	for i := range 300 {
		q := questionOf(r, m.config)
		if len(q.Prompt)+q.Most > 30 {
			continue
		}
		b.running = true // by this test
		if _, err := b.ask(t.Context(), scoring{}, q); err != nil {
			t.Fatal(err)
		}
		b.admit()
		total, used := int64(0), int64(0)
		for k := range b.slots {
			total += b.slots[k].bytes
			used += b.slots[k].text.Memory()
		}
		if total > most || used > total || len(b.active) == 0 {
			t.Fatalf("question %d: texts may take %d bytes and take %d, of %d; %d are under way", i, total, used, most, len(b.active))
		}
		if i%3 > 0 { // else they pile up
			b.run()
		}
	}
}

// A server that is told to end finishes the answers under way, refuses those that wait and those
// that come, and says so as OpenAI's clients expect.
func TestAServerThatEndsFinishesItsAnswers(t *testing.T) {
	m := open(t, "a")
	s, err := NewServer(m, 1, 0, true)
	if err != nil {
		t.Fatal(err)
	}
	s.batch.running = true // by this test, until both questions are there
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	url := "http://" + l.Addr().String() + "/v1/completions"
	type reply struct {
		status int
		header http.Header
		body   string
	}
	replies := make(chan reply, 2)
	asked := func(n int) {
		for { // until the server has the question
			s.batch.mu.Lock()
			got := len(s.batch.waiting)
			s.batch.mu.Unlock()
			if got == n {
				return
			}
			runtime.Gosched()
		}
	}
	for n := range 2 {
		go func() {
			r, err := http.Post(url, "application/json", strings.NewReader(`{"prompt":"a","max_tokens":50,"seed":1}`))
			if err != nil {
				t.Error(err)
				return
			}
			defer r.Body.Close()
			body, _ := io.ReadAll(r.Body)
			replies <- reply{r.StatusCode, r.Header, string(body)}
		}()
		asked(n + 1)
	}
	s.batch.admit() // the first
	end()
	second := <-replies
	if second.status != http.StatusServiceUnavailable || second.header.Get("Retry-After") == "" || !strings.Contains(second.body, `"type":"server_error"`) {
		t.Errorf("the one that waits: %+v", second)
	}
	s.batch.run()
	if first := <-replies; first.status != http.StatusOK || !strings.Contains(first.body, `"finish_reason":"`) {
		t.Errorf("the one under way: %+v", first)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// 256 requests at once are all answered, each as it would be alone.
func TestRequestsAtOnceAreAllAnswered(t *testing.T) {
	server := start(t, open(t, "a"), 8)
	ask := func(i int) string {
		c, status, raw := post(t, server, fmt.Sprintf(`{"prompt":"%d","max_tokens":8,"seed":%d}`, i%16, i%16))
		if status != http.StatusOK || len(c.Choices) != 1 {
			t.Errorf("request %d: %d %s", i, status, raw)
			return ""
		}
		return c.Choices[0].Text
	}
	var alone [16]string
	for i := range alone {
		alone[i] = ask(i)
	}
	var all sync.WaitGroup
	for i := range requestsMost {
		all.Go(func() {
			if got := ask(i); got != alone[i%16] {
				t.Errorf("request %d: %q beside others, %q alone", i, got, alone[i%16])
			}
		})
	}
	all.Wait()
}

func TestTooManyRequestsAreRefused(t *testing.T) {
	m := open(t, "a")
	s, err := NewServer(m, 1, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	for range requestsMost / 2 { // whose bodies do not end
		s.reading.Take("192.0.2.1")
	}
	r := httptest.NewRequest("POST", "/v1/completions", strings.NewReader(`{"prompt":"a"}`))
	r.Header.Set("Content-Type", "application/json")
	s.Handler().ServeHTTP(w, r)
	if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), `"code":"rate_limit_exceeded"`) {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	w, r = httptest.NewRecorder(), httptest.NewRequest("POST", "/v1/completions", strings.NewReader("{"))
	r.Header.Set("Content-Type", "application/json")
	r.RemoteAddr = "198.51.100.7:1234"
	if s.Handler().ServeHTTP(w, r); w.Code != http.StatusBadRequest {
		t.Errorf("another address: %d %s", w.Code, w.Body)
	}
	if _, err := NewServer(m, 1, 1000, false); err == nil || !strings.Contains(err.Error(), "not enough memory") {
		t.Errorf("a server with 1000 bytes: %v", err)
	}
}

// A page whose own name points to this machine gets no answers of a server that is for this machine
// alone.
func TestAPageElsewhereGetsNoAnswers(t *testing.T) {
	s, err := NewServer(open(t, "a"), 1, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	for host, want := range map[string]int{"evil.example": http.StatusMisdirectedRequest, l.Addr().String(): http.StatusOK} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+l.Addr().String()+"/v1/completions", strings.NewReader(`{"prompt":"a","max_tokens":1}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		r.Header.Set("Content-Type", "application/json")
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if got.Body.Close(); got.StatusCode != want {
			t.Errorf("%s: status %d, want %d", host, got.StatusCode, want)
		}
	}
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
