package check

import (
	"fmt"
	"strings"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// Scene is a situation from which a run is explored.
type Scene struct {
	Name string
	Text string

	overlap uint8
	cheats  int  // how many of the keys cheat, from the last on
	places  int  // fewer places than keys by this many
	begin   int  // how far honest members play first: see the constants
	people  bool // members come and go, and claim
	rounds  bool // witnesses report, members make ready
	// Before a dispute: whether the accused and the verifier cheat, and whether the accused lies.
	accusedCheats, verifierCheats bool
}

// What a scene begins with.
const (
	beginEmpty = iota
	beginRound // the first round is open
	beginCheck // one result is to be checked
)

// Scenes are all situations.
var Scenes = []Scene{
	{Name: "members", Text: "an empty run with a place less than there are keys", places: 1, cheats: 1, people: true, rounds: true},
	{Name: "rounds", Text: "the first round is open; overlap 0", begin: beginRound, cheats: 1, people: true, rounds: true},
	{Name: "overlap", Text: "the first round is open; overlap 1", overlap: 1, begin: beginRound, cheats: 1, rounds: true},
	{Name: "liar", Text: "an honest member is to check a wrong result", begin: beginCheck, cheats: 1, accusedCheats: true},
	{Name: "accuser", Text: "a cheat is to check a right result", begin: beginCheck, cheats: 1, verifierCheats: true},
	{Name: "gang", Text: "a cheat is to check the wrong result of another", begin: beginCheck, cheats: 2, accusedCheats: true, verifierCheats: true},
	{Name: "plot", Text: "a cheat is to check a right result, and another may vote on it", begin: beginCheck, cheats: 2, verifierCheats: true},
}

func find(name string) (Scene, bool) {
	for _, s := range Scenes {
		if s.Name == name {
			return s, true
		}
	}
	return Scene{}, false
}

func names() string {
	var list []string
	for _, s := range Scenes {
		list = append(list, s.Name)
	}
	return strings.Join(list, ", ")
}

// The times of all runs, in milliseconds of the ledger, and their tokens.
const (
	bornMs    = 1_700_000_000_000
	waitingMs = 10_000
	verifyMs  = 40_000
	disputeMs = 10_000
	unbondMs  = 50_000
	stake     = 16
	cost      = 1
	treasury  = 5 // less than the points of a round are worth
)

// cast is who plays in a scene, and how it begins.
type cast struct {
	scene   Scene
	keys    []key.Private
	honests int // the first keys are honest
	seed    wire.Hash
	model   wire.Hash
	born    uint64
	lied    dispute.Check // of the one wrong result; zero if there is none
	first   node
}

func (c *cast) name(k key.Public) string {
	for i, v := range c.keys {
		if v.Public() == k {
			return c.called(i)
		}
	}
	return "somebody"
}

// called returns the name of key i: a letter, a capital one if it cheats.
func (c *cast) called(i int) string {
	if i < c.honests {
		return string(rune('a' + i))
	}
	return string(rune('A' + i))
}

func (c *cast) cheats(k key.Public) bool {
	for _, v := range c.keys[:c.honests] {
		if v.Public() == k {
			return false
		}
	}
	return true
}

func (c *cast) seconds(g ghost) float64 { return float64(g.Now-c.born) / 1000 }

func (c *cast) line(m move, g ghost) string { return fmt.Sprintf("%6.1f s  %s", c.seconds(g), m.what) }

// drawsMax bounds the chances tried until the roles of a scene fall as it wants them.
const drawsMax = 500

// stage plays the honest beginning of a scene.
func stage(scene Scene, members int, seed uint64) (cast, node, error) {
	for draw := range uint64(drawsMax) {
		c := cast{
			scene: scene, honests: members - scene.cheats, born: bornMs, model: wire.Sum("check/model"),
			seed: wire.Sum("check/seed", wire.AppendU64(wire.AppendU64(nil, seed), draw)),
		}
		for i := range members {
			c.keys = append(c.keys, key.FromSeed(wire.Sum("check/key", []byte{byte(i)})))
		}
		s, g, ok, err := c.play(members)
		if err != nil {
			return cast{}, node{}, fmt.Errorf("scene %s: %w", scene.Name, err)
		}
		if ok {
			c.first = node{state: split(s.Bytes(), nil), ghost: g}
			c.born = g.Now
			return c, c.first, nil
		}
	}
	return cast{}, node{}, fmt.Errorf("scene %s: no draw of %d gives its roles", scene.Name, drawsMax)
}

func (c *cast) play(members int) (s coordinator.State, g ghost, ok bool, err error) {
	l := coordinator.Limits{Members: uint32(members - c.scene.places), Witnesses: uint16(members)}
	s, err = coordinator.New(l, coordinator.Config{
		Name: "check", MinMembers: 2, StartMembers: 2,
		WaitingMs: waitingMs, WarmupMs: 20_000, RoundTrainMs: 30_000, RoundWitnessMs: 5_000, CooldownMs: 15_000, EpochMs: 90_000,
		TotalSteps: 4, BatchStart: uint32(members), BatchEnd: uint32(members), SequenceTokens: 16, Overlap: c.scene.overlap, MissedMax: 1,
		VerificationPercent: 100, VerifyMs: verifyMs, DisputeMs: disputeMs, Stake: stake, UnbondMs: unbondMs, Rate: 1, RegisterCost: cost,
		StateHash: wire.Sum("check/fresh"), ModelHash: c.model, SpecHash: wire.Sum("check/spec"), Owner: key.FromSeed([32]byte{1}).Public(),
	}, coordinator.Env{NowMs: bornMs, Seed: c.seed})
	if err != nil {
		return s, g, false, err
	}
	g.Now = bornMs
	send := func(k int, value uint64, m coordinator.Message) {
		if err == nil {
			mv := move{by: k, value: value, message: m}
			old, _ := coordinator.Open(append([]byte(nil), s.Bytes()...))
			env := c.env(mv, g)
			to, due := s.WillPay(env, m)
			if err = s.Apply(env, m); err != nil {
				err = fmt.Errorf("%T: %w", m, err)
			} else if b := c.judge(&g, transition{old: old, new: s, env: env, move: mv, payee: to, due: due}); b != nil {
				err = fmt.Errorf("%s: %s", b.property, b.text)
			}
		}
	}
	send(0, treasury, coordinator.Fund{})
	if c.scene.begin == beginEmpty {
		return s, g, true, err
	}
	for k := range c.keys {
		send(k, stake+cost, coordinator.Join{})
	}
	g.Now += waitingMs
	send(nobody, 0, coordinator.Tick{})
	for k := range c.keys {
		send(k, 0, coordinator.Ready{Epoch: 1, Params: c.model})
	}
	if c.scene.begin == beginRound {
		return s, g, true, err
	}
	for err == nil && len(s.Checks()) == 0 {
		r, _ := s.At(s.Round())
		for _, i := range r.Witnesses() {
			send(int(i), 0, c.report(s, i, c.model, true, everybody))
		}
	}
	if err != nil {
		return s, g, false, err
	}
	return c.roles(s, g, send)
}

// roles finds the check that the scene is about, and lets the others pass.
func (c *cast) roles(s coordinator.State, g ghost, send func(int, uint64, coordinator.Message)) (coordinator.State, ghost, bool, error) {
	cheats := func(i coordinator.Member) bool { return int(i) >= c.honests }
	for _, v := range s.Checks() {
		if cheats(v.Member) != c.scene.accusedCheats || cheats(v.Verifier) != c.scene.verifierCheats {
			continue
		}
		for _, other := range s.Checks() {
			if other.Member != v.Member {
				t := c.traces(s, other)[0]
				send(int(other.Verifier), 0, coordinator.Pass{
					Round: other.Round, Member: other.Member, Commitment: c.sign(t.Result), Gradient: Gradient(t.Value),
				})
			}
		}
		if c.scene.accusedCheats {
			c.lied = v
		}
		return s, g, true, nil
	}
	return s, g, false, nil
}
