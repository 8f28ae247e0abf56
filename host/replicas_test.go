package host

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/entrain-network/entrain/chance"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

func chanceOf(t testing.TB, name string) key.Public {
	t.Helper()
	s, err := chance.NewSecret(wire.Sum("entrain/test/chance", []byte(name)))
	if err != nil {
		t.Fatal(err)
	}
	return s.Public()
}

// stakeOf is the first stake behind the replica of a name, of an operator.
func stakeOf(t testing.TB, replica, operator string, amount uint64) Stake {
	t.Helper()
	c := chanceOf(t, replica)
	return Stake{Replica: public(replica), Amount: amount, Chance: c, Consent: Consent(privateKey(replica), testChain, public(operator), c)}
}

// newSeats makes a chain whose replicas, each of an operator with a name like its own and so many
// tokens behind it, have seats.
func newSeats(t testing.TB, stake uint64, replicas ...string) *chain {
	t.Helper()
	g := Genesis{Chain: testChain, TimeMs: genesisMs}
	for _, name := range replicas {
		g.Replicas = append(g.Replicas, Founder{Key: public(name), Chance: chanceOf(t, name), Operator: public("op-" + name), Stake: stake})
		g.Accounts = append(g.Accounts, Allocation{Key: public("op-" + name), Amount: 1 << 32})
	}
	slices.SortFunc(g.Replicas, func(a, b Founder) int { return a.Key.Compare(b.Key) })
	slices.SortFunc(g.Accounts, func(a, b Allocation) int { return a.Key.Compare(b.Key) })
	h, err := NewHost(g, testRules())
	if err != nil {
		t.Fatal(err)
	}
	return &chain{t: t, host: h}
}

func (c *chain) replica(name string) Replica {
	c.t.Helper()
	for _, r := range c.host.Replicas() {
		if r.Key == public(name) {
			return r
		}
	}
	c.t.Fatalf("no replica %s", name)
	return Replica{}
}

func TestSeatsAreGivenAndTakenByVotesOfStake(t *testing.T) {
	c := newSeats(t, 1<<24, "a", "b", "c")
	least := c.host.ReplicaStake()
	c.want(CodeUnknownReplica, c.tx("op-a", Vote{Replica: public("d"), Seated: true}))
	c.want(CodeAmount, c.tx("op-a", stakeOf(t, "d", "op-a", least-1)))
	forged := stakeOf(t, "d", "op-a", least)
	forged.Consent = Consent(privateKey("a"), testChain, public("op-a"), forged.Chance)
	c.want(CodeReplicaKey, c.tx("op-a", forged))
	c.want(CodeReplicaKey, c.tx("op-b", stakeOf(t, "d", "op-a", least))) // its consent is to another
	small := stakeOf(t, "d", "op-a", least)
	small.Chance = key.Public{1}
	c.want(CodeReplicaKey, c.tx("op-a", small))
	c.accept(c.tx("op-a", stakeOf(t, "d", "op-a", least)))
	if r := c.replica("d"); r.Seat != "candidate" || r.Power != 0 || r.Stake != least {
		t.Fatalf("%+v", r)
	}
	c.want(CodeNotOperator, c.tx("stranger", Vote{Replica: public("d"), Seated: true}))
	yes := Vote{Replica: public("d"), Seated: true}
	c.accept(c.tx("op-a", yes), c.tx("op-a", yes), c.tx("op-b", yes))
	if r := c.replica("d"); r.Seat != "candidate" || len(r.Votes) != 2 {
		t.Fatalf("two of three equal votes give a seat: %+v", r)
	}
	c.accept(c.tx("op-c", yes))
	if r := c.replica("d"); r.Seat != "seated" || r.Power != 1+least || len(r.Votes) != 0 {
		t.Fatalf("%+v", r)
	}
	// It is taken in the same way; the operator of "a" speaks for "d" too, which tips the scale.
	no := Vote{Replica: public("c")}
	c.accept(c.tx("op-c", no), c.tx("op-b", no), c.tx("op-c", Vote{Replica: public("c"), Seated: true}))
	if r := c.replica("c"); r.Seat != "seated" || len(r.Votes) != 1 {
		t.Fatalf("%+v", r)
	}
	c.accept(c.tx("op-a", no))
	if r := c.replica("c"); r.Seat != "left" || r.Power != 0 || r.FreeMs != c.host.TimeMs()+UnbondMs {
		t.Fatalf("%+v", r)
	}
	c.want(CodeSeat, c.tx("op-c", Leave{Replica: public("c")}))
	c.want(CodeNotOperator, c.tx("op-a", Leave{Replica: public("c")}))
	had := c.host.Balance(public("op-c"))
	c.blockAfter(UnbondMs)
	c.accept(c.tx("op-c", Leave{Replica: public("c")}))
	if got := c.host.Balance(public("op-c")) - had; got != 1<<24 {
		t.Errorf("%d tokens came back, want %d", got, 1<<24)
	}
}

func TestTheLastReplicaStays(t *testing.T) {
	c := newSeats(t, 1<<24, "a")
	c.want(CodeSeat, c.tx("op-a", Leave{Replica: public("a")}))
	c.accept(c.tx("op-a", Vote{Replica: public("a")}))
	c.host.Begin(Block{Height: c.height + 1, TimeMs: c.host.TimeMs(), Guilty: []key.Public{public("a")}})
	c.height++
	c.host.Commit()
	if r := c.replica("a"); r.Seat != "seated" || r.Stake != 1<<24 {
		t.Errorf("%+v", r)
	}
}

func TestWhoVotesTwiceLosesItsStakeToTheOthers(t *testing.T) {
	c := newSeats(t, 1<<24, "a", "b", "c", "d")
	c.host.Begin(Block{Height: c.height + 1, TimeMs: c.host.TimeMs() + 1, Guilty: []key.Public{public("b"), public("b"), public("nobody")}})
	c.height++
	c.host.Commit()
	if r := c.replica("b"); r.Seat != "banned" || r.Stake != 0 || r.Power != 0 {
		t.Errorf("%+v", r)
	}
	sum := uint64(0)
	for _, name := range []string{"a", "c", "d"} {
		sum += c.replica(name).Stake
	}
	if sum != 4<<24 {
		t.Errorf("the others have %d, want %d", sum, 4<<24)
	}
	c.want(CodeSeat, c.tx("op-b", Stake{Replica: public("b"), Amount: 1000}))
	c.want(CodeSeat, c.tx("op-a", Vote{Replica: public("b"), Seated: true}))
}

// TestReplicasKeepCount lets operators do anything, and compares after every block what there is
// with what there was; the host itself panics if tokens are lost.
func TestReplicasKeepCount(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		names := []string{"a", "b", "c", "d", "e"}
		c := newSeats(t, 1<<24, names[:3]...)
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			name := rapid.SampledFrom(names).Draw(rt, "replica")
			operator := "op-" + rapid.SampledFrom(names).Draw(rt, "operator")
			var body Body
			switch rapid.IntRange(0, 3).Draw(rt, "what") {
			case 0:
				body = stakeOf(t, name, operator, rapid.Uint64Range(0, 1<<33).Draw(rt, "amount"))
			case 1:
				body = Vote{Replica: public(name), Seated: rapid.Bool().Draw(rt, "seated")}
			case 2:
				body = Leave{Replica: public(name)}
			default:
				c.height++
				c.host.Begin(Block{Height: c.height, TimeMs: c.host.TimeMs() + rapid.SampledFrom([]uint64{1, UnbondMs}).Draw(rt, "pause"), Guilty: []key.Public{public(name)}})
				c.host.Commit()
				continue
			}
			c.block(c.tx(operator, body))
			power := uint64(0)
			for _, r := range c.host.Replicas() {
				power += r.Power
			}
			if power == 0 {
				rt.Fatal("nobody votes on blocks any more")
			}
			again, err := ParseHost(c.host.Append(nil), testRules())
			if err != nil || again.Hash() != c.host.Hash() {
				rt.Fatalf("restored: %v", err)
			}
		}
	})
}

func TestGenesisWithReplicas(t *testing.T) {
	good := newSeats(t, 5, "a", "b").host.Genesis()
	for name, change := range map[string]func(*Genesis){
		"order":  func(g *Genesis) { slices.Reverse(g.Replicas) },
		"chance": func(g *Genesis) { g.Replicas[0].Chance = key.Public{1} },
		"stake":  func(g *Genesis) { g.Replicas[0].Stake = SupplyMax },
		"twice":  func(g *Genesis) { g.Replicas[1] = g.Replicas[0] },
		"many": func(g *Genesis) {
			for i := range SeatsMax + 1 {
				g.Replicas = append(g.Replicas, Founder{Key: public(fmt.Sprint(i))})
			}
		},
	} {
		g := good
		g.Replicas = slices.Clone(good.Replicas)
		if change(&g); testRules().Check(g) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func testRules() Rules { return Rules{ChanceKey: chance.ValidKey} }
