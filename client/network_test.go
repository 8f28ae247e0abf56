package client

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/wire"
)

// network drives machines against one coordinator. Parameters are hashes: applying a set hashes the payloads onto the old ones,
// training hashes the round and the member. Time is counted in steps of stepMs; messages may be lost.
type network struct {
	reported []coordinator.Witness // reports that were accepted
	t        testing.TB
	state    coordinator.State
	before   []byte // the state before the last tick
	now      uint64
	random   prng.Source
	peers    []*peer
	byKey    map[key.Public]*peer
	height   uint64
	lose     func(from, to *peer) bool // of gossip and fetches
	initial  wire.Hash
	settled  map[coordinator.Round]map[coordinator.Member]bool // by round and member: whether the result was accepted
	censor   func(coordinator.Message) bool                    // messages that never reach the coordinator
	follow   *followTest                                       // nil in a run without followers
	idle     int                                               // events that did not matter
}

const stepMs = 50

// peer is a machine and what a driver would keep for it.
type peer struct {
	*network
	name       string
	key        key.Private
	machine    *Machine
	up         bool
	params     wire.Hash
	held       map[wire.Hash]bool                           // payloads
	optimizer  map[wire.Hash]bool                           // states
	known      map[coordinator.Round]map[wire.Hash]authored // commitments by round
	saved      Loaded                                       // state file
	inbox      []Event
	training   *Train
	trainAt    uint64
	slow       uint64 // ms a share takes
	each       uint64 // ms a sequence of it takes; 0: all takes slow
	trial      uint32 // tokens a second it believes to train before it has
	heals      int
	notes      []string
	equivocate bool
	silent     bool // never serves its payloads
	foreign    bool // begins from an optimizer state of its own making
	lies       bool // commits to something else than it computes, and defends it
	slanders   bool // finds every share of others wrong
	miser      bool // serves no optimizer states

	jobs     []job // that take time
	expelled *Expelled
	verdicts map[Verdict]int
	moves    int
	repeat   bool // every event comes twice
	kept     map[Share]Kept
	commits  []dispute.Commitment
	sent     []coordinator.Message
	deaf     func(coordinator.Message) bool // of the outcomes of these it hears nothing
	onVerify func(Verify)
	shelves  shelves
	delay    uint64      // more than slow, of verifications
	watch    *lightWatch // nil: the ledger shows whole states alone
}

// job is an outcome that comes later.
type job struct {
	at uint64
	ev Event
}

type authored struct {
	signed dispute.Signed
	author key.Public
}

func testConfig(n uint32, overlap uint8, steps uint32) coordinator.Config {
	return coordinator.Config{
		Name: "test", MinMembers: max(1, n/2), StartMembers: n, WaitingMs: 500, WarmupMs: 5000, RoundTrainMs: 4000, RoundWitnessMs: 1000,
		CooldownMs: 1000, EpochMs: 20000, TotalSteps: coordinator.Step(steps), BatchStart: 2 * n, BatchEnd: 2 * n, SequenceTokens: 16, Overlap: overlap, MissedMax: 2,
		ModelHash: wire.Sum("initial"), SpecHash: wire.Sum("spec"), StateHash: testFresh, Owner: key.Public{1},
	}
}

func newNetwork(t testing.TB, n uint32, overlap uint8, steps uint32, seed uint64, adjust ...func(*coordinator.Config)) *network {
	t.Helper()
	cfg := testConfig(n, overlap, steps)
	for _, f := range adjust {
		f(&cfg)
	}
	state, err := coordinator.New(coordinator.Limits{Members: max(16, n), Witnesses: max(8, cfg.Witnesses), Buckets: cfg.Exchange == coordinator.Buckets, Speeds: cfg.Sharing == coordinator.SpeedShares}, cfg, coordinator.Env{NowMs: 1000})
	if err != nil {
		t.Fatalf("%v: %v", err, cfg.Check(coordinator.Limits{Members: max(16, n), Witnesses: 8}))
	}
	net := &network{t: t, state: state, now: 1000, random: prng.New(wire.Sum("seed", wire.AppendU64(nil, seed)), "network"), initial: cfg.ModelHash, byKey: map[key.Public]*peer{}, settled: map[coordinator.Round]map[coordinator.Member]bool{}}
	net.lose = func(from, to *peer) bool { return false }
	for i := range n {
		net.add(fmt.Sprintf("peer %d", i), i)
	}
	return net
}

func (net *network) add(name string, i uint32) *peer {
	p := &peer{network: net, name: name, key: key.FromSeed(wire.Sum("peer", wire.AppendU32(nil, i))), slow: 100, verdicts: map[Verdict]int{}, kept: map[Share]Kept{}}
	p.saved = Loaded{Known: true, Params: net.initial}
	net.peers, net.byKey[p.key.Public()] = append(net.peers, p), p
	p.start()
	return p
}

// start begins with what the state file holds.
func (p *peer) start() {
	p.up = true
	p.machine = New(p.follow.config(Config{Self: p.key.Public(), PayloadMax: 1000, Speed: p.trial, Light: p.watch != nil}))
	p.held, p.known, p.optimizer = map[wire.Hash]bool{}, map[coordinator.Round]map[wire.Hash]authored{}, map[wire.Hash]bool{}
	p.params, p.training, p.inbox, p.jobs, p.expelled = p.saved.Params, nil, nil, nil, nil
	p.saved.Cases = nil
	for _, k := range p.kept {
		p.optimizer[k.Commitment.Prev] = true
		p.saved.Cases = append(p.saved.Cases, k)
	}
	if p.watch != nil {
		p.watch.Watch = Watch{}
	}
	p.show(p.snapshot())
	p.feed(p.saved)
}

func (p *peer) crash() { p.up = false }

func (net *network) snapshot() coordinator.State {
	s, err := coordinator.Open(append([]byte(nil), net.state.Bytes()...))
	if err != nil {
		net.t.Fatalf("a state of the coordinator's own does not open: %v", err)
	}
	return s
}

func (p *peer) feed(ev Event) {
	p.inbox = append(p.inbox, ev)
	if p.repeat {
		p.inbox = append(p.inbox, ev)
	}
}

// later feeds an event when a peer's computation is done.
func (p *peer) later(ev Event) { p.jobs = append(p.jobs, job{p.now + p.slow + p.delay, ev}) }

// run lets time pass until done, and fails the test if that takes more than limitMs.
func (net *network) run(limitMs uint64, done func() bool) {
	net.t.Helper()
	for end := net.now + limitMs; !done(); {
		if net.now > end {
			net.t.Fatalf("after %d ms: %s, epoch %d, round %d, step %d, members %d", limitMs, net.state.Phase(), net.state.Epoch(),
				net.state.Round(), net.state.Step(), net.state.Present())
		}
		net.tick()
	}
}

func (net *network) finished() bool { return net.state.Phase() == coordinator.Finished }

func (net *network) tick() {
	net.now += stepMs
	net.height++
	net.before = append(net.before[:0], net.state.Bytes()...)
	net.apply(key.Public{}, coordinator.Tick{})
	for _, p := range net.peers {
		if !p.up {
			continue
		}
		if t := p.training; t != nil && net.now >= p.trainAt {
			p.training = nil
			p.train(t)
		}
		for len(p.jobs) > 0 && net.now >= p.jobs[0].at {
			p.feed(p.jobs[0].ev)
			p.jobs = p.jobs[1:]
		}
		p.feed(Tick{})
		p.drain()
	}
	if !bytes.Equal(net.state.Bytes(), net.before) {
		all := net.snapshot() // machines write to none
		for _, p := range net.peers {
			if p.up {
				p.see(all)
			}
		}
	}
	net.record()
	net.compare()
}

// record notes which results were accepted.
func (net *network) record() {
	for number := net.state.Round(); number > 0 && number+ringRounds > net.state.Round(); number-- {
		if r, ok := net.state.At(number); ok && r.Trains() && r.Final() && net.settled[number] == nil {
			net.settled[number] = map[coordinator.Member]bool{}
			for i := range net.state.Count() {
				net.settled[number][i] = r.Accepted(i)
			}
		}
	}
}

// train ends a share: its payload and the state after it follow from the round, the member and the state before.
func (p *peer) train(t *Train) {
	prev := t.Prev
	if !p.optimizer[prev] {
		prev = testFresh
	}
	if p.foreign {
		prev = wire.Sum("foreign", wire.AppendU32(nil, uint32(t.Round)))
	}
	made := p.share(t.Round, prev)
	if p.lies {
		made.Payload = wire.Sum("lie", made.Payload[:])
	}
	p.held[made.Payload], p.optimizer[made.State] = true, true
	p.feed(made)
}

// share is what a peer's training of a round yields.
func (p *peer) share(round coordinator.Round, prev wire.Hash) Trained {
	of := func(what string) wire.Hash {
		return wire.Sum(what, wire.AppendU32(nil, uint32(round)), []byte(p.name), prev[:])
	}
	return Trained{Round: round, Payload: of("payload"), PayloadBytes: 100, Prev: prev, State: of("state"), Gradient: of("gradient")}
}

var testFresh = wire.Sum("fresh")

func (p *peer) drain() {
	for len(p.inbox) > 0 {
		ev := p.inbox[0]
		p.inbox = p.inbox[1:]
		wake := p.machine.Wake()
		for _, a := range p.machine.Step(p.now, ev) {
			if _, tick := ev.(Tick); tick && p.now < wake {
				p.t.Fatalf("%s asks at %d ms for %T, and was to sleep until %d", p.name, p.now, a, wake)
			}
			p.perform(a)
		}
		if !p.machine.matters(ev) {
			p.inbox = append([]Event{Tick{}}, p.inbox...) // before it is due it must find nothing to ask for
			p.idle++
		}
	}
}

func (net *network) apply(sender key.Public, m coordinator.Message) error {
	seed := wire.Sum("block", wire.AppendU64(nil, net.height), wire.AppendU64(nil, net.random.Uint64()))
	return net.state.Apply(coordinator.Env{NowMs: net.now, Height: net.height, Seed: seed, Sender: sender, Referee: referee{net}}, m)
}

// compare checks that peers at the same round hold the same parameters.
func (net *network) compare() {
	byRound := map[coordinator.Round]*peer{}
	for _, p := range net.peers {
		if !p.up || p.follow != nil && p.follow.tainted[p.params] {
			continue
		}
		round, hash, ok := p.machine.Round()
		if !ok {
			continue
		}
		if hash != p.params {
			net.t.Fatalf("%s: the machine believes in %s and the driver holds %s", p.name, hash, p.params)
		}
		if q := byRound[round]; q == nil {
			byRound[round] = p
		} else if q.params != p.params {
			net.t.Fatalf("at %d ms round %d: %s holds %s, %s holds %s", net.now, round, p.name, p.params, q.name, q.params)
		}
	}
}

func (net *network) peer(k key.Public) *peer {
	return net.byKey[k]
}

func (p *peer) keep(a authored) bool {
	c := a.signed.Commitment
	if p.known[c.Round] == nil {
		p.known[c.Round] = map[wire.Hash]authored{}
	}
	if _, ok := p.known[c.Round][c.ID()]; ok {
		return false
	}
	p.known[c.Round][c.ID()] = a
	return true
}

func (p *peer) gossip(a authored, to func(i int) bool) {
	for i, q := range p.peers {
		if q != p && q.up && to(i) && !p.lose(p, q) && q.keep(a) {
			q.feed(CommitmentReceived{Signed: &a.signed, Signer: a.author, ID: a.signed.Commitment.ID()})
		}
	}
}

func (p *peer) perform(a Action) {
	if p.buckets() && p.bucket(a) {
		return
	}
	if p.follow != nil && p.followed(a) {
		return
	}
	switch a := a.(type) {
	case Submit:
		if p.censor != nil && p.censor(a.Message) {
			p.feed(Submitted{Message: a.Message, Err: wire.ErrShort})
			return
		}
		p.sent = append(p.sent, a.Message)
		err := p.apply(p.key.Public(), a.Message)
		if p.deaf != nil && p.deaf(a.Message) {
			err = wire.ErrShort
		}
		if w, ok := a.Message.(coordinator.Witness); ok && err == nil {
			p.reported = append(p.reported, w)
		}
		p.feed(Submitted{Message: a.Message, Err: err})
	case Train:
		if a.Params != p.params {
			p.t.Errorf("%s: asked to train on %s, holds %s", p.name, a.Params, p.params)
		}
		p.training, p.trainAt = &a, p.now+p.slow
		if p.each > 0 {
			p.trainAt = p.now + p.each*uint64(batch.Total(a.Spans))
		}
	case CancelTraining:
		p.training = nil
	case Commit:
		p.commit(a)
	case Republish:
		for _, k := range p.known[a.Round] {
			if k.author == p.key.Public() && !p.equivocate {
				p.gossip(k, p.among(a.To))
			}
		}
	case AskCommitments:
		p.ask(a)
	case FetchPayload:
		p.fetch(a)
	case Apply:
		p.applySet(a)
	case Heal:
		p.heal(a)
	case Save:
		p.feed(Saved{Epoch: a.Epoch, Manifest: wire.Sum("manifest"), OK: true})
	case Watch:
		p.turn(a)
	case Note:
		p.notes = append(p.notes, a.Text)
	case AskSpans:
		p.tell(a)
	case Verify:
		p.verify(a)
	case Argue:
		p.argue(a)
	case Keep:
		p.kept[a.Share] = a.Kept
	case Expelled:
		p.expelled = &a
	}
}

// among reports which peers something is for.
func (p *peer) among(to []key.Public) func(i int) bool {
	return func(i int) bool { return to == nil || slices.Contains(to, p.peers[i].key.Public()) }
}

// signed is what the peer committed to last.
func (p *peer) signed() (s dispute.Signed) {
	for _, s = range p.saved.Committed {
	}
	return s
}

func (p *peer) commit(a Commit) {
	c := a.Commitment
	if last := p.signed().Commitment; last.Round == c.Round && last != c {
		p.t.Errorf("%s commits twice in round %d", p.name, c.Round)
	}
	first := authored{c.Sign(p.key), p.key.Public()}
	p.saved.Committed = append(p.saved.Committed[max(0, len(p.saved.Committed)-2):], first.signed)
	p.commits = append(p.commits, c)
	p.keep(first)
	if !p.equivocate {
		p.gossip(first, p.among(a.To))
		return
	}
	// One commitment for half of the network, another for the rest.
	c.Payload = wire.Sum("other", c.Payload[:])
	p.held[c.Payload] = true
	second := authored{c.Sign(p.key), p.key.Public()}
	p.keep(second)
	p.gossip(first, func(i int) bool { return i%2 == 0 })
	p.gossip(second, func(i int) bool { return i%2 == 1 })
}

func (p *peer) ask(a AskCommitments) {
	q := p.peer(a.To)
	if q == nil || !q.up || p.lose(p, q) {
		return
	}
	for _, k := range q.known[a.Round] {
		for _, i := range a.Of {
			if k.signed.Commitment.Member == i {
				p.keep(k)
				p.feed(CommitmentReceived{Signed: &k.signed, Signer: k.author, ID: k.signed.Commitment.ID(), From: a.To})
			}
		}
	}
}

func (p *peer) fetch(a FetchPayload) {
	ok, from := p.held[a.Payload], append([]key.Public{a.Author}, a.From...)
	if !a.Bulk.IsZero() {
		from = []key.Public{a.Bulk}
		p.follow.bulk++
		if p.follow.noBulk {
			from = nil
		}
	}
	for _, k := range from {
		if q := p.peer(k); q != nil && q.up && !q.silent && q.held[a.Payload] && !p.lose(p, q) {
			ok = true
		}
	}
	if ok {
		p.held[a.Payload] = true
	}
	p.feed(PayloadFetched{Round: a.Round, Member: a.Member, ID: a.ID, OK: ok})
}

func (p *peer) applySet(a Apply) {
	parts := [][]byte{p.params[:]}
	for _, payload := range a.Payloads {
		if !p.held[payload] {
			p.t.Errorf("%s: asked to apply a payload it does not hold", p.name)
		}
		parts = append(parts, payload[:])
	}
	p.params = wire.Sum("params", parts...)
	p.saved.Known, p.saved.Round, p.saved.Params = true, a.To, p.params
	p.feed(Applied{To: a.To, Params: p.params, OK: true})
}

func (p *peer) heal(a Heal) {
	ok := a.Params == p.initial
	for _, k := range a.From {
		// Peers serve their parameters of the last few rounds.
		if q := p.peer(k); q != nil && q.up && !p.lose(p, q) {
			if h, has := q.machine.model.at(a.Round); has && h == a.Params {
				ok = true
			}
		}
	}
	if ok {
		p.heals++
		p.params = a.Params
	}
	p.feed(Healed{Round: a.Round, Params: a.Params, OK: ok})
}
