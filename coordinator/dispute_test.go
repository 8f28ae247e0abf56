package coordinator

import (
	"fmt"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/coordinator/dispute"

	"github.com/entrain-network/entrain/bisect"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/wire"
)

// trusting returns a configuration in which everything is verified, with stakes and pay.
func trusting() Config {
	c := testConfig()
	c.VerificationPercent, c.VerifyMs, c.DisputeMs = 100, 20_000, 10_000
	c.RoundTrainMs, c.EpochMs, c.MissedMax = 1_000_000, 2_000_000, 3
	c.Stake, c.UnbondMs, c.Rate = 1000, 120_000, 3
	c.StateHash = wire.Sum("test/fresh")
	return c
}

// arena is a run of so many members, all honest so far, in which all results of round 1 are being checked. Each share has so
// many sequences.
func arena(t testingT, members, sequences uint32, c Config) *world {
	t.Helper()
	c.BatchStart, c.BatchEnd = members*sequences, members*sequences
	c.StartMembers, c.MinMembers = members, 1
	w := newWorld(t, Limits{Members: members, Witnesses: 4}, c, fmt.Sprint("arena", members, sequences))
	p := &player{w: w}
	for i := range members {
		p.must(w.applyWith(testKey(fmt.Sprint("player", i)), c.Stake, Join{}))
	}
	p.must(w.applyWith(key.Public{}, 100_000, Fund{}))
	w.now += c.WaitingMs
	p.must(w.apply(key.Public{}, Tick{}))
	for w.s.Round() < 2+Round(c.Overlap) {
		p.honest()
	}
	return w
}

// clone returns a world that goes its own way from here on.
func (w *world) clone(t testingT) *world {
	c := *w
	c.t = t
	c.s = State{b: slices.Clone(w.s.b), l: w.s.l}
	c.log = slices.Clone(w.log)
	c.theta = map[Round]wire.Hash{}
	for k, v := range w.theta {
		c.theta[k] = v
	}
	c.fates.acceptedIn = map[uint64]Round{}
	for k, v := range w.fates.acceptedIn {
		c.fates.acceptedIn[k] = v
	}
	return &c
}

// caseOf returns what a check is about, for computing it.
func (w *world) caseOf(c dispute.Check) dispute.Case {
	v := dispute.Commitment{
		Run: w.s.ID(), Epoch: c.Epoch, Round: c.Round, Member: c.Member, Share: c.Share, Params: c.Params, Prev: w.config.StateHash,
	}
	return dispute.Case{Commitment: v, Step: c.Step, Sequences: c.Sequences}
}

// sign signs a commitment as its member.
func (w *world) sign(c dispute.Commitment) dispute.Signed {
	return c.Sign(PrivateOf(w.s.Key(c.Member)))
}

// party is one side of a dispute: it plays a trace, as long as it plays.
type party struct {
	trace *trace
	moves int  // it falls silent after so many; negative = never
	loose bool // its moves may be refused; it falls silent then
}

func (p *party) move(d dispute.Dispute, side int) Message {
	if p.trace == nil || p.moves == 0 {
		return nil
	}
	m := p.trace.move(d, side)
	if m != nil {
		p.moves--
	}
	return m
}

// fight plays a dispute to its end. Whoever is accuser is looked up at each move, since it may change; time passes when nobody
// moves. It returns how many messages it took, and how long.
func (w *world) fight(id uint32, parties map[Member]*party) (messages int, took uint64) {
	w.t.Helper()
	began := w.now
	for {
		d, ok := w.s.Dispute(id)
		if !ok {
			return messages, w.now - began
		}
		moved := false
		for side := range 2 {
			if d, ok = w.s.Dispute(id); !ok {
				break
			}
			i := []Member{d.Accused, d.Accuser}[side]
			if i == dispute.NoMember || parties[i] == nil {
				continue
			}
			if m := parties[i].move(d, side); m != nil {
				if err := w.apply(w.s.Key(i), m); err != nil && parties[i].loose {
					parties[i].moves = 0
					continue
				} else if err != nil {
					w.t.Fatalf("side %d sends %T in stage %v: %v", side, m, d.Stage, err)
				}
				messages, moved = messages+1, true
			}
		}
		if !moved {
			w.now += 5_000
			if err := w.apply(key.Public{}, Tick{}); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

// votes lets the tie-breakers vote; nil is silence.
func (w *world) votes(id uint32, vote func(i Member) (dispute.Vote, wire.Hash)) {
	w.t.Helper()
	d, _ := w.s.Dispute(id)
	for _, v := range d.TieBreakers {
		if kind, trace := vote(v.Member); kind != 0 {
			if err := w.apply(w.s.Key(v.Member), TieBreak{Dispute: id, Vote: kind, Trace: dispute.Blind(w.s.Key(v.Member), trace)}); err != nil {
				w.t.Fatalf("member %d votes %d: %v", v.Member, kind, err)
			}
		}
	}
}

// places are slices at which a liar bends a trace of a share of n sequences: the first, the last, those at the edges of the
// trees, and a few others.
func places(c dispute.Case) [][3]uint32 {
	p := program{}
	var list [][3]uint32
	n := p.Ops(c.Sequences)
	src := prng.New(wire.Sum("test/places"), fmt.Sprint(c.Sequences))
	below := func(n uint32) uint32 { return uint32(src.Uint64n(uint64(n))) }
	for op := range n - 1 {
		if op > 2 && op+3 < n && op != 15 && op != 16 && op != 17 {
			continue
		}
		tile := below(p.Tiles(c, op))
		list = append(list, [3]uint32{op, tile, below(p.Slices(c, op, tile))})
		last := p.Tiles(c, op) - 1
		list = append(list, [3]uint32{op, last, p.Slices(c, op, last) - 1}, [3]uint32{op, 0, 0})
	}
	return list
}

// bendAt changes one slice. With spread all that follows from it is computed from the changed one.
func bendAt(at [3]uint32) bend {
	return func(op, tile, slice uint32, words []uint32) []uint32 {
		if [3]uint32{op, tile, slice} != at {
			return words
		}
		words = slices.Clone(words)
		words[0] ^= 1
		return words
	}
}

// TestDisputes lets a liar be caught, and a false accuser fail, wherever in the step the lie is, with all that follows computed
// from it or not, with shares of one to eight sequences.
func TestDisputes(t *testing.T) {
	t.Parallel()
	most, longest := 0, uint64(0)
	for _, sequences := range []uint32{1, 2, 4, 8} {
		base := arena(t, 6, sequences, trusting())
		c := base.s.Checks()[0]
		honest := compute(base.caseOf(c), nil)
		var liars []*trace
		var names []string
		for _, at := range places(base.caseOf(c)) {
			lie := compute(base.caseOf(c), bendAt(at))
			liars, names = append(liars, lie), append(names, fmt.Sprint("bent at ", at))
			// The same lie, in a step that ends as if it had not been told.
			hidden := compute(base.caseOf(c), bendAt(at))
			hidden.result = honest.result
			liars, names = append(liars, hidden.end(dispute.Outcome(honest.result))), append(names, fmt.Sprint("hidden at ", at))
		}
		lazy := compute(base.caseOf(c), nil)
		lazy.result.Payload = wire.Sum("test/junk")
		liars, names = append(liars, lazy.end(dispute.Outcome(lazy.result))), append(names, "made up in the end")
		worked := compute(base.caseOf(c), nil)
		worked.result.Work = wire.Sum("test/junk")
		liars, names = append(liars, worked.end(dispute.Outcome(worked.result))), append(names, "false work")
		if sequences == 2 || sequences == 8 { // a tree with a leaf where there is none
			padded := compute(base.caseOf(c), nil)
			padded.ops = append(padded.ops, wire.Hash{7})
			w := base.clone(t)
			w.accusation(t, c, honest, padded)
			w.convicted("padded by the accuser", dispute.FalseAccusation, c.Verifier, c.Member)
			w = base.clone(t)
			accuse := Accuse{Round: c.Round, Member: c.Member, Commitment: w.sign(honest.result), Trace: padded.blind(w.s.Key(c.Verifier))}
			d := dispute.Dispute{ID: 1, Stage: dispute.StageDefending}
			if err := w.apply(w.s.Key(c.Verifier), accuse); err != nil {
				t.Fatal(err)
			}
			w.now += w.config.VerifyMs
			_ = w.apply(key.Public{}, Tick{})
			if err := w.apply(w.s.Key(c.Member), padded.move(d, dispute.Accused)); err != ErrProof {
				t.Errorf("a trace whose last leaf is not an operation's: %v, want %v", err, ErrProof)
			}
			// What is proven is the last operation, not the padding.
			w = base.clone(t)
			accuse.Trace = honest.blind(w.s.Key(c.Verifier))
			if err := w.apply(w.s.Key(c.Verifier), accuse); err != nil {
				t.Fatal(err)
			}
			w.now += w.config.VerifyMs
			_ = w.apply(key.Public{}, Tick{})
			defend := Defend{Dispute: 1, Trace: padded.root(), Proof: bisect.Prove(padded.ops, uint32(len(honest.ops)-1))}
			if err := w.apply(w.s.Key(c.Member), defend); err != nil {
				t.Fatal(err)
			}
			w.fight(1, map[Member]*party{c.Member: {trace: padded, moves: -1}, c.Verifier: {trace: honest, moves: -1}})
			w.convicted("padded by the accused", dispute.WrongResult, c.Member, c.Verifier)
		}
		for k, liar := range liars {
			if dispute.Outcome(liar.result) != dispute.Outcome(honest.result) {
				w := base.clone(t)
				messages, took := w.accusation(t, c, liar, honest)
				most, longest = max(most, messages), max(longest, took)
				w.convicted(names[k]+", the accused lies", dispute.WrongResult, c.Member, c.Verifier)
			}
			w := base.clone(t)
			messages, took := w.accusation(t, c, honest, liar)
			most, longest = max(most, messages), max(longest, took)
			w.convicted(names[k]+", the accuser lies", dispute.FalseAccusation, c.Verifier, c.Member)
			w.replay()
		}
	}
	t.Logf("the longest dispute took %d messages", most)
	if most > 4+2*3*2+2 || longest > trusting().VerifyMs {
		t.Errorf("a dispute took %d messages and %d ms", most, longest)
	}
}

// accusation plays a dispute about check c. The accused plays one trace and has committed to what it ends with; the verifier
// plays the other, and so the tie-breakers do not vote.
func (w *world) accusation(t *testing.T, c dispute.Check, accused, accuser *trace) (int, uint64) {
	t.Helper()
	w.t = t
	m := Accuse{Round: c.Round, Member: c.Member, Commitment: w.sign(accused.result), Trace: accuser.blind(w.s.Key(c.Verifier))}
	if err := w.apply(w.s.Key(c.Verifier), m); err != nil {
		t.Fatal(err)
	}
	id := w.s.DisputesTotal()
	return w.fight(id, map[Member]*party{c.Member: {trace: accused, moves: -1}, c.Verifier: {trace: accuser, moves: -1}})
}

// convicted checks that the last conviction is that of one member, to the benefit of another, and there is no other.
func (w *world) convicted(what string, offence dispute.Offence, member, by Member) {
	w.t.Helper()
	list := w.s.Convictions()
	if len(list) != 1 {
		w.t.Fatalf("%s: convictions %+v", what, list)
	}
	c, stake := list[0], w.config.Stake
	m, winner := w.s.Member(member), w.s.Member(by)
	if c.Number != 1 || c.Member != member || c.Offence != offence || c.By != by || c.Key != m.Key || c.ByKey != winner.Key ||
		c.Slashed != stake || c.AtMs != w.now || c.Round != 1 || c.FirstRound != 1 || c.Results != 1 {
		w.t.Fatalf("%s: conviction %+v, want %v of member %d by %d", what, c, offence, member, by)
	}
	if m.Status != StatusEjected || m.Stake != 0 || m.Points != 0 || winner.Balance != stake/2 || winner.Stake != stake {
		w.t.Fatalf("%s: the convicted is %+v, the winner %+v", what, m, winner)
	}
	for i := range w.s.Count() {
		if i != member && w.s.Status(i) != StatusActive {
			w.t.Fatalf("%s: member %d is %v", what, i, w.s.Status(i))
		}
	}
	for _, c := range w.s.Checks() {
		if c.Member == member || c.Verifier == member {
			w.t.Fatalf("%s: the convicted is still in %+v", what, c)
		}
	}
}
