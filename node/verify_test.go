package node

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/loop"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// verified makes half of a run's results be checked.
func verified(overlap uint8) func(*coordinator.Config) {
	return func(c *coordinator.Config) {
		c.Overlap, c.VerificationPercent, c.VerifyMs, c.DisputeMs = overlap, 50, 10_000, 5_000
	}
}

// liar flips a bit of its updates from some step on.
type liar struct {
	toy
	from uint32
}

func (l liar) Step(ctx context.Context, params, state engine.Vector, spans []batch.Span, step uint32) (engine.Result, error) {
	r, err := l.toy.Step(ctx, params, state, spans, step)
	if step >= l.from {
		r.Payload[4] ^= 1
	}
	return r, err
}

// lying makes a node lie and defend its lies.
func lying(from uint32) func(*Config) {
	return func(c *Config) {
		honest := c.Engine.(toy)
		c.Engine, c.Disputant = liar{honest, from}, toyDisputant{toy: honest, lies: true}
	}
}

// miser is a handler that keeps its optimizer states to itself.
type miser struct{ p2p.Handler }

func (m miser) Leaves(root wire.Hash) ([]wire.Hash, bool) {
	if b, ok := m.Handler.Chunk(root, 0); ok && len(b) == 4*(toy{}).StateLen() {
		return nil, false
	}
	return m.Handler.Leaves(root)
}

func withholding(c *Config) {
	listen := c.Listen
	c.Listen = func(h p2p.Handler) (p2p.Network, error) { return listen(miser{h}) }
}

// verdicts returns how many verdicts with a status a node reported.
func (h *testNode) verdicts(status string) (n int) {
	for _, ev := range h.events {
		if v, ok := ev.(event.Verdict); ok && v.Status == status {
			n++
		}
	}
	return n
}

func (w *world) offences() (list []string) {
	for _, c := range w.state().Convictions() {
		list = append(list, fmt.Sprintf("%s of %s", c.Offence, c.Key))
	}
	return list
}

func TestHonestResultsPass(t *testing.T) {
	for overlap := range uint8(2) {
		t.Run(fmt.Sprint("overlap ", overlap), func(t *testing.T) {
			// A verifier has the old parameters and the state in one memory if they are in files.
			w := newWorldOf(t, toy{}.StateLen(), 120, 4, verified(overlap))
			for i := range 4 {
				w.start(i)
			}
			w.until(20*time.Minute, w.finished)
			w.agree(0, 1, 2, 3)
			drawn, passed := w.state().ChecksDrawn()
			if drawn < 120 || passed < drawn-8 {
				t.Errorf("%d checks were drawn and %d passed, of some 240", drawn, passed)
			}
			if list := w.offences(); len(list) > 0 {
				t.Errorf("honest members were convicted: %s", list)
			}
			if w.state().Epoch() < 2 {
				t.Error("the run had one epoch only; the test wants the way from one to the next")
			}
			for i, h := range w.hosts {
				if h.verdicts("passed") == 0 {
					t.Errorf("node %d passed nobody", i)
				}
				if n := len(h.params.Held) + len(h.optim.Held); n > 12 {
					t.Errorf("node %d holds %d versions at the end", i, n)
				}
				for _, ev := range h.events {
					if r, ok := ev.(event.Refused); ok && !strings.Contains(r.Text, "announce") {
						t.Errorf("node %d was refused: %s", i, r.Text)
						break
					}
				}
			}
		})
	}
}

func TestALiarIsConvictedByADispute(t *testing.T) {
	t.Parallel()
	for overlap := range uint8(2) {
		t.Run(fmt.Sprint("overlap ", overlap), func(t *testing.T) {
			w := newWorld(t, 120, 4, verified(overlap))
			for i := range 4 {
				w.start(i)
			}
			bad := w.start(4, lying(5))
			w.until(20*time.Minute, func() bool { return w.state().ConvictionsTotal() > 0 })
			w.until(20*time.Minute, w.finished)
			w.agree(0, 1, 2, 3)
			list := w.state().Convictions()
			if len(list) != 1 || list[0].Key != w.key(4).Public() || list[0].Offence != dispute.WrongResult {
				t.Errorf("convicted were %s, want the liar of a wrong result", w.offences())
			}
			if bad.expelled == nil || !strings.Contains(bad.expelled.Error(), "wrong result") {
				t.Errorf("the liar's node ends with %v", bad.expelled)
			}
			accused, seen := 0, false
			for i, h := range w.hosts[:4] {
				accused += h.verdicts("wrong")
				for _, ev := range h.events {
					v, _ := ev.(event.Verdict)
					seen = seen || v.Status == event.Wrong && strings.Contains(v.Text, "update")
				}
				if ev, ok := first[event.Convicted](h); !ok || !strings.Contains(ev.Text, w.key(4).Public().String()) {
					t.Errorf("node %d told nothing of the conviction: %+v", i, ev)
				}
				if !h.saw(func(ev event.Event) bool { d, ok := ev.(event.Dispute); return ok && d.Stage == "evidence" }) {
					t.Errorf("node %d saw no dispute come to its evidence", i)
				}
			}
			if accused == 0 || !seen {
				t.Errorf("%d found the result wrong, and said in what: %v", accused, seen)
			}
		})
	}
}

func TestWithholdingTheStateIsStruck(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 400, 4, verified(0))
	for i := range 4 {
		w.start(i)
	}
	w.start(4, withholding)
	strikes := uint8(0)
	w.until(20*time.Minute, func() bool {
		if i, ok := w.state().Find(w.key(4).Public()); ok {
			strikes = max(strikes, w.state().Member(i).Strikes)
		}
		return w.finished() || strikes > 0
	})
	if strikes == 0 {
		t.Error("the member that serves no state was not struck")
	}
	w.until(20*time.Minute, w.finished)
	w.agree(0, 1, 2, 3)
	for _, c := range w.state().Convictions() {
		if c.Key != w.key(4).Public() {
			t.Errorf("convicted were %s", w.offences())
		}
	}
}

func TestAVerifierThatCrashesHurtsNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 160, 4, verified(0))
	for i := range 5 {
		w.start(i)
	}
	victim := 0
	w.until(20*time.Minute, func() bool {
		for _, c := range w.state().Checks() {
			for i := range 5 {
				if c.Verifier < w.state().Count() && w.state().Key(c.Verifier) == w.key(i).Public() && w.state().Step() > 10 {
					victim = i
					return true
				}
			}
		}
		return false
	})
	w.crash(victim)
	step := w.state().Step()
	w.until(20*time.Minute, func() bool { return w.state().Step() > step+20 || w.finished() })
	w.start(victim)
	w.until(20*time.Minute, w.finished)
	w.agree(0, 1, 2, 3, 4)
	if list := w.offences(); len(list) > 0 {
		t.Errorf("convicted were %s", list)
	}
}

// slandering makes a node find whatever others did wrong.
func slandering(c *Config) {
	honest := c.Engine.(toy)
	c.Engine, c.Disputant = &slanderer{toy: honest}, toyDisputant{toy: honest, slanders: true}
}

// slanderer computes every second share wrong in a state that it did not make itself.
type slanderer struct {
	toy
	own wire.Hash // state after its last own step
}

func (s *slanderer) Step(ctx context.Context, params, state engine.Vector, spans []batch.Span, step uint32) (engine.Result, error) {
	before := merkle.Root(s.Leaves(state))
	r, err := s.toy.Step(ctx, params, state, spans, step)
	if s.own != (wire.Hash{}) && before != s.own {
		r.Payload[5] ^= 1
		return r, err
	}
	s.own = merkle.Root(s.Leaves(state))
	return r, err
}

// inStage waits for a dispute in a stage and returns it.
func (w *world) inStage(stage dispute.Stage) (d dispute.Dispute) {
	w.t.Helper()
	w.until(20*time.Minute, func() bool {
		for _, d = range w.state().Disputes() {
			if d.Stage == stage {
				return true
			}
		}
		return false
	})
	return d
}

// host returns which node a member is.
func (w *world) host(member coordinator.Member) int {
	for i := range w.hosts {
		if w.key(i).Public() == w.state().Key(member) {
			return i
		}
	}
	w.t.Fatalf("member %d is not a node", member)
	return 0
}

func TestARestartLosesNoDispute(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		bad     func(*Config)
		stage   dispute.Stage
		victim  func(dispute.Dispute) coordinator.Member
		offence dispute.Offence
	}{
		{"the accuser restarts", lying(5), dispute.StageDescending, func(d dispute.Dispute) coordinator.Member { return d.Accuser }, dispute.WrongResult},
		{"the accused restarts", slandering, dispute.StageDefending, func(d dispute.Dispute) coordinator.Member { return d.Accused }, dispute.FalseAccusation},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, 120, 4, verified(0))
			for i := range 4 {
				w.start(i)
			}
			w.start(4, c.bad)
			d := w.inStage(c.stage)
			victim := w.host(c.victim(d))
			if victim == 4 {
				t.Fatalf("the dispute is the wrong way round: %+v", d)
			}
			w.crash(victim)
			back := w.clock.Now().Add(time.Second)
			w.until(time.Minute, func() bool { return w.clock.Now().After(back) })
			w.start(victim)
			w.until(20*time.Minute, func() bool { return w.state().ConvictionsTotal() > 0 })
			first := w.state().Convictions()[0]
			if first.Key != w.key(4).Public() || first.Offence != c.offence {
				t.Errorf("convicted were %s, want %s of %s", w.offences(), c.offence, w.key(4).Public())
			}
			w.until(20*time.Minute, w.finished)
			w.agree(0, 1, 2, 3)
			if n := w.state().ConvictionsTotal(); n != 1 {
				t.Errorf("%d were convicted: %s", n, w.offences())
			}
			for i, h := range w.hosts[:4] {
				// Checks of the last results, of which the drain rounds decide, may end with the run.
				const drained = 3
				for _, kept := range h.store.cases {
					if kept.Round+drained < w.state().Round() {
						t.Errorf("node %d still keeps the case of round %d, member %d, in round %d", i, kept.Round, kept.Member, w.state().Round())
					}
				}
			}
		})
	}
}

func TestWhoLeavesServesUntilItsLastResultsAreChecked(t *testing.T) {
	for overlap := range uint8(2) {
		w := newWorld(t, 60, 3, verified(overlap), func(c *coordinator.Config) { c.VerificationPercent = 100 })
		for i := range 4 {
			w.start(i)
		}
		w.until(time.Minute, func() bool { return w.state().Step() >= 10 })
		stopped := false
		w.hosts[3].Stop(10*time.Second, func() { stopped = true })
		w.until(time.Minute, func() bool { return stopped })
		w.until(20*time.Minute, w.finished)
		i, _ := w.state().Find(w.key(3).Public())
		if m := w.state().Member(i); m.Status != coordinator.StatusWithdrawn || m.Strikes != 0 || m.Passed != m.Results || m.Results == 0 {
			t.Errorf("overlap %d: the member that left is %s, has %d strikes, and %d of its %d results were passed", overlap, m.Status, m.Strikes, m.Passed, m.Results)
		}
	}
}

// inLongRounds returns a run of four members, after ten of its steps, whose rounds may last ten
// minutes and in which every result is checked.
func inLongRounds(t *testing.T) *world {
	w := newWorld(t, 60, 3, verified(0), func(c *coordinator.Config) {
		c.VerificationPercent, c.VerifyMs, c.DisputeMs = 100, 600_000, 3_600_000
		c.RoundTrainMs, c.EpochMs = 600_000, 3_600_000
	})
	for i := range 4 {
		w.start(i)
	}
	w.until(time.Minute, func() bool { return w.state().Step() >= 10 })
	return w
}

// Nobody can be checked, or answer, where there are no blocks, however long the phase would last.
func TestWhoLeavesDoesNotWaitForALedgerThatIsGone(t *testing.T) {
	w := inLongRounds(t)
	w.chain.Outage(true)
	limit := 2 * silentAfter
	stopped := false
	w.hosts[3].Stop(3*time.Second, func() { stopped = true })
	w.until(limit, func() bool { return stopped })
}

// A ledger that had nothing to tell for long is not gone because it is slow to take one message.
func TestWhoLeavesStaysWhileTheLedgerIsOnlySlow(t *testing.T) {
	w := inLongRounds(t)
	for i := range 3 {
		w.crash(i)
	}
	quiet := w.clock.Now().Add(3 * silentAfter) // nobody ends the round
	w.until(4*silentAfter, func() bool { return w.clock.Now().After(quiet) })
	w.chain.Outage(true)
	stopped := false
	w.hosts[3].Stop(3*time.Second, func() { stopped = true })
	slow := w.clock.Now().Add(submitFor + 2*time.Second)
	w.until(silentAfter, func() bool { return w.clock.Now().After(slow) })
	w.chain.Outage(false)
	if stopped {
		t.Fatal("the member left while the ledger was only slow")
	}
	w.until(silentAfter, func() bool { return !w.member(3).Status.Present() })
	if stopped {
		t.Error("the member left before its last results were checked")
	}
}

// serves is an exchange that has one blob, which comes after a time, and no other.
type serves struct {
	exchange
	server
	loop  loop.Loop
	root  wire.Hash
	data  []byte
	after time.Duration
}

func (s serves) fetchBlob(ctx context.Context, f p2p.Fetch, done func([]byte, error)) {
	if f.Ref.Root == s.root {
		s.loop.After(s.after, func() { done(s.data, nil) })
		return
	}
	s.loop.After(time.Second, func() { done(nil, p2p.ErrMissing) })
}

// A verifier that had the parameters late does not say that the author does not serve the state.
func TestAStateHasHalfOfTheTime(t *testing.T) {
	for after, blames := range map[time.Duration]bool{3 * time.Second: true, 7 * time.Second: false} {
		w := newWorld(t, 80, 2, verified(0))
		h := w.start(0)
		w.start(1)
		w.until(time.Minute, func() bool { return w.state().Step() == 3 && h.params.Current != nil })
		v := h.params.Current
		h.exchange = serves{h.exchange, h.exchange.(server), w.clock, v.Root, tensor.Bytes(engine.Values(v.Values)), after}
		h.params.Held = nil
		ended := false
		task := client.Task{Commitment: dispute.Commitment{Params: v.Root, Prev: wire.Sum("test/state")}}
		h.gather(t.Context(), task, nil, w.clock.Now().Add(10*time.Second), func(in input, err error) {
			if ended = true; err == nil || (in.params != nil) != blames {
				t.Errorf("with parameters after %v: %v, %v", after, in.params != nil, err)
			}
		})
		w.until(time.Minute, func() bool { return ended })
	}
}
