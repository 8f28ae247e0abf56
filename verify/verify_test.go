package verify

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/entrain-network/entrain/bisect"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/tests/campaign"
	_ "github.com/entrain-network/entrain/tests/heap"
	"github.com/entrain-network/entrain/trace"
)

func TestTheTraceOfAStepEndsInItsCommitment(t *testing.T) {
	t.Parallel()
	for _, clip := range []float64{0, .01, 1e6, -1, -2, -3} {
		make := newWorld
		switch clip {
		case -1:
			make, clip = newWorld8, 0
		case -2:
			make, clip = newSealedWorld, 0
		case -3:
			make, clip = newAdaptedWorld, .01
		}
		w := make(t, clip)
		c, in := w.step(t)
		if !w.open(t, c, in).Agrees() {
			t.Errorf("clip %g: the trace ends in something else than what the engine gives", clip)
		}
		c.Commitment.PayloadBytes++
		if w.open(t, c, in).Agrees() != w.spec.Buckets() {
			t.Errorf("clip %g: whether the trace agrees with another length of the payload: %v", clip, !w.spec.Buckets())
		}
	}
}

// kind is the name of an operation without what tells it from others of its kind.
func kind(name string) string {
	if rest, ok := strings.CutPrefix(name, "pieces of "); ok {
		of, _, _ := strings.Cut(rest, ".") // model, or base_model for adapters
		return "pieces of " + of + rest[strings.LastIndexByte(rest, '.'):]
	}
	var b strings.Builder
	for _, part := range strings.Split(name, ", ") {
		if !strings.HasPrefix(part, "sequence ") && !strings.HasPrefix(part, "layer ") && !strings.HasPrefix(part, "head ") {
			b.WriteString(part + " ")
		}
	}
	return b.String()
}

// lies are a change in an operation of each kind, the last of the kind, in its last tile and slice.
func lies(p trace.Program, change func(words []uint32)) (list []lie) {
	last := make(map[string]uint32)
	for t := range p.Len() {
		last[kind(p.Op(t).Name())] = t
	}
	for t := range p.Len() {
		op := p.Op(t)
		if last[kind(op.Name())] == t {
			tile := op.Tiles() - 1
			list = append(list, lie{t, tile, op.Slices(tile) - 1, change})
		}
	}
	return list
}

// TestWhoLiesIsConvicted lets somebody compute one slice of a step wrongly, in an operation of
// every kind, and go on from there: once the one who commits to what comes out, once the one who
// accuses an honest member of it.
func TestWhoLiesIsConvicted(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	t.Run("exact", func(t *testing.T) { known = convictLiars(t, newWorld(t, .5), nil, flip, "greatest magnitude") })
	// Rounding to 8 bits may swallow a small lie, and then nobody is harmed. A softmax does not depend
	// on what it is shifted by but for rounding.
	t.Run("exact8", func(t *testing.T) {
		t.Parallel()
		convictLiars(t, newWorld8(t, .5), nil, func(words []uint32) { words[len(words)/2] ^= 0x00c00000 },
			"greatest magnitude", "shift of the scores", "greatest logit")
	})
	t.Run("adapters", func(t *testing.T) { convictLiars(t, newAdaptedWorld(t, .5), nil, flip, "greatest magnitude") })
	// The gradient is computed as in the first, but the trace ends with it.
	t.Run("sealed", func(t *testing.T) {
		if lied := convictLiars(t, newSealedWorld(t, .5), known, flip); len(lied) < 3 {
			t.Errorf("lies in %v alone", lied)
		}
	})
}

// convictLiars has each operation's liar convicted, who applies change to the words of a slice.
// Lies in operations with harmless in their name may make no difference to the outcome. Of
// the operations whose names are known it takes only those near the trace's end. It returns the
// names of those that it took.
func convictLiars(t *testing.T, w *world, known map[string]bool, change func(words []uint32), harmless ...string) (taken map[string]bool) {
	c, in := w.step(t)
	honest := w.open(t, c, in)
	p, err := w.tracer.rules.program(c)
	if err != nil {
		t.Fatal(err)
	}
	var most Game
	taken = map[string]bool{}
	all := lies(p, change)
	for i, l := range all {
		name := p.Op(l.op).Name()
		if known[name] && !strings.Contains(name, "pieces") && l.op < p.Len()-8 {
			continue
		}
		taken[name] = true
		if !campaign.Whole() && i%5 > 0 || w.base != nil && !strings.Contains(name, "_proj") && !strings.Contains(name, "pieces") { // others are those of a whole model
			continue
		}
		liar := newLying(p, l)
		cheat, err := w.tracer.open(t.Context(), liar, c, in)
		if err != nil {
			t.Fatal(err)
		}
		games := map[string]func() (Game, error){
			"accuser": func() (Game, error) { return argue(t.Context(), w.referee, c, [2]Side{honest, cheat}) },
			"accused": func() (Game, error) {
				wrong := c
				wrong.Commitment = liar.commit(c.Commitment)
				cheat.c, honest.c = wrong, wrong
				defer func() { honest.c = c }()
				if wrong == c && !slices.ContainsFunc(harmless, func(s string) bool { return strings.Contains(name, s) }) {
					t.Errorf("%s: the lie makes no difference", name)
				}
				return argue(t.Context(), w.referee, wrong, [2]Side{cheat, honest})
			},
		}
		if l.op == p.Len()-1 {
			delete(games, "accused") // who commits to another outcome than that of its payload, state and work: see below
		}
		for side, play := range games {
			g, err := play()
			if err != nil {
				t.Fatal(err)
			}
			if want := map[string]int{"accused": dispute.Accused, "accuser": dispute.Accuser}[side]; g.Convicted != want {
				t.Errorf("%s: the %s lied, side %d was convicted: %s", name, side, g.Convicted, g.Reason)
			}
			if g.Op != l.op || g.Tile != l.tile || g.Slice != l.slice {
				t.Errorf("%s: the lie was in %d, %d, %d, the difference found in %d, %d, %d", name, l.op, l.tile, l.slice, g.Op, g.Tile, g.Slice)
			}
			if g.EvidenceBytes == 0 && len(p.Op(l.op).Reads(l.tile, l.slice)) > 0 {
				t.Errorf("%s: convicted without evidence: %s", name, g.Reason)
			}
			t.Logf("%-60s %s convicted after %d messages of %d bytes, evidence %d, judged in %v", name, side, g.Messages, g.Bytes, g.EvidenceBytes, g.Referee.Round(time.Microsecond))
			most.Messages, most.EvidenceBytes, most.Referee = max(most.Messages, g.Messages), max(most.EvidenceBytes, g.EvidenceBytes), max(most.Referee, g.Referee)
		}
	}
	t.Logf("%d operations, %d kinds: at most %d messages, %d bytes of evidence, judged in %v", p.Len(), len(all), most.Messages, most.EvidenceBytes, most.Referee)
	if limit := 2 + 2*(int(bisect.Depth(p.Len()))+8); most.Messages > limit {
		t.Errorf("a dispute took %d messages, more than %d", most.Messages, limit)
	}
	return taken
}

// TestWhoCommitsToSomethingElseIsConvicted changes parts of a commitment to an honest step. Its
// author may show any trace that ends in it.
func TestWhoCommitsToSomethingElseIsConvicted(t *testing.T) {
	t.Parallel()
	convictForgers(t, newWorld(t, .5), map[string]func(c *dispute.Commitment){
		"payload":           func(c *dispute.Commitment) { c.Payload[3] ^= 1 },
		"length of payload": func(c *dispute.Commitment) { c.PayloadBytes++ },
		"state":             func(c *dispute.Commitment) { c.State[31] ^= 1 },
		"work":              func(c *dispute.Commitment) { c.Work[0] ^= 1 },
	})
	convictForgers(t, newSealedWorld(t, .5), map[string]func(c *dispute.Commitment){
		"work of a sealed update": func(c *dispute.Commitment) { c.Work[0] ^= 1 },
	})
}

func convictForgers(t *testing.T, w *world, changes map[string]func(c *dispute.Commitment)) {
	t.Helper()
	c, in := w.step(t)
	p, err := w.tracer.rules.program(c)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range changes {
		wrong := c
		change(&wrong.Commitment)
		honest := w.open(t, wrong, in)
		if honest.Agrees() {
			t.Errorf("%s: an honest trace agrees", name)
		}
		outcome := dispute.Outcome(wrong.Commitment)
		cheat, err := w.tracer.open(t.Context(), newLying(p, lie{p.Len() - 1, 0, 0, func(words []uint32) {
			setHash(words, outcome)
		}}), wrong, in)
		if err != nil {
			t.Fatal(err)
		}
		g, err := argue(t.Context(), w.referee, wrong, [2]Side{cheat, honest})
		if err != nil {
			t.Fatal(err)
		}
		if g.Convicted != dispute.Accused || g.Op != p.Len()-1 || g.EvidenceBytes == 0 {
			t.Errorf("%s: %+v", name, g)
		}
		// Who does not find such a trace, and is honest with itself, gives up.
		if g, err = argue(t.Context(), w.referee, wrong, [2]Side{w.open(t, wrong, in), honest}); err != nil || g.Convicted != dispute.Accused || g.Messages != 0 {
			t.Errorf("%s: honest with itself: %+v, %v", name, g, err)
		}
	}
}

func TestWhoAccusesAResultItAgreesWithIsConvicted(t *testing.T) {
	w := newWorld(t, .5)
	c, in := w.step(t)
	g, err := argue(t.Context(), w.referee, c, [2]Side{w.open(t, c, in), w.open(t, c, in)})
	if err != nil || g.Convicted != dispute.Accuser || g.Messages != 1 {
		t.Errorf("%+v, %v", g, err)
	}
}
