package verify

import (
	"fmt"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/bloom"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/engine/cpu"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/trace"
	"github.com/entrain-network/entrain/wire"
)

// court is a run on a coordinator whose members have done a real step of the world's model, one of
// them perhaps wrongly, and are being checked.
type court struct {
	*world
	t       *testing.T
	state   coordinator.State
	now     uint64
	height  uint64
	keys    map[key.Public]key.Private
	signed  map[coordinator.Member]dispute.Signed // the commitments of the round
	liar    coordinator.Member                    // NoMember if there is none
	program trace.Program                         // of the liar
}

// newCourt lets so many members train a round. lie, if not nil, gives the liar's change of the
// program of its share.
func newCourt(t *testing.T, w *world, members uint32, lie func(c dispute.Case) lie) *court {
	t.Helper()
	c := &court{world: w, t: t, now: 1_700_000_000_000, keys: map[key.Public]key.Private{}, signed: map[coordinator.Member]dispute.Signed{}, liar: dispute.NoMember}
	model := merkle.BlobRoot(tensor.Bytes(w.params))
	limits, config := w.spec.Coordinator(key.Public{9}, model, wire.SHA256(w.text))
	var err error
	if c.state, err = coordinator.New(limits, config, c.env(key.Public{}, 0)); err != nil {
		t.Fatalf("%v: %v", err, config.Check(limits))
	}
	for i := range members {
		k := key.FromSeed(wire.Sum("verify-test", wire.AppendU32(nil, i)))
		c.keys[k.Public()] = k
		c.send(k.Public(), config.Stake, coordinator.Join{})
	}
	c.now += config.WaitingMs
	c.send(key.Public{}, 0, coordinator.Tick{})
	for i := range coordinator.Member(members) {
		c.send(c.state.Key(i), 0, coordinator.Ready{Epoch: c.state.Epoch(), Params: model})
	}
	r, ok := c.state.At(c.state.Round())
	if !ok || !r.Trains() {
		t.Fatalf("no round of training has begun: %v", c.state.Phase())
	}
	for i := range members {
		c.train(r, coordinator.Member(i), model, config.StateHash, lie)
	}
	c.attest(model)
	c.attest(model) // the parameters of round 1 are agreed
	if drawn, _ := c.state.ChecksDrawn(); drawn != members {
		t.Fatalf("%d checks are drawn among %d members", drawn, members)
	}
	return c
}

func (c *court) env(sender key.Public, value uint64) coordinator.Env {
	c.height++
	return coordinator.Env{
		NowMs: c.now, Height: c.height, Seed: wire.Sum("verify-test", wire.AppendU64(nil, c.height)), Sender: sender, Value: value, Referee: c.referee,
	}
}

func (c *court) send(sender key.Public, value uint64, m coordinator.Message) {
	c.t.Helper()
	parsed, err := coordinator.ParseMessage(coordinator.Append(nil, m)) // as a ledger would
	if err != nil {
		c.t.Fatalf("%T: %v", m, err)
	}
	if err := c.state.Apply(c.env(sender, value), parsed); err != nil {
		c.t.Fatalf("%T: %v", m, err)
	}
}

// train lets a member do its share. The last member of the round is the liar if there is to be one.
func (c *court) train(r coordinator.RoundState, i coordinator.Member, params, fresh wire.Hash, lie func(c dispute.Case) lie) {
	c.t.Helper()
	state := make([]float32, len(c.params))
	result, err := c.engine.Step(c.t.Context(), cpu.Floats(c.params), cpu.Floats(state), r.Share(i), uint32(r.Step()))
	if err != nil {
		c.t.Fatal(err)
	}
	v := dispute.Commitment{
		Run: c.state.ID(), Epoch: r.Epoch(), Round: r.Number(), Member: i, Share: batch.Hash(r.Share(i)), Payload: merkle.BlobRoot(result.Payload),
		PayloadBytes: uint32(len(result.Payload)), Prev: fresh, State: merkle.BlobRoot(tensor.Bytes(state)), Params: params,
	}
	v.Work = dispute.WorkHash(v.Run, v.Round, v.Member, result.Gradient)
	if lie != nil && i+1 == c.state.Count() {
		c.liar = i
		in := dispute.Case{Commitment: v, Step: r.Step(), Sequences: batch.Total(r.Share(i))}
		bent := c.bent(in, lie(in))
		if _, err := c.world.tracer.open(c.t.Context(), bent, in, c.inputs(r, i)); err != nil {
			c.t.Fatal(err)
		}
		c.program = bent
		if v = bent.commit(v); v == in.Commitment {
			c.t.Fatal("the lie makes no difference")
		}
	}
	c.signed[i] = v.Sign(c.keys[c.state.Key(i)])
}

func (c *court) bent(in dispute.Case, l lie) liar {
	p, err := c.tracer.rules.program(in)
	if err != nil {
		c.t.Fatal(err)
	}
	return newLying(p, l)
}

func (c *court) inputs(r coordinator.RoundState, i coordinator.Member) Inputs {
	return Inputs{r.Share(i), cpu.Floats(c.params), cpu.Floats(make([]float32, len(c.params)))}
}

// attest sends the reports of the round that is running, which ends with the last of them.
func (c *court) attest(params wire.Hash) {
	c.t.Helper()
	r, ok := c.state.At(c.state.Round())
	if !ok {
		c.t.Fatal("there is no round")
	}
	a, attests := c.state.At(r.Attests())
	for _, i := range r.Witnesses() {
		if c.state.Round() != r.Number() || c.state.Status(i) != coordinator.StatusActive || r.Reported(i) {
			continue
		}
		m := coordinator.Witness{Round: r.Number(), Complete: true, Params: params, Prev: params}
		if attests {
			f, salt := bloom.New(r.Filter()), c.state.Key(i)
			for j := range c.state.Count() {
				if signed, trained := c.signed[j]; trained && a.Expected(j) {
					m.Held = coordinator.SetHeld(m.Held, j)
					f.Add(r.Filter(), salt[:], signed.Commitment.ID())
				}
			}
			m.Commitments = f
		}
		c.send(c.state.Key(i), 0, m)
	}
}

// of is the check of a member's result, and the round it is about.
func (c *court) of(member coordinator.Member) (dispute.Check, coordinator.RoundState) {
	c.t.Helper()
	for _, v := range c.state.Checks() {
		if v.Member == member {
			r, ok := c.state.At(v.Round)
			if !ok {
				c.t.Fatal("the round of a check is forgotten")
			}
			return v, r
		}
	}
	c.t.Fatalf("member %d is not checked: %+v", member, c.state.Checks())
	panic("not reached")
}

// player is who argues about a check by the truth, or by what the liar computed.
func (c *court) player(v dispute.Check, r coordinator.RoundState, by trace.Program) *Player {
	c.t.Helper()
	about := dispute.Case{Commitment: c.signed[v.Member].Commitment, Step: v.Step, Sequences: v.Sequences}
	if by == nil {
		return c.open(c.t, about, c.inputs(r, v.Member))
	}
	p, err := c.tracer.open(c.t.Context(), by, about, c.inputs(r, v.Member))
	if err != nil {
		c.t.Fatal(err)
	}
	return p
}

// dispute plays an accusation to its end on the coordinator; tie-breakers vote as they find.
func (c *court) dispute(v dispute.Check, accused, accuser *Player, wrong bool) (messages, most int) {
	c.t.Helper()
	post := func(member coordinator.Member, m coordinator.Message) {
		messages, most = messages+1, max(most, len(coordinator.Append(nil, m)))
		c.send(c.state.Key(member), 0, m)
	}
	post(v.Verifier, coordinator.Accuse{Round: v.Round, Member: v.Member, Commitment: c.signed[v.Member], Trace: dispute.Blind(c.state.Key(v.Verifier), accuser.Root())})
	id := c.state.DisputesTotal()
	d, ok := c.state.Dispute(id)
	if !ok {
		c.t.Fatal("there is no dispute")
	}
	for _, b := range d.TieBreakers {
		vote := coordinator.TieBreak{Dispute: id, Vote: dispute.VoteRight, Trace: dispute.Blind(c.state.Key(b.Member), accused.Root())}
		if wrong {
			vote.Vote, vote.Trace = dispute.VoteWrong, dispute.Blind(c.state.Key(b.Member), accuser.Root())
		}
		post(b.Member, vote)
	}
	for d, ok = c.state.Dispute(id); ok; d, ok = c.state.Dispute(id) {
		before := messages
		for _, side := range []struct {
			member coordinator.Member
			player *Player
		}{{d.Accused, accused}, {d.Accuser, accuser}} {
			d, ok := c.state.Dispute(id)
			if !ok {
				break
			}
			m, err := side.player.Move(c.t.Context(), d, side.member)
			if err != nil {
				c.t.Fatal(err)
			}
			if m != nil {
				post(side.member, m)
			}
		}
		if messages == before {
			c.t.Fatalf("nobody moves in %v", d.Stage)
		}
	}
	return messages, most
}

// TestTheLedgerConvictsWhoLied plays disputes about real steps on a real coordinator.
func TestTheLedgerConvictsWhoLied(t *testing.T) {
	t.Parallel()
	w := newWorld(t, .5)
	for _, name := range []string{
		"sequence 0, tokens", "pieces of lm_head.weight", "sequence 1, layer 1, up", "sequence 1, layer 0, head 2, attention", "sequence 0, layer 1, gradient of down_proj",
		"old state by blocks", "coefficients of each block", "code of each block", "payload", "new state of each block",
	} {
		at := func(in dispute.Case) lie {
			p, err := w.tracer.rules.program(in)
			if err != nil {
				t.Fatal(err)
			}
			for op := range p.Len() {
				if strings.HasPrefix(p.Op(op).Name(), name) {
					tile := p.Op(op).Tiles() / 2
					l := lie{op, tile, p.Op(op).Slices(tile) - 1, flip}
					if strings.HasSuffix(name, "block") || strings.HasSuffix(name, "blocks") { // of a small change nothing may be left
						l.tile, l.slice = 0, p.Op(op).Slices(0)-1
						l.change = func(words []uint32) { words[len(words)/2] ^= 0x3f800000 }
					}
					return l
				}
			}
			t.Fatalf("no operation is named %q", name)
			panic("not reached")
		}
		t.Run(name, func(t *testing.T) {
			c := newCourt(t, w, 4, at)
			v, r := c.of(c.liar)
			messages, most := c.dispute(v, c.player(v, r, c.program), c.player(v, r, nil), true)
			c.convicted(t, dispute.WrongResult, v.Member, v.Verifier)

			honest := newCourt(t, w, 4, nil)
			v, r = honest.of(0)
			in := dispute.Case{Commitment: honest.signed[v.Member].Commitment, Step: v.Step, Sequences: v.Sequences}
			m, n := honest.dispute(v, honest.player(v, r, nil), honest.player(v, r, honest.bent(in, at(in))), false)
			honest.convicted(t, dispute.FalseAccusation, v.Verifier, v.Member)
			t.Logf("%d messages, the largest of %d bytes", max(messages, m), max(most, n))
		})
	}
}

func (c *court) convicted(t *testing.T, offence dispute.Offence, member, by coordinator.Member) {
	t.Helper()
	list := c.state.Convictions()
	if len(list) != 1 || list[0].Member != member || list[0].Offence != offence || list[0].By != by {
		t.Errorf("convictions %s, want %v of member %d shown by %d", fmt.Sprintf("%+v", list), offence, member, by)
	}
}
