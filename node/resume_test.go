package node

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// personal is an engine with which a member's update depends on its own optimizer state, on who it is, on the step and on the parameters, but not on
// which share it was given or in which order updates are applied: so two runs whose seeds differ can be compared hash for hash.
type personal struct {
	toy
	id     int
	before uint32 // steps before the run
}

func (e personal) Step(ctx context.Context, p, s engine.Vector, _ []batch.Span, step uint32) (engine.Result, error) {
	params, state := engine.Values(p), engine.Values(s)
	step += e.before
	state[0] = state[0]*0.9 + float32(step)*float32(e.id+1)
	state[1+e.id%3] += params[7]
	v := params[0] + state[0] + state[1+e.id%3]
	payload := binary.LittleEndian.AppendUint32(slices.Clone(toyMagic), math.Float32bits(v))
	return engine.Result{Payload: payload, Loss: 1, Tokens: 1, Gradient: wire.Sum("gradient", payload)}, ctx.Err()
}

func (e personal) Apply(v engine.Vector, payloads [][]byte, step uint32) error {
	params := engine.Values(v)
	var sorted []float32
	for _, p := range payloads {
		if err := e.Check(p); err != nil {
			return err
		}
		sorted = append(sorted, math.Float32frombits(binary.LittleEndian.Uint32(p[4:])))
	}
	slices.Sort(sorted)
	for _, v := range sorted {
		for i := range params {
			params[i] = params[i]/2 + v/1e6 + float32(step+e.before)
		}
	}
	return nil
}

// personalSlices is personal for a run of buckets. Of all values each is drawn in every window, so that it does not matter either which slices are.
type personalSlices struct {
	sliced
	id     int
	before coordinator.Step
}

func (e personalSlices) Step(ctx context.Context, p, s engine.Vector, _ []batch.Span, step uint32) (engine.Result, error) {
	params, state := engine.Values(p), engine.Values(s)
	grad := make([]float32, e.params)
	for i := range grad {
		grad[i] = params[i] - float32((step+uint32(e.before))*uint32(e.id+1)+uint32(i%17))
	}
	payload, err := e.codec.Encode(nil, state, grad, 0.1)
	return engine.Result{Payload: payload, Loss: 1, Tokens: 1, Gradient: wire.Sum("gradient", payload)}, errors.Join(err, ctx.Err())
}

func (e personalSlices) Apply(v engine.Vector, payloads [][]byte, step uint32) error {
	params := engine.Values(v)
	return e.codec.Apply(params, payloads, 1/float32(step+uint32(e.before)))
}

// manner is how the members of a run exchange, of which one that is resumed is compared with one that is not.
type manner struct {
	world func(t *testing.T, steps uint32, adjust ...func(*coordinator.Config)) *world
	start func(w *world, i int, before coordinator.Step, adjust ...func(*Config)) *testNode
	steps uint32
	named int // members whose states a checkpoint names
}

func byPeers(overlap uint8) manner {
	return manner{
		world: func(t *testing.T, steps uint32, adjust ...func(*coordinator.Config)) *world {
			return newLargeWorld(t, steps, resumeMembers, append(adjust, func(c *coordinator.Config) { c.EpochMs, c.Overlap = 6000, overlap })...)
		},
		start: func(w *world, i int, before coordinator.Step, adjust ...func(*Config)) *testNode {
			return w.start(i, append([]func(*Config){func(c *Config) { c.Engine = personal{w.toy, i, uint32(before)} }}, adjust...)...)
		},
		steps: 80, named: resumeMembers,
	}
}

func byBuckets() manner {
	return manner{
		world: func(t *testing.T, steps uint32, adjust ...func(*coordinator.Config)) *world {
			w := newBucketWorld(t, steps, resumeMembers, append(adjust, func(c *coordinator.Config) { c.EpochMs = 32_500 })...)
			w.engine = newSliced(t, w.toy.params, 1)
			return w
		},
		start: func(w *world, i int, before coordinator.Step, adjust ...func(*Config)) *testNode {
			return w.mine(i, append([]func(*Config){func(c *Config) { c.Engine = personalSlices{w.engine, i, before} }}, adjust...)...)
		},
		steps: 40,
	}
}

// trajectory is the parameters' hash after each step.
func (h *testNode) trajectory() map[coordinator.Step]wire.Hash {
	hashes := make(map[coordinator.Step]wire.Hash)
	for _, ev := range h.events {
		if ev, ok := ev.(event.Applied); ok {
			hashes[ev.Step] = ev.Params
		}
	}
	return hashes
}

// parting is a checkpoint with what it takes to go on from it, and each member's own state.
type parting struct {
	Checkpoint
	own map[int][]float32
}

const resumeMembers = 3

// whole runs all steps without interruption, and returns what was kept at the first epoch's end, and the parameters' hashes.
//
// Epochs are short, and of the same number of steps in both runs: with overlap 1 the end of an epoch, which drains what is under way, is part of what a
// run computes.
func (m manner) whole(t *testing.T) (k parting, hashes map[coordinator.Step]wire.Hash) {
	t.Helper()
	w := m.world(t, m.steps)
	k.own = make(map[int][]float32)
	for i := range resumeMembers {
		m.start(w, i, 0, func(c *Config) {
			c.CheckpointAlways = true
			c.Checkpoint = func(p Checkpoint) (wire.Hash, error) {
				if p.Epoch == 1 {
					if !p.Known || len(p.Endings) != m.named {
						t.Errorf("member %d knows of %d of the states: %v", i, len(p.Endings), p.Known)
					}
					k.own[i] = slices.Clone(p.Own)
					k.Checkpoint, k.Params = p, slices.Clone(p.Params)
				}
				return wire.Sum("checkpoint", p.Hash[:]), nil
			}
		})
	}
	w.until(10*time.Minute, w.finished)
	w.agree(0, 1, 2)
	if k.Step == 0 || k.Step >= coordinator.Step(m.steps) || len(k.own) != resumeMembers {
		t.Fatalf("%d members kept step %d of %d", len(k.own), k.Step, m.steps)
	}
	return k, w.hosts[0].trajectory()
}

// rest is a run of its own, on a chain of its own, that goes on from what was kept to the same end.
func (m manner) rest(t *testing.T, k parting) *world {
	return m.world(t, uint32(coordinator.Step(m.steps)-k.Step), func(c *coordinator.Config) { c.ModelHash = k.Hash })
}

func (k parting) states() map[key.Public]wire.Hash {
	states := make(map[key.Public]wire.Hash)
	for _, e := range k.Endings {
		states[e.Member] = e.State
	}
	return states
}

// resume has member i take part in the rest.
func (m manner) resume(w *world, k parting, i int, adjust ...func(*Config)) *testNode {
	return m.start(w, i, k.Step, append([]func(*Config){func(c *Config) {
		c.Initial = func() []float32 { return slices.Clone(k.Params) }
		c.States = k.states()
		c.Resume = func() []float32 { return slices.Clone(k.own[i]) }
	}}, adjust...)...)
}

// A run of many steps, and one that goes on from its checkpoint when chain and processes are gone, come to the same parameters, hash for hash.
func TestAResumedRunIsBitForBitTheOneThatNeverStopped(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]manner{"overlap 0": byPeers(0), "overlap 1": byPeers(1), "buckets": byBuckets()} {
		t.Run(name, func(t *testing.T) {
			k, want := m.whole(t)
			steps := m.steps
			for e, ending := range k.Endings {
				if root := merkle.BlobRoot(tensor.Bytes(k.own[memberOf(ending.Member)])); root != ending.State {
					t.Errorf("ending %d names %s, the member has %s", e, ending.State, root)
				}
			}
			w := m.rest(t, k)
			for i := range resumeMembers {
				m.resume(w, k, i)
			}
			w.until(10*time.Minute, w.finished)
			w.agree(0, 1, 2)
			got := w.hosts[1].trajectory()
			for step := k.Step + 1; step <= coordinator.Step(steps); step++ {
				if got[step-k.Step] != want[step] || want[step].IsZero() {
					t.Fatalf("step %d: resumed %q, never stopped %q", step, got[step-k.Step], want[step])
				}
			}
			if w.state().Rollbacks() != 0 {
				t.Error("the resumed run was rolled back")
			}
			if ev, ok := first[event.Note](w.hosts[0]); !ok || !strings.Contains(ev.Text, "goes on from the checkpoint's") {
				t.Errorf("who has its state is told %+v", ev)
			}
			t.Logf("steps %d to %d: equal hashes", k.Step+1, steps)

			// With fresh optimizers it is another run.
			w = m.rest(t, k)
			for i := range resumeMembers {
				m.resume(w, k, i, func(c *Config) { c.Resume = func() []float32 { return nil } })
			}
			w.until(10*time.Minute, w.finished)
			if w.hosts[1].trajectory()[coordinator.Step(steps)-k.Step] == want[coordinator.Step(steps)] {
				t.Error("the optimizer's state makes no difference: the test shows nothing")
			}
			if ev, ok := first[event.Note](w.hosts[0]); !ok || !strings.Contains(ev.Text, "it is not here") {
				t.Errorf("who has lost its state is told %+v", ev)
			}
		})
	}
}

func memberOf(k key.Public) int {
	for i := range resumeMembers {
		if worldKey(i).Public() == k {
			return i
		}
	}
	return -1
}

// Who brings another state than the specification names begins afresh if it is honest, and is not accepted if it is not.
func TestOnlyTheNamedStateIsResumed(t *testing.T) {
	m := byPeers(0)
	k, _ := m.whole(t)
	forged := slices.Clone(k.own[1])
	forged[0] += 1000
	for name, c := range map[string]struct {
		bend     func(*Config)
		accepted bool
		note     string
	}{
		"honest": {func(c *Config) { c.Resume = func() []float32 { return slices.Clone(forged) } }, true, "is not the one"},
		"cheat": {func(c *Config) {
			c.Resume = func() []float32 { return slices.Clone(forged) }
			c.States = k.states()
			c.States[worldKey(1).Public()] = merkle.BlobRoot(tensor.Bytes(forged))
		}, false, "goes on from the checkpoint's"},
	} {
		t.Run(name, func(t *testing.T) {
			w := m.rest(t, k)
			m.resume(w, k, 0)
			h := m.resume(w, k, 1, c.bend)
			m.resume(w, k, 2)
			w.until(time.Minute, func() bool { return w.state().Step() == 2 })
			r, ok := w.state().At(w.state().Round() - 1)
			i, known := w.state().Find(worldKey(1).Public())
			if !ok || !known || !r.Final() {
				t.Fatal("the first step is not settled")
			}
			if got := r.Accepted(i); got != c.accepted {
				t.Errorf("accepted: %v", got)
			}
			if ev, ok := first[event.Note](h); !ok || !strings.Contains(ev.Text, c.note) {
				t.Errorf("it is told %+v", ev)
			}
			w.until(10*time.Minute, w.finished)
		})
	}
}

// recording notes with which optimizer state each step begins.
type recording struct {
	sliced
	begun map[coordinator.Step]wire.Hash
}

func (e recording) Step(ctx context.Context, params, state engine.Vector, spans []batch.Span, step uint32) (engine.Result, error) {
	e.begun[coordinator.Step(step)] = merkle.BlobRoot(tensor.Bytes(engine.Values(state)))
	return e.sliced.Step(ctx, params, state, spans, step)
}

// What a miner's checkpoint keeps is the state from which the next window goes on: without what the slice drawn last has sent, and only that.
func TestACheckpointKeepsWhatAMinerGoesOnFrom(t *testing.T) {
	w := newBucketWorld(t, 12, resumeMembers, func(c *coordinator.Config) { c.EpochMs = 32_500 })
	var begun, kept [resumeMembers]map[coordinator.Step]wire.Hash
	for i := range resumeMembers {
		begun[i], kept[i] = map[coordinator.Step]wire.Hash{}, map[coordinator.Step]wire.Hash{}
		w.mine(i, func(c *Config) {
			c.Engine, c.CheckpointAlways = recording{w.engine, begun[i]}, true
			c.Checkpoint = func(p Checkpoint) (wire.Hash, error) {
				kept[i][p.Step] = merkle.BlobRoot(tensor.Bytes(p.Own))
				return wire.Sum("checkpoint", p.Hash[:]), nil
			}
		})
	}
	w.until(10*time.Minute, w.finished)
	for i := range resumeMembers {
		compared := 0
		for step, root := range kept[i] {
			next, ok := begun[i][step+1]
			if ok && next != root {
				t.Errorf("miner %d kept %s after step %d, and went on from %s", i, root, step, next)
			}
			if ok {
				compared++
			}
		}
		if compared == 0 {
			t.Errorf("miner %d: no window after a checkpoint", i)
		}
	}
}
