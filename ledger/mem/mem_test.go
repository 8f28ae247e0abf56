package mem_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/change"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/ledger/mem"
	"github.com/entrain-network/entrain/loop"
	"github.com/entrain-network/entrain/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testChain = "test-chain"

var (
	testSpec  = []byte("name = \"demo\"\n")
	testStart = time.UnixMilli(1_800_000_000_000)
)

func privateKey(name string) key.Private {
	return key.FromSeed(wire.Sum("entrain/test/key", []byte(name)))
}

// world is a chain on a virtual loop.
type world struct {
	t     *testing.T
	loop  *loop.Virtual
	chain *mem.Chain
	sign  map[string]*ledger.Signer
}

func newWorld(t *testing.T, o mem.Options) *world {
	t.Helper()
	o.Genesis.Chain = testChain
	w := &world{t: t, loop: loop.NewVirtual(testStart), sign: map[string]*ledger.Signer{}}
	chain, err := mem.New(w.loop, o)
	if err != nil {
		t.Fatal(err)
	}
	w.chain = chain
	return w
}

func (w *world) run(d time.Duration) { w.loop.Run(w.loop.Now().Add(d)) }

func (w *world) tx(who string, body host.Body) []byte {
	w.t.Helper()
	s := w.sign[who]
	if s == nil {
		s = &ledger.Signer{Chain: testChain, Key: privateKey(who)}
		w.sign[who] = s
	}
	b, err := s.Sign(w.loop.Now(), body)
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

// result is what a call of Submit came to.
type result struct {
	calls int
	at    time.Time
	err   error
}

func (w *world) submit(ctx context.Context, c *mem.Client, tx []byte) *result {
	r := new(result)
	c.Send(ctx, tx, func(err error) {
		r.calls++
		r.at, r.err = w.loop.Now(), err
	})
	return r
}

func createRun(owner string) host.CreateRun {
	return host.CreateRun{
		Limits: coordinator.Limits{Members: 64, Witnesses: 4},
		Config: coordinator.Config{
			Name: "demo", MinMembers: 1, StartMembers: 1,
			WarmupMs: 600_000, RoundTrainMs: 10_000, RoundWitnessMs: 10_000, CooldownMs: 10_000, EpochMs: 600_000,
			TotalSteps: 100, BatchStart: 8, BatchEnd: 8, SequenceTokens: 128, MissedMax: 3,
			ModelHash: wire.Sum("entrain/test/model"), SpecHash: host.SpecHash(testSpec), Owner: privateKey(owner).Public(),
		},
		Spec: testSpec,
	}
}

func join() host.RunMessage {
	return host.RunMessage{Run: "demo", Message: coordinator.Append(nil, coordinator.Join{Speed: 1})}
}

// withRun makes the chain's run.
func (w *world) withRun() *world {
	w.t.Helper()
	r := w.submit(w.t.Context(), w.chain.Client(), w.tx("owner", createRun("owner")))
	for r.calls == 0 {
		w.run(time.Second)
	}
	if r.err != nil {
		w.t.Fatal(r.err)
	}
	return w
}

func TestMessagesTakeTheirTime(t *testing.T) {
	w := newWorld(t, mem.Options{Delay: 30 * time.Millisecond}).withRun()
	c := w.chain.Client()
	begin := w.loop.Now()
	joined := w.submit(t.Context(), c, w.tx("ann", join()))
	forged := w.submit(t.Context(), c, []byte("hello"))
	w.run(time.Second)
	if d := joined.at.Sub(begin); joined.calls != 1 || joined.err != nil || d < 60*time.Millisecond || d > 260*time.Millisecond {
		t.Errorf("joined %d times after %v with %v", joined.calls, d, joined.err)
	}
	if forged.calls != 1 || host.CodeOf(forged.err) != host.CodeMalformed {
		t.Errorf("%d answers to rubbish, %v", forged.calls, forged.err)
	}
}

// history runs the same story, with loss, jitter, an outage and a cut, and returns all that could be seen of it.
func history(t *testing.T, seed string) (log []string, end *host.Host) {
	w := newWorld(t, mem.Options{
		Seed: wire.Sum("entrain/test/seed", []byte(seed)), Delay: 20 * time.Millisecond, Jitter: 80 * time.Millisecond, LossPerMille: 300,
	}).withRun()
	var results []*result
	for i := range 30 {
		c := w.chain.Client()
		c.Watch(t.Context(), "demo", func(s ledger.Snapshot) {
			log = append(log, fmt.Sprint(w.loop.Now().UnixMilli(), " client ", i, " ", s.Height, " ", s.State.Hash()))
		})
		results = append(results, w.submit(t.Context(), c, w.tx(fmt.Sprint(i), join())))
		switch i {
		case 5:
			w.chain.Outage(true)
		case 10:
			w.chain.Outage(false)
			c.Cut(true)
			w.loop.After(5*time.Second, func() { c.Cut(false) })
		}
		w.run(300 * time.Millisecond)
	}
	w.run(time.Minute)
	for i, r := range results {
		if r.calls != 1 || r.err != nil {
			t.Errorf("join %d: %d answers, %v", i, r.calls, r.err)
		}
		log = append(log, fmt.Sprint("join ", i, " at ", r.at.UnixMilli()))
	}
	return log, w.chain.Host()
}

func TestTheSameSeedGivesTheSameHistory(t *testing.T) {
	first, end := history(t, "a")
	again, endAgain := history(t, "a")
	if !slices.Equal(first, again) || !bytes.Equal(end.Append(nil), endAgain.Append(nil)) {
		t.Error("two histories of one seed differ")
	}
	if other, _ := history(t, "b"); slices.Equal(first, other) {
		t.Error("the histories of two seeds are equal")
	}
	if v, _ := end.View("demo"); v.State.Count() != 30 {
		t.Errorf("%d members, want 30: losses must neither lose nor repeat a join", v.State.Count())
	}
}

func TestWatchersNeverGoBack(t *testing.T) {
	w := newWorld(t, mem.Options{Block: 10 * time.Millisecond, Jitter: 200 * time.Millisecond}).withRun()
	c := w.chain.Client()
	var heights []uint64
	c.Watch(t.Context(), "demo", func(s ledger.Snapshot) { heights = append(heights, s.Height) })
	for i := range 50 {
		w.submit(t.Context(), c, w.tx(fmt.Sprint(i), join()))
		w.run(10 * time.Millisecond)
	}
	w.run(time.Second)
	v, _ := w.chain.Host().View("demo")
	if !slices.IsSorted(heights) || len(slices.Compact(slices.Clone(heights))) != len(heights) {
		t.Errorf("heights are %v", heights)
	}
	if last := heights[len(heights)-1]; last < v.Changed {
		t.Errorf("the last height seen is %d, the last change was at %d", last, v.Changed)
	}
}

func TestNothingIsCalledAfterTheContextHasEnded(t *testing.T) {
	w := newWorld(t, mem.Options{Delay: 10 * time.Millisecond}).withRun()
	c := w.chain.Client()
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	c.Watch(ctx, "demo", func(ledger.Snapshot) { calls++ })
	r := w.submit(ctx, c, w.tx("ann", join()))
	c.Spec(ctx, "demo", func([]byte, error) { calls++ })
	cancel()
	w.run(time.Minute)
	if calls != 0 || r.calls != 0 {
		t.Errorf("%d and %d calls", calls, r.calls)
	}
	w.chain.Stop()
	for range 1000 {
		if !w.loop.Step() {
			return
		}
	}
	t.Error("a chain that was stopped keeps its loop busy")
}

func TestOutageLosesWhatWaitsAndClientsSendItAgain(t *testing.T) {
	w := newWorld(t, mem.Options{Block: time.Second, Retry: 2 * time.Second}).withRun()
	r := w.submit(t.Context(), w.chain.Client(), w.tx("ann", join()))
	w.run(100 * time.Millisecond) // it waits for a block
	w.chain.Outage(true)
	w.run(time.Minute)
	height := w.chain.Host().Height()
	w.run(time.Minute)
	if r.calls != 0 || w.chain.Host().Height() != height {
		t.Errorf("%d answers, and blocks, during an outage", r.calls)
	}
	w.chain.Outage(false)
	w.run(10 * time.Second)
	if r.calls != 1 || r.err != nil {
		t.Errorf("%d answers after it, %v", r.calls, r.err)
	}
}

func TestLightWatchersSeeWhatBeginsAtOnceAndTheRestLater(t *testing.T) {
	w := newWorld(t, mem.Options{Block: 100 * time.Millisecond, Delay: 20 * time.Millisecond, Jitter: 80 * time.Millisecond, Light: true})
	run := createRun("owner")
	run.Limits = coordinator.Limits{Members: 1000, Witnesses: 32} // in small ones no page is all filters
	if r := w.submit(t.Context(), w.chain.Client(), w.tx("owner", run)); r.calls == 0 {
		w.run(time.Second)
	}
	var seen []ledger.Snapshot
	c := w.chain.Client()
	lightly := c.As(privateKey("ann")).(ledger.Lighter).WatchLightly(t.Context(), "demo", func(s ledger.Snapshot) { seen = append(seen, s) })
	shows := func(after time.Duration, states, members int, light bool) {
		t.Helper()
		w.run(after)
		if len(seen) != states {
			t.Fatalf("%d states were shown, want %d", len(seen), states)
		}
		last := seen[states-1]
		v, _ := w.chain.Host().View("demo")
		want := v.State.Bytes()
		if light {
			want = change.Of(v.State).State()
		}
		if int(last.State.Count()) != members || last.Light != light || members == int(v.State.Count()) && !bytes.Equal(last.State.Bytes(), want) {
			t.Fatalf("%d members are shown, light %t; want %d, light %t", last.State.Count(), last.Light, members, light)
		}
	}
	shows(time.Second, 1, 0, false)
	lightly(true, false)
	w.submit(t.Context(), c, w.tx("ann", join())) // with whom a warmup begins
	shows(time.Second, 2, 1, true)
	w.submit(t.Context(), c, w.tx("bob", join()))
	shows(time.Second, 2, 1, true)
	shows(5*time.Second, 3, 2, true)
	lightly(false, false)
	shows(time.Second, 4, 2, false) // of the same height
	lightly(true, false)
	w.submit(t.Context(), c, w.tx("cem", join()))
	lightly(false, false)
	shows(time.Second, 5, 3, false)
}
