package sim

import (
	"fmt"
	"slices"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/lab/adversary"
	"github.com/entrain-network/entrain/node"
	"github.com/entrain-network/entrain/wire"
)

// Kinds returns all kinds of adversaries of a network, those that lie to followers included if it
// has any.
func Kinds(followers bool) []adversary.Kind {
	if followers {
		return append(adversary.Kinds(), adversary.Misleaders()...)
	}
	return adversary.Kinds()
}

// Mix returns the kinds of n adversaries, in the order of the library, so that all occur if n is
// large enough. Gangs stay together.
func Mix(n int, followers bool) []string {
	var kinds []string
	for len(kinds) < n {
		for _, k := range Kinds(followers) {
			for range max(1, k.Gang) {
				kinds = append(kinds, k.Name)
			}
		}
	}
	kinds = kinds[:n]
	if k, _ := adversary.Find(kinds[n-1]); slices.Index(kinds, k.Name) == n-1 && k.Gang > 1 {
		kinds[n-1] = kinds[0] // instead of part of a gang
	}
	return kinds
}

// checkKinds returns an error if the configuration's adversaries are invalid.
func (c Config) checkKinds() error {
	if len(c.Adversaries) >= c.Clients && c.Clients > 0 && len(c.Adversaries) > 0 {
		return fmt.Errorf("sim: %d of %d clients are adversaries: at least one must be honest", len(c.Adversaries), c.Clients)
	}
	for _, name := range c.Adversaries {
		k, ok := adversary.Find(name)
		if !ok {
			return fmt.Errorf("sim: there is no adversary %q; there are %s", name, adversary.Names())
		}
		of := 0
		for _, other := range c.Adversaries {
			if other == name {
				of++
			}
		}
		if of < k.Gang {
			return fmt.Errorf("sim: the adversary %s takes %d clients", name, k.Gang)
		}
	}
	return nil
}

// kind returns a client's kind, or "" if it is honest. The last clients are the adversaries.
func (c Config) kind(client int) string {
	if first := c.Clients - len(c.Adversaries); client >= first && !c.Reformed {
		return c.Adversaries[client-first]
	}
	return ""
}

// gang returns the keys of all clients of a kind.
func (n *network) gang(kind string) []key.Public {
	if n.gangs == nil {
		n.gangs = map[string][]key.Public{}
		for i := range n.cfg.Clients {
			if k := n.cfg.kind(i); k != "" {
				n.gangs[k] = append(n.gangs[k], n.key(i).Public())
			}
		}
	}
	return n.gangs[kind]
}

// cheats reports whether a client does what its kind is convicted of. In each gang of sybils one
// works honestly for the others.
func (n *network) cheats(client int) bool {
	kind := n.cfg.kind(client)
	return kind != "" && (kind != "sybil" || n.gang(kind)[0] != n.members[client].key.Public())
}

// corrupt makes a node an adversary.
func (n *network) corrupt(client int, cfg node.Config) (node.Config, error) {
	kind := n.cfg.kind(client)
	if kind == "" {
		return cfg, nil
	}
	if n.sharing.codec == nil {
		made, err := n.run.Codec.New(n.run.Model.Layout(), nil)
		if err != nil {
			return cfg, err
		}
		n.sharing.codec = made
	}
	return adversary.Wrap(kind, cfg, adversary.Options{
		Seed: wire.Sum("entrain/sim/adversary", n.seed[:], wire.AppendU32(nil, uint32(client))),
		Run:  n.run, Codec: n.sharing.codec, NewEngine: n.newEngine, Gang: n.gang(kind), Secret: wire.Sum("entrain/sim/secret", n.seed[:]), Referee: n.referee,
	})
}

// clientOf returns the client that has a key.
func (n *network) clientOf(k key.Public) int {
	i, ok := n.clients[k]
	if !ok {
		panic("sim: a member is not a client")
	}
	return i
}

// Conviction is a client's conviction.
type Conviction struct {
	Client  int               `json:"client"`
	Kind    string            `json:"kind"` // "" if it is honest
	Offence string            `json:"offence"`
	Lesser  bool              `json:"lesser,omitempty"` // costs a fee, and the client may come back
	Round   coordinator.Round `json:"round"`            // round of the offence
	At      coordinator.Round `json:"at"`               // round of the conviction
	Slashed uint64            `json:"slashed"`
	Results uint32            `json:"results"` // results accepted before
}

// trust is what the simulation knows of verification: what was decided, and with which
// probabilities.
type trust struct {
	convictions []Conviction
	// exposures holds the exposure of each adversary whose results are wrong, by client, and rounds
	// their rounds.
	exposures map[int]*Exposure
	rounds    map[int][]coordinator.Round
	drawn     map[coordinator.Round]bool // rounds whose checks were drawn
	// disputed is the first round in which each client was accused.
	disputed map[int]coordinator.Round
	ejected  map[int]bool
	before   coordinator.State // the state before the last block
	first    bool
	purses   wire.Hash // host.Host.Purses, when they were counted
	inPurses uint64    // tokens of the clients and the owner then
}

// inspectTrust looks at checks, disputes, convictions and tokens.
func (n *network) inspectTrust(s coordinator.State, sum totals) {
	t := &n.trust
	if n.cfg.Verification == 0 {
		return
	}
	if t.exposures == nil {
		t.exposures, t.rounds, t.drawn = map[int]*Exposure{}, map[int][]coordinator.Round{}, map[coordinator.Round]bool{}
		t.disputed, t.ejected = map[int]coordinator.Round{}, map[int]bool{}
	}
	n.expose(s)
	for _, d := range s.Disputes() {
		client := n.clientOf(s.Key(d.Accused))
		if _, known := t.disputed[client]; !known && !d.Unserved {
			t.disputed[client] = d.Round
		}
	}
	for _, c := range s.Convictions() {
		if int(c.Number) > len(t.convictions) {
			n.convicted(s, c)
		}
	}
	t.before, t.first = s, true
	n.count(s, sum)
}

// convicted records a conviction. The conviction of an honest client breaks an invariant.
func (n *network) convicted(s coordinator.State, c dispute.Conviction) {
	t := &n.trust
	client := n.clientOf(c.Key)
	kind := n.cfg.kind(client)
	t.convictions = append(t.convictions, Conviction{
		Client: client, Kind: kind, Offence: c.Offence.String(), Lesser: c.Offence.Lesser(), Round: c.Round, At: s.Round(),
		Slashed: c.Slashed, Results: c.Results,
	})
	t.ejected[client] = t.ejected[client] || !c.Offence.Lesser()
	if !n.cheats(client) && !(c.Offence.Lesser() && (n.cfg.faulty() || n.cfg.denied())) {
		n.fail("client %d, an honest one, is convicted of %v in round %d", client, c.Offence, c.Round)
	}
	// A crash has a cheat forget which commitment it published in place of its node's.
	forgot := c.Offence == dispute.Equivocated && n.members[client].crashed
	if k, _ := adversary.Find(kind); n.cheats(client) && !c.Offence.Lesser() && !k.Convicts(c.Offence) && !forgot {
		n.fail("client %d, a %s, is convicted of %v in round %d, which it did not do", client, kind, c.Offence, c.Round)
	}
}

// faulty reports whether crashes and the like make honest clients miss rounds, for which they may
// pay a fee.
func (c Config) faulty() bool {
	return c.Crashes+c.Stragglers+c.Partitions+c.Outages+c.Jumps+c.Leaves+c.Restores+c.FullDisks > 0
}

// denied reports whether there are enough deniers to have an honest member charged for not serving:
// a verifier and two tie-breakers.
func (c Config) denied() bool {
	count := 0
	for _, kind := range c.Adversaries {
		if kind == "denier" {
			count++
		}
	}
	return count >= 3 && !c.Reformed
}

// expose records the probabilities with which adversaries' results of a round were checked, once
// they have been drawn.
func (n *network) expose(s coordinator.State) {
	t := &n.trust
	if !t.first {
		return
	}
	// When a round opens after another of its epoch, checks are drawn of the round before both, whose
	// parameters the second committee has just named.
	opened, ok := s.At(s.Round())
	if !ok || t.drawn[opened.Number()] {
		return
	}
	t.drawn[opened.Number()] = true
	closed, ok := s.At(opened.Number() - 1)
	if !ok || closed.Epoch() != opened.Epoch() {
		return
	}
	about, ok := s.At(closed.Number() - 1)
	if _, agreed := about.Agreed(); !ok || !about.Final() || !agreed {
		return
	}
	chance, w := chances(t.before, s, about), n.watchers(s)
	for i := range s.Count() {
		client := n.clientOf(s.Key(i))
		k, ok := adversary.Find(n.cfg.kind(client))
		if _, accused := t.disputed[client]; !ok || !k.Checked || !n.cheats(client) || accused || chance[i] == 0 || n.harmless(k, about) {
			continue
		}
		e := t.exposures[client]
		if e == nil {
			e = &Exposure{Client: client, Kind: k.Name}
			t.exposures[client] = e
		}
		e.Chances = append(e.Chances, chance[i]*w.able(s.Status(i) == coordinator.StatusActive, n.cfg.kind(client)))
		t.rounds[client] = append(t.rounds[client], about.Number())
	}
}

// harmless reports whether a kind does nothing wrong in a round: a stale rider works once.
func (n *network) harmless(k adversary.Kind, about coordinator.RoundState) bool {
	return k.Name == "free-rider-stale" && about.Step() == 1
}

// chances returns the probabilities with which the results of a round are checked, as in the
// coordinator's draw, which uses integers. Doubts are those before the block.
func chances(before, s coordinator.State, about coordinator.RoundState) []float64 {
	out := make([]float64, s.Count())
	weight := make([]float64, s.Count())
	budget, sum := 0.0, 0.0
	for i := range s.Count() {
		if about.Accepted(i) && s.Status(i) != coordinator.StatusEjected {
			weight[i] = float64(before.Member(i).Doubt)
			budget += float64(s.Config().VerificationPercent) / 100
			sum += weight[i]
		}
	}
	for w := 16.0; w >= 1; w-- {
		sure := 0.0
		for i := range weight {
			switch {
			case weight[i] != w:
			case budget*w >= sum:
				out[i] = 1
				sure++
			default:
				out[i] = budget * w / sum
			}
		}
		budget -= sure
		sum -= sure * w
	}
	return out
}

// watchers counts the active members, those whose verification finds a wrong result of a colluder,
// and those who find one of another member. Lazy members and fellows of a gang do not look, and bad
// hardware cannot tell.
type watchers struct{ active, ofColluders, ofOthers float64 }

// looks reports whether a member of a kind finds a wrong result of another kind.
func looks(kind, of string) bool {
	return kind != "lazy-verifier" && kind != "bad-hardware" && (kind != "colluder" || of != "colluder")
}

func (n *network) watchers(s coordinator.State) (w watchers) {
	for k := range s.Count() {
		if s.Status(k) != coordinator.StatusActive {
			continue
		}
		kind := n.cfg.kind(n.clientOf(s.Key(k)))
		w.active++
		if looks(kind, "colluder") {
			w.ofColluders++
		}
		if looks(kind, "") {
			w.ofOthers++
		}
	}
	return w
}

// able returns the part of the other members whose verification finds a wrong result of a member
// of a kind.
func (w watchers) able(active bool, kind string) float64 {
	others, able := w.active, w.ofOthers
	if kind == "colluder" {
		able = w.ofColluders
	}
	if active { // it does not verify its own
		others--
		if looks(kind, kind) {
			able--
		}
	}
	return able / max(others, 1)
}

// count checks that no token appeared or disappeared.
func (n *network) count(s coordinator.State, of totals) {
	t, host := &n.trust, n.chain.Host()
	if purses := host.Purses(); purses != t.purses {
		t.purses, t.inPurses = purses, host.Balance(n.owner.Public())
		for _, p := range n.members {
			t.inPurses += host.Balance(p.key.Public())
		}
	}
	if sum := s.Escrow() + t.inPurses; sum != host.Supply() {
		n.fail("accounts and the run have %d tokens, %d were made", sum, host.Supply())
	}
	if held := s.Treasury() + of.tokens; held != s.Escrow() {
		n.fail("the treasury, stakes and balances are %d tokens, the run has %d", held, s.Escrow())
	}
}

// judged adds the results of verification to the report.
func (n *network) judged() {
	t, r := &n.trust, &n.report
	r.Convictions = t.convictions
	drawn, passed := n.state().ChecksDrawn()
	r.Checks, r.Passed, r.Disputes = drawn, passed, n.state().DisputesTotal()
	for _, c := range t.convictions {
		if !n.cheats(c.Client) && !c.Lesser {
			r.HonestConvicted++
		}
	}
	for i := range n.cfg.Clients {
		k, _ := adversary.Find(n.cfg.kind(i))
		if n.cheats(i) && k.Provable() && !t.ejected[i] {
			r.Undetected++
		}
		if e := t.exposures[i]; e != nil {
			if at, accused := t.disputed[i]; accused && t.ejected[i] {
				if last := slices.Index(t.rounds[i], at); last >= 0 {
					e.Chances, e.Detected = e.Chances[:last+1], true
				}
			}
			r.Exposures = append(r.Exposures, *e)
		}
	}
}
