package node

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/train"
	"github.com/entrain-network/entrain/wire"
)

// personal is an engine with which a member's update depends on its own optimizer state, on who it is, on the step and on the parameters, but not on
// which share it was given or in which order updates are applied: so two runs whose seeds differ can be compared hash for hash.
type personal struct {
	toy
	id     int
	before uint32 // steps before the run
}

func (e personal) Step(ctx context.Context, params, state []float32, _ []batch.Span, step uint32) (train.Result, error) {
	step += e.before
	state[0] = state[0]*0.9 + float32(step)*float32(e.id+1)
	state[1+e.id%3] += params[7]
	v := params[0] + state[0] + state[1+e.id%3]
	payload := binary.LittleEndian.AppendUint32(slices.Clone(toyMagic), math.Float32bits(v))
	return train.Result{Payload: payload, Loss: 1, Tokens: 1, Gradient: wire.Sum("gradient", payload)}, ctx.Err()
}

func (e personal) Apply(params []float32, payloads [][]byte, step uint32) error {
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

// trajectory is the parameters' hash after each step.
func (h *host) trajectory() map[uint32]string {
	hashes := make(map[uint32]string)
	for _, ev := range h.events {
		if ev.Kind == "applied" {
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

// epochs makes them short, and of the same number of steps in both runs: with overlap 1 the end of an epoch, which drains what is under way, is part of
// what a run computes.
func epochs(c *coordinator.Config) { c.EpochMs = 6000 }

// whole runs so many steps without interruption, and returns what was kept at the first epoch's end, and the parameters' hashes.
func whole(t *testing.T, steps uint32, adjust func(*coordinator.Config)) (k parting, hashes map[uint32]string) {
	t.Helper()
	w := newWorld(t, steps, resumeMembers, adjust, epochs)
	k.own = make(map[int][]float32)
	for i := range resumeMembers {
		w.start(i, func(c *Config) {
			c.Engine, c.CheckpointAlways = personal{w.toy, i, 0}, true
			c.Checkpoint = func(p Checkpoint) (wire.Hash, error) {
				if p.Epoch == 1 {
					if !p.Known || len(p.Endings) != resumeMembers {
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
	if k.Step == 0 || k.Step >= steps || len(k.own) != resumeMembers {
		t.Fatalf("%d members kept step %d of %d", len(k.own), k.Step, steps)
	}
	return k, w.hosts[0].trajectory()
}

// rest is a run of its own, on a chain of its own, that goes on from what was kept to the same end.
func rest(t *testing.T, k parting, steps uint32, adjust func(*coordinator.Config)) *world {
	w := newWorld(t, steps-k.Step, resumeMembers, adjust, epochs, func(c *coordinator.Config) { c.ModelHash = k.Hash })
	w.toy.params = len(k.Params)
	return w
}

func (k parting) states() map[key.Public]wire.Hash {
	states := make(map[key.Public]wire.Hash)
	for _, e := range k.Endings {
		states[e.Member] = e.State
	}
	return states
}

// resume has member i take part in the rest.
func (k parting) resume(w *world, i int, adjust ...func(*Config)) *host {
	return w.start(i, append([]func(*Config){func(c *Config) {
		c.Engine = personal{w.toy, i, k.Step}
		c.Initial = func() []float32 { return slices.Clone(k.Params) }
		c.States = k.states()
		c.Resume = func() []float32 { return slices.Clone(k.own[i]) }
	}}, adjust...)...)
}

func overlapped(overlap uint8) func(*coordinator.Config) {
	return func(c *coordinator.Config) { c.Overlap = overlap }
}

// A run of many steps, and one that goes on from its checkpoint when chain and processes are gone, come to the same parameters, hash for hash.
func TestAResumedRunIsBitForBitTheOneThatNeverStopped(t *testing.T) {
	for overlap := range uint8(2) {
		t.Run(fmt.Sprint("overlap ", overlap), func(t *testing.T) {
			const steps = 80
			k, want := whole(t, steps, overlapped(overlap))
			for e, ending := range k.Endings {
				if root := merkle.BlobRoot(tensor.Bytes(k.own[memberOf(ending.Member)])); root != ending.State {
					t.Errorf("ending %d names %s, the member has %s", e, ending.State, root)
				}
			}
			w := rest(t, k, steps, overlapped(overlap))
			for i := range resumeMembers {
				k.resume(w, i)
			}
			w.until(10*time.Minute, w.finished)
			w.agree(0, 1, 2)
			got := w.hosts[1].trajectory()
			for step := k.Step + 1; step <= steps; step++ {
				if got[step-k.Step] != want[step] || want[step] == "" {
					t.Fatalf("step %d: resumed %q, never stopped %q", step, got[step-k.Step], want[step])
				}
			}
			if w.state().Rollbacks() != 0 {
				t.Error("the resumed run was rolled back")
			}
			t.Logf("steps %d to %d: equal hashes", k.Step+1, steps)

			// With fresh optimizers it is another run.
			w = rest(t, k, steps, overlapped(overlap))
			for i := range resumeMembers {
				k.resume(w, i, func(c *Config) { c.Resume = nil })
			}
			w.until(10*time.Minute, w.finished)
			if w.hosts[1].trajectory()[steps-k.Step] == want[steps] {
				t.Error("the optimizer's state makes no difference: the test shows nothing")
			}
			if ev, ok := w.hosts[0].first("note"); !ok || !strings.Contains(ev.Text, "it is not here") {
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
	const steps = 80
	k, _ := whole(t, steps, overlapped(0))
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
			w := rest(t, k, steps, overlapped(0))
			k.resume(w, 0)
			h := k.resume(w, 1, c.bend)
			k.resume(w, 2)
			w.until(time.Minute, func() bool { return w.state().Step() == 2 })
			r, ok := w.state().At(w.state().Round() - 1)
			i, known := w.state().Find(worldKey(1).Public())
			if !ok || !known || !r.Final() {
				t.Fatal("the first step is not settled")
			}
			if got := r.Accepted(i); got != c.accepted {
				t.Errorf("accepted: %v", got)
			}
			if ev, ok := h.first("note"); !ok || !strings.Contains(ev.Text, c.note) {
				t.Errorf("it is told %+v", ev)
			}
			w.until(10*time.Minute, w.finished)
		})
	}
}
