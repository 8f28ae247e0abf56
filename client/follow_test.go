package client

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// followTest is what peers of a run of followers do besides, and what a test sees of it.
type followTest struct {
	made     map[coordinator.Round]map[key.Public]Update           // by whom
	names    func(*peer, coordinator.Round, Update) (Update, bool) // what a witness says
	serves   func(p *peer) bool
	fetched  int // updates
	payloads int // fetched by who neither attests them nor is a witness now
	asks     map[*peer]int
	slices   *sliceTest         // nil in a run without slices
	tainted  map[wire.Hash]bool // parameters that the update wrongRoot made, and what was made of them
	update   uint64             // Config.Update, if it is not testUpdateBytes
	bulk     int                // payloads that were asked for together
	noBulk   bool               // none of these come
}

var wrongRoot = wire.Sum("wrong")

const testUpdateBytes = 4000 // that of four payloads

func (f *followTest) config(c Config) Config {
	if f != nil {
		c.Update, c.UpdateMax = cmp.Or(f.update, testUpdateBytes), 9*testUpdateBytes
		if f.slices != nil {
			c.Aggregators, c.SlicesMax, c.PayloadMax = f.slices.aggregators, 100, 100
		}
	}
	return c
}

// newFollowers returns a network of 24 with 4 witnesses. With an even seed they watch the run
// lightly.
func newFollowers(t *testing.T, overlap uint8, seed uint64, adjust ...func(*coordinator.Config)) *network {
	net := newNetwork(t, 24, overlap, 12, seed, append(adjust, func(c *coordinator.Config) { c.Witnesses = 4 })...)
	net.follow = &followTest{
		made:   map[coordinator.Round]map[key.Public]Update{},
		names:  func(_ *peer, _ coordinator.Round, u Update) (Update, bool) { return u, true },
		serves: func(*peer) bool { return true }, asks: map[*peer]int{}, tainted: map[wire.Hash]bool{},
	}
	if seed%2 == 0 { // room for many members, so that light states lack pages
		s, err := coordinator.New(coordinator.Limits{Members: 1000, Witnesses: 8}, net.state.Config(), coordinator.Env{NowMs: 1000})
		if err != nil {
			t.Fatal(err)
		}
		net.state = s
	}
	for _, p := range net.peers {
		if seed%2 == 0 {
			p.watch = &lightWatch{states: map[bool]int{}}
		}
		p.start()
	}
	return net
}

// followed performs an action of a run of followers. It reports whether that is all to do about it.
func (p *peer) followed(a Action) bool {
	f := p.follow
	if f.slices != nil && p.sliced(a) {
		return true
	}
	switch a := a.(type) {
	case AskUpdate:
		for _, k := range a.To {
			q := p.peer(k)
			f.asks[q]++
			u, ok := f.made[a.Round][k]
			if ok {
				u, ok = f.names(q, a.Round, u)
			}
			if ok && !p.lose(p, q) {
				p.feed(UpdateNamed{Round: a.Round, By: k, Update: u})
			}
		}
	case FetchUpdate:
		if a.Bytes > 9*testUpdateBytes || len(slices.Compact(slices.SortedFunc(slices.Values(a.From), key.Public.Compare))) != len(a.From) {
			p.t.Errorf("%s fetches %d bytes from %v", p.name, a.Bytes, a.From)
		}
		f.fetched++
		ok := slices.ContainsFunc(a.From, func(k key.Public) bool { return f.made[a.Round][k] == a.Update && f.serves(p.peer(k)) })
		ok = ok || a.Root == wrongRoot
		p.held[a.Root] = p.held[a.Root] || ok
		p.feed(UpdateFetched{Round: a.Round, Root: a.Root, OK: ok, Refused: a.Root == wire.Sum("malformed")})
	case FetchPayload:
		if r, ok := p.state.At(a.Round + coordinator.Round(p.state.Config().Overlap)); ok {
			now, _ := p.state.At(p.state.Round())
			if i, member := p.state.Find(p.key.Public()); member && !r.Elected(i) && !now.Elected(i) {
				f.payloads++
			}
		}
		return false
	case Apply:
		if a.Update.IsZero() {
			a.Update = p.make(a.Of, a.Payloads)
		} else if !p.held[a.Update] {
			p.t.Errorf("%s: asked to apply an update it does not hold", p.name)
		}
		tainted := f.tainted[p.params] || a.Update == wrongRoot
		p.params = wire.Sum("params", p.params[:], a.Update[:])
		f.tainted[p.params] = tainted
		p.saved.Known, p.saved.Round, p.saved.Params = true, a.To, p.params
		p.feed(Applied{To: a.To, Params: p.params, Update: a.Update, OK: true})
	case MakeUpdate:
		p.later(UpdateMade{Round: a.Round, Root: p.make(a.Round, a.Payloads)})
	default:
		return false
	}
	return true
}

// make makes the update of payloads that the peer holds.
func (p *peer) make(round coordinator.Round, payloads []wire.Hash) wire.Hash {
	parts := [][]byte{}
	for _, payload := range payloads {
		if !p.held[payload] {
			p.t.Errorf("%s: asked for the update of a payload it does not hold", p.name)
		}
		parts = append(parts, payload[:])
	}
	u := Update{wire.Sum("update", parts...), testUpdateBytes}
	if p.follow.made[round] == nil {
		p.follow.made[round] = map[key.Public]Update{}
	}
	p.follow.made[round][p.key.Public()] = u
	return u.Root
}

func TestFollowersFetchNoPayloads(t *testing.T) {
	for overlap := range uint8(2) {
		net := newFollowers(t, overlap, 1)
		net.run(200_000, net.finished)
		everybodyAgrees(t, net)
		if f := net.follow; f.payloads > 0 || f.fetched != 12*(24-4) {
			t.Errorf("overlap %d: followers fetched %d updates and %d payloads in 12 steps", overlap, f.fetched, f.payloads)
		}
		if got, want := net.state.PointsTotal(), uint64(12*2*24); got != want {
			t.Errorf("overlap %d: %d points, want %d", overlap, got, want)
		}
	}
}

// One of 24 names another update in every round: it is outvoted, and not asked again.
func TestLiarsAreOutvotedAndNotAskedAgain(t *testing.T) {
	for overlap := range uint8(2) {
		for name, wrong := range map[string]Update{
			"another": {wire.Sum("another"), testUpdateBytes}, "huge": {wire.Sum("huge"), 1 << 40}, "malformed": {wire.Sum("malformed"), testUpdateBytes},
		} {
			net := newFollowers(t, overlap, 2)
			liar := net.peers[3]
			net.follow.names = func(p *peer, _ coordinator.Round, u Update) (Update, bool) {
				if p == liar {
					return wrong, true
				}
				return u, true
			}
			net.run(200_000, net.finished)
			everybodyAgrees(t, net)
			for _, p := range net.peers {
				shuns := 0
				for _, n := range p.notes {
					if strings.HasPrefix(n, "not asked for updates") {
						shuns++
					}
				}
				if shuns > 1 || p.heals > 0 {
					t.Errorf("overlap %d, %s: %s shuns %d times and heals %d times", overlap, name, p.name, shuns, p.heals)
				}
			}
			others := 0 // they are elected more often or less
			for _, p := range net.peers {
				if p != liar {
					others += net.follow.asks[p]
				}
			}
			if asks := net.follow.asks[liar]; asks > 60 || others < 50*23 {
				t.Errorf("overlap %d, %s: the liar was asked %d times, the others %d times on average", overlap, name, asks, others/23)
			}
		}
	}
}

// In some rounds all witnesses name a wrong update, and everybody follows. Of two rounds in a row it
// is as likely as that they settle wrong parameters themselves. Those never become the agreed ones.
func TestACapturedCommitteeSettlesNothing(t *testing.T) {
	for overlap := range uint8(2) {
		net := newFollowers(t, overlap, 4)
		misled := map[coordinator.Round]int{}
		net.follow.names = func(_ *peer, round coordinator.Round, u Update) (Update, bool) {
			if round%5 != 3 {
				return u, true
			}
			misled[round]++
			return Update{wrongRoot, testUpdateBytes}, true
		}
		net.run(200_000, func() bool {
			if agreed, round := net.state.Params(); net.follow.tainted[agreed] {
				t.Fatalf("overlap %d: wrong parameters are agreed on for round %d", overlap, round)
			}
			return net.finished()
		})
		everybodyAgrees(t, net)
		if len(misled) < 2 || len(net.follow.tainted) == 0 {
			t.Errorf("overlap %d: misled in %v", overlap, misled)
		}
		for _, p := range net.peers {
			if i, _ := net.state.Find(p.key.Public()); net.state.Member(i).Status == coordinator.StatusEjected {
				t.Errorf("overlap %d: %s is convicted", overlap, p.name)
			}
		}
	}
}

// If all witnesses name what is too large, or nothing, or serve nothing, the followers fetch the
// payloads; a round becomes longer by half of its time to train at most.
func TestFollowersFallBackToPayloads(t *testing.T) {
	malformed := func(*peer, coordinator.Round, Update) (Update, bool) {
		return Update{wire.Sum("malformed"), testUpdateBytes}, true
	}
	huge := func(_ *peer, _ coordinator.Round, u Update) (Update, bool) { return Update{u.Root, 1 << 40}, true }
	none := func(_ *peer, _ coordinator.Round, u Update) (Update, bool) { return u, false }
	for name, spoil := range map[string]func(f *followTest){
		"malformed": func(f *followTest) { f.names = malformed },
		"huge":      func(f *followTest) { f.names = huge },
		"silent":    func(f *followTest) { f.names = none },
		"unserved":  func(f *followTest) { f.serves = func(*peer) bool { return false } },
		"each another": func(f *followTest) {
			f.names = func(p *peer, _ coordinator.Round, _ Update) (Update, bool) {
				return Update{wire.Sum(p.name), testUpdateBytes}, true
			}
		},
	} {
		for overlap := range uint8(2) {
			net := newFollowers(t, overlap, 3)
			spoil(net.follow)
			net.run(60_000, func() bool { return net.state.Step() == 2 })
			start := net.now
			net.run(60_000, func() bool { return net.state.Step() == 12 })
			perRound := (net.now - start) / 10
			net.run(200_000, net.finished)
			everybodyAgrees(t, net)
			if net.follow.payloads == 0 || perRound > 2000+1000 {
				t.Errorf("%s, overlap %d: %d payloads, a round takes %d ms", name, overlap, net.follow.payloads, perRound)
			}
		}
	}
}

// Who is elected asks one of those who attested the round before for its payloads, and the authors
// for those that do not come.
func TestWitnessesAskForManyPayloadsAtOnce(t *testing.T) {
	for overlap := range uint8(2) {
		for _, none := range []bool{false, true} {
			net := newFollowers(t, overlap, 1)
			net.follow.noBulk = none
			net.run(200_000, net.finished)
			everybodyAgrees(t, net)
			if got, want := net.state.PointsTotal(), uint64(12*2*24); got != want {
				t.Errorf("overlap %d: %d points, want %d", overlap, got, want)
			}
			if net.follow.bulk < 24*8 {
				t.Errorf("overlap %d: %d payloads were asked for together", overlap, net.follow.bulk)
			}
		}
	}
}

// If nobody names an epoch's last update, followers that cannot afford the payloads fetch the agreed
// parameters before the next epoch: no round opens meanwhile by which they would fall behind.
func TestFollowersHealBetweenEpochs(t *testing.T) {
	for overlap := range uint8(2) {
		net := newFollowers(t, overlap, 3)
		net.follow.update = 500 // the model weighs less than a round's payloads
		c := net.state.Config()
		c.EpochMs = 6000
		s, err := coordinator.New(net.state.Limits(), c, coordinator.Env{NowMs: 1000})
		if err != nil {
			t.Fatal(err)
		}
		net.state = s
		for _, p := range net.peers {
			p.start()
		}
		net.follow.names = func(_ *peer, _ coordinator.Round, u Update) (Update, bool) {
			r, ok := net.state.At(net.state.Round())
			phase := net.state.Phase()
			return u, ok && r.Trains() && (phase == coordinator.RoundTrain || phase == coordinator.RoundWitness)
		}
		net.run(200_000, func() bool { return net.state.Epoch() == 2 && net.state.Phase() == coordinator.RoundTrain })
		active, heals := 0, 0
		for i := range net.state.Count() {
			if net.state.Status(i) == coordinator.StatusActive {
				active++
			}
		}
		for _, p := range net.peers {
			heals += p.heals
		}
		if active != len(net.peers) || heals == 0 {
			t.Errorf("overlap %d: %d of %d members take part in the second epoch, after %d heals", overlap, active, len(net.peers), heals)
		}
		net.run(200_000, net.finished)
		everybodyAgrees(t, net)
	}
}

// Where members follow, a commitment goes to those who attest it, and to all from a few.
func TestCommitmentsGoToWitnesses(t *testing.T) {
	for overlap := range uint8(2) {
		c := newCrowdOf(t, 200, 0, overlap)
		r, _ := c.state.At(1)
		witnesses := r.Witnesses()
		heard := 0
		for self := range coordinator.Member(len(c.keys)) {
			m := New(Config{Self: c.keys[self], PayloadMax: 1000, Update: 5000, UpdateMax: 10_000})
			var to []key.Public
			for queue := []Event{c.snapshot(), Loaded{Known: true, Params: c.initial}}; len(queue) > 0; queue = queue[1:] {
				for _, do := range m.Step(c.env.NowMs, queue[0]) {
					switch do := do.(type) {
					case Train:
						queue = append(queue, Trained{Round: do.Round, Payload: wire.Sum("payload"), PayloadBytes: 100, Prev: do.Prev})
					case Commit:
						if to = do.To; to == nil {
							heard++
						}
					case AskCommitments, FetchPayload:
						t.Fatalf("member %d: %+v", self, do)
					}
				}
			}
			for _, i := range witnesses {
				if to != nil && i != self && !slices.Contains(to, c.keys[i]) {
					t.Fatalf("overlap %d: the commitment of member %d does not go to witness %d", overlap, self, i)
				}
			}
			if len(to) > len(witnesses) {
				t.Fatalf("overlap %d: a commitment goes to %d members", overlap, len(to))
			}
		}
		if heard != heardMax {
			t.Errorf("overlap %d: %d members are heard by all, want %d", overlap, heard, heardMax)
		}
	}
}

// An author may show another commitment to whoever checks its result than to those who attested it.
func TestVerifierTakesTheAcceptedCommitment(t *testing.T) {
	c := newCrowd(t, 200, 10)
	before, list := c.snapshot(), c.commitments(c.initial)
	c.close(c.initial, c.initial, list)
	next := wire.Sum("the parameters of round 2")
	c.close(next, c.initial, c.commitments(next))
	check := c.state.Checks()[0]
	m := New(Config{Self: c.keys[check.Verifier], PayloadMax: 1000, Update: 5000, UpdateMax: 10_000})
	for _, ev := range []Event{before, Loaded{Known: true, Params: c.initial}, c.snapshot()} {
		m.Step(c.env.NowMs, ev)
	}
	take := func(s dispute.Commitment) *openCase {
		m.Step(c.env.NowMs, CommitmentReceived{Signed: &dispute.Signed{Commitment: s}, Signer: c.keys[check.Member], ID: s.ID()})
		return m.caseOf[Share{Round: check.Round, Member: check.Member}]
	}
	made := list[check.Member]
	made.State = wire.Sum("made for the check")
	if take(made).known {
		t.Fatal("it takes a commitment that no witness holds")
	}
	cs := m.caseOf[Share{Round: check.Round, Member: check.Member}]
	if r, _ := c.state.At(1); !slices.Contains(r.Witnesses(), c.member(m.holders(cs)[1])) {
		t.Error("it does not ask the witnesses next to the author")
	}
	if cs := take(list[check.Member]); !cs.known || cs.signed.Commitment != list[check.Member] || len(m.frauds) != 1 {
		t.Errorf("known is %v, %d frauds were found", cs.known, len(m.frauds))
	}
}

func (c *crowd) member(k key.Public) coordinator.Member {
	return coordinator.Member(slices.Index(c.keys, k))
}
