package adversary_test

import (
	"bytes"
	"math"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/lab/adversary"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/node"
	"github.com/entrain-network/entrain/tensor"
)

func TestEveryKindIsDescribed(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range adversary.Kinds() {
		if seen[k.Name] || k.Name == "" || k.Tries == "" || len(k.Offences) == 0 || strings.HasSuffix(k.Tries, ".") {
			t.Errorf("%+v", k)
		}
		seen[k.Name] = true
		if f, ok := adversary.Find(k.Name); !ok || f.Name != k.Name || !f.Convicts(k.Offences[0]) || f.Convicts(0) {
			t.Errorf("found %+v for %q", f, k.Name)
		}
	}
	for _, name := range strings.Fields(`free-rider copycat wrong-data poison scale sign-flip withhold equivocate lazy-verifier false-accuser
		lying-witness bad-hardware late sybil colluder`) {
		if !seen[name] {
			t.Errorf("there is no kind %q", name)
		}
	}
	if _, err := adversary.Wrap("gremlin", node.Config{}, adversary.Options{}); err == nil || !strings.Contains(err.Error(), "free-rider") {
		t.Errorf("of an unknown kind: %v", err)
	}
	if _, err := adversary.Wrap("sybil", node.Config{}, adversary.Options{}); err == nil {
		t.Error("a sybil that is alone was made")
	}
}

// Whoever recomputes a result of these kinds finds another one; whoever recomputes one of the
// others finds the same.
func TestResultsAreWrongIfTheKindSaysSo(t *testing.T) {
	for _, k := range adversary.Kinds() {
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, k.Name, 6)
			w.finish(k.Name)
			compared := 0
			for _, c := range w.by(3) {
				i := slices.IndexFunc(w.steps, func(s taken) bool {
					return s.by == 3 && batch.Hash(s.spans) == c.Commitment.Share && merkle.BlobRoot(tensor.Bytes(s.params)) == c.Commitment.Params
				})
				if i < 0 {
					t.Fatalf("%v: a commitment to a share that was never looked at", c)
				}
				if k.Name == "free-rider-stale" && w.steps[i].step == 1 {
					continue // it works once
				}
				r, state := w.honest(w.steps[i])
				same := merkle.BlobRoot(r.Payload) == c.Commitment.Payload && merkle.BlobRoot(tensor.Bytes(state)) == c.Commitment.State
				if same == k.Checked && !k.Sometimes {
					t.Errorf("%v: recomputed it is the same: %v", c, same)
				}
				compared++
			}
			if compared < 2 && !k.Sometimes { // some are soon ejected or dropped

				t.Errorf("%d commitments compared", compared)
			}
			if !k.Sometimes && !k.Convicts(dispute.Absence) && !k.Convicts(dispute.Equivocated) && w.state().Member(w.member(3)).Results == 0 {
				t.Error("none of its results was accepted, so it harms nobody")
			}
		})
	}
}

// member is the place of a node in the run.
func (w *world) member(i int) coordinator.Member {
	at, ok := w.state().Find(worldKey(i).Public())
	if !ok {
		w.t.Fatalf("node %d is not a member", i)
	}
	return at
}

func TestStaleRidersRepeatThemselves(t *testing.T) {
	w := newWorld(t, "free-rider-stale", 6)
	w.finish("free-rider-stale")
	all := w.by(3)
	for _, c := range all {
		if c.Commitment.Payload != all[0].Commitment.Payload {
			t.Errorf("%v: another payload than in %v", c, all[0])
		}
	}
}

func TestCopiesAreOfTheSameRound(t *testing.T) {
	for kind, from := range map[string][]int{"copycat": {0, 1, 2}, "sybil": {2}} {
		w := newWorld(t, kind, 6)
		w.finish(kind)
		copies := 0
		for _, c := range w.by(3) {
			for _, i := range from {
				if slices.ContainsFunc(w.of(i), func(o dispute.Commitment) bool {
					return o.Round == c.Commitment.Round && o.Payload == c.Commitment.Payload
				}) {
					copies++
					break
				}
			}
		}
		if copies < 4 || copies != len(w.by(3)) {
			t.Errorf("%s: %d of %d commitments are copies", kind, copies, len(w.by(3)))
		}
	}
}

// of lists all commitments of a node.
func (w *world) of(i int) (out []dispute.Commitment) {
	if i == 0 {
		return w.own
	}
	for _, h := range w.by(i) {
		out = append(out, h.Commitment)
	}
	return out
}

func TestBadHardwareFlipsOneBit(t *testing.T) {
	w := newWorld(t, "bad-hardware", 4)
	w.finish("bad-hardware")
	for _, s := range w.steps {
		r, state := w.honest(s)
		flips := 0
		for i := range state {
			flips += bits.OnesCount32(math.Float32bits(state[i]) ^ math.Float32bits(s.after[i]))
		}
		if !bytes.Equal(r.Payload, s.result.Payload) || flips != 1 {
			t.Errorf("step %d: %d bits flipped", s.step, flips)
		}
	}
}

func TestBentGradients(t *testing.T) {
	for kind, ok := range map[string]func(honest, bent float64) bool{
		"sign-flip": func(h, b float64) bool { return b == -h },
		"scale":     func(h, b float64) bool { return math.Abs(b) >= 500*math.Abs(h) },
	} {
		w := newWorld(t, kind, 2)
		w.finish(kind)
		s := w.steps[0]
		_, state := w.honest(s)
		most := 0.0
		for _, x := range state {
			most = max(most, math.Abs(float64(x)))
		}
		for i := range state {
			if h, b := float64(state[i]), float64(s.after[i]); !ok(h, b) && math.Abs(h) > most/1e6 && b != 0 { // zero where it was sent; below a millionth, what the transform rounded
				t.Fatalf("%s: momentum %d is %v, of the honest %v", kind, i, b, h)
			}
		}
	}
}

func TestWrongDataIsTheSameInAllRounds(t *testing.T) {
	w := newWorld(t, "wrong-data", 4)
	w.finish("wrong-data")
	for _, s := range w.steps {
		favourite := s
		favourite.spans = []batch.Span{{Start: 0, Count: batch.Total(s.spans)}}
		if s.spans[0].Start == 0 {
			continue
		}
		if r, _ := w.honest(favourite); !bytes.Equal(r.Payload, s.result.Payload) {
			t.Errorf("step %d: not what comes out of the first sequences", s.step)
		}
	}
}

func TestEquivocatorsSignTwice(t *testing.T) {
	w := newWorld(t, "equivocate", 4)
	w.finish("equivocate")
	rounds := map[coordinator.Round]int{}
	for _, h := range w.by(3) {
		if !h.Verify(h.author) {
			t.Errorf("%v: the signature is wrong", h)
		}
		rounds[h.Commitment.Round]++
	}
	for round, n := range rounds {
		if n != 2 {
			t.Errorf("round %d: %d commitments", round, n)
		}
	}
	if m := w.state().Member(w.member(3)); len(rounds) == 0 || m.Status != coordinator.StatusEjected {
		t.Errorf("it committed in %d rounds, and is %v", len(rounds), m.Status)
	}
}

func TestLateOnesComeWhenTheRoundIsOver(t *testing.T) {
	w := newWorld(t, "late", 6)
	w.finish("late")
	for _, h := range w.by(3) {
		if !h.final {
			t.Errorf("%v: it came in time", h)
		}
	}
	if m := w.state().Member(w.member(3)); len(w.by(3)) == 0 || m.Results != 0 || m.Points != 0 {
		t.Errorf("%d commitments came, %d were accepted", len(w.by(3)), m.Results)
	}
}

func TestLyingWitnessesNameOtherParameters(t *testing.T) {
	w := newWorld(t, "lying-witness", 6)
	w.finish("lying-witness")
	lies, truths := 0, 0
	self := w.member(3)
	for _, reports := range w.reports {
		for _, r := range reports {
			if r.Member == self {
				for _, o := range reports {
					if o.Member != self && o.Params == r.Params {
						truths++
					}
				}
				lies++
			}
		}
	}
	if lies == 0 || truths > 0 {
		t.Errorf("of %d reports %d agree with others", lies, truths)
	}
}
