// Package adversary holds the cheats that the protocol must withstand. Each kind is an honest
// participant whose engine, ledger and network lie to it or for it. Package node itself holds no
// cheat; [Wrap] takes the configuration of an honest node and returns that of a dishonest one:
//
//	              ┌──────────────── node ────────────────┐
//	shares        │ Engine   Disputant   Ledger   Network │   gossip, blobs, answers
//	──────────►  [ step ]    [ lies ]    [ say ]  [ commit, hides ]  ◄──────────
//
// step computes what the member commits to or verifies. lies argues with a fabricated trace. say
// rewrites or drops its messages to the coordinator. commit changes or holds back its own
// commitments. hides withholds blobs from peers. A kind is a set of these hooks (kinds.go) and
// otherwise honest, so that it is caught for its cheat and for nothing else.
//
// Package sim, `entrain demo --adversary` and tests use the kinds. docs/security.md has a row for
// each.
package adversary

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/codec/slice"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/loop"
	"github.com/entrain-network/entrain/node"
	"github.com/entrain-network/entrain/node/gossip"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/wire"
)

// Options are the settings of an adversary beside those of its node.
type Options struct {
	// Seed determines its random choices.
	Seed wire.Hash
	// Run is what the member's engine was made for. Kinds that falsify the data make another engine
	// with NewEngine.
	Run       engine.Run
	NewEngine func(engine.Run) (engine.Engine, error)
	// Codec is the one that Run.Codec makes, for all to share; nil: each makes its own.
	Codec codec.Codec
	// Gang lists the identities that work together, including this one, in an order known to all of
	// them. nil means that it is alone.
	Gang []key.Public
	// Secret is known only to the gang.
	Secret wire.Hash
	// Referee is the run's. With it a liar continues a dispute to its end; without it, the node
	// says what it can.
	Referee dispute.Referee
	// Show has the member's bucket answer a read of an object only if allow returns true, and returns
	// the location to announce. allow may be called from any goroutine; reader is zero if it is not
	// known. Only the kind hide needs it.
	Show func(allow func(reader key.Public, n bucket.Name) bool) (registered string, err error)
	// Hide is the number of members from which the kind hide hides; 0: a third of all.
	Hide coordinator.Member
}

// Wrap returns the configuration of a node that cheats in the way of the named kind, from that of
// an honest node.
func Wrap(name string, cfg node.Config, o Options) (node.Config, error) {
	find := Find
	if _, slices := o.Run.Codec.(slice.Config); slices {
		find = FindMiner
	}
	k, ok := find(name)
	if !ok {
		return cfg, fmt.Errorf("adversary: there is no kind %q; the kinds are %s; in runs of buckets %s", name, Names(), MinerNames())
	}
	if len(o.Gang) < k.Gang {
		return cfg, fmt.Errorf("adversary: %s takes %d identities that work together, there are %d", name, k.Gang, len(o.Gang))
	}
	if o.Codec == nil {
		made, err := o.Run.Codec.New(o.Run.Model.Layout(), nil)
		if err != nil {
			return cfg, fmt.Errorf("adversary: %w", err)
		}
		o.Codec = made
	}
	m := &member{
		self: cfg.Key.Public(), signer: cfg.Key, o: o, codec: o.Codec, honest: cfg.Engine, random: prng.New(o.Seed, "adversary "+name),
		seen: map[coordinator.Round]map[coordinator.Member]*dispute.Signed{}, held: map[wire.Hash]bool{}, pending: map[coordinator.Round]dispute.Signed{},
		instead: map[coordinator.Round]dispute.Signed{}, secret: map[wire.Hash]bool{}, second: map[wire.Hash][]byte{}, loop: cfg.Loop, common: cfg.Common, read: cfg.Read,
	}
	if m.common == nil {
		m.common = client.Alone{}
	}
	if m.read == nil {
		m.read = gossip.Read
	}
	if cfg.Bucket != nil {
		own := *cfg.Bucket
		m.bucket, cfg.Bucket = &own, &own
	}
	h, err := k.make(m)
	if err != nil {
		return cfg, fmt.Errorf("adversary: %s: %w", name, err)
	}
	m.hooks = h
	if cfg.Disputant != nil && o.Referee != nil && h.lies != nil {
		cfg.Disputant = disputant{Disputant: cfg.Disputant, m: m}
	}
	cfg.Engine = dishonestEngine{Engine: cfg.Engine, m: m}
	cfg.Ledger = m.chain(cfg.Ledger)
	listen := cfg.Listen
	if listen == nil {
		return cfg, nil // it exchanges by buckets
	}
	cfg.Listen = func(inner p2p.Handler) (p2p.Network, error) {
		m.inner = inner
		network, err := listen(handler{Handler: inner, m: m})
		if err != nil {
			return nil, err
		}
		m.network = network
		return peers{Network: network, m: m}, nil
	}
	return cfg, nil
}

// hooks are the ways in which a kind differs from an honest member. A nil hook is honest. All but
// step are called with the member's lock held and must not block.
type hooks struct {
	// own computes the member's share of a round.
	own step
	// others computes the share of another member, for its verifier or tie-breaker.
	others step
	// say replaces a message to the coordinator, or drops it by returning false.
	say func(coordinator.Message) (coordinator.Message, bool)
	// wait returns how long a message to the coordinator is kept back, at most 0 if it is not.
	wait func(coordinator.Message) time.Duration
	// commit receives the member's commitment of a round before it is published, and returns what
	// to publish at once.
	commit func(dispute.Signed) []dispute.Signed
	// see receives a new state, commitment or blob, and returns commitments of its own to publish
	// now.
	see func() []dispute.Signed
	// lies reports whether the member argues with a fabricated trace about a member's results: its
	// own, which are wrong, or those of others, which it accuses.
	lies func(own bool) bool
	// hides reports whether a blob is kept from peers.
	hides func(wire.Hash) bool
	// update receives the update of a round that the member applied, and returns what to name to
	// followers and to serve in its place.
	update func([]byte) []byte
	// aggregates receives a question to the member as an aggregator (questionRange, questionHeld or
	// questionSlice), who asks, and the honest answer, and returns what to answer.
	aggregates func(question byte, from key.Public, answer []byte) []byte
	// check receives every payload that the node takes from others. It is called off the loop,
	// without the lock.
	check func(payload []byte)
}

// waits returns how long a message is kept back.
func (h hooks) waits(said coordinator.Message) time.Duration {
	if h.wait == nil {
		return 0
	}
	return h.wait(said)
}

// member is one dishonest participant. Its hooks share what it has seen.
type member struct {
	self    key.Public
	signer  key.Private
	o       Options
	codec   codec.Codec
	honest  engine.Engine
	hooks   hooks
	inner   p2p.Handler // the node's own handler
	network p2p.Network
	bucket  *node.Bucket // the member's, in a run that exchanges by buckets
	loop    loop.Loop
	common  client.Common // the node's, and its Config.Read
	read    func([]byte) (*gossip.Authored, bool)

	mu       sync.Mutex // guards what follows
	random   prng.Source
	state    coordinator.State
	hasState bool
	// seen holds the commitments of others by round and member, for the newest rounds.
	seen map[coordinator.Round]map[coordinator.Member]*dispute.Signed
	// held holds the roots of fetched blobs.
	held map[wire.Hash]bool
	// pending holds the node's commitments that are held back, and instead those published in their
	// place, by round.
	pending, instead map[coordinator.Round]dispute.Signed
	// secret holds the roots of blobs that are withheld from peers.
	secret map[wire.Hash]bool
	// second holds the payloads of second commitments, by root, and asker is the peer that is being
	// answered.
	second map[wire.Hash][]byte
	asker  *key.Public
	// news counts what may let the member copy a payload.
	news int
	// cheated lists the last rounds in which a kind that does not always cheat did.
	cheated []coordinator.Round
}

// keepRounds is the number of rounds whose commitments a member remembers.
const keepRounds = 8

// index returns the member's index in the run.
func (m *member) index() (coordinator.Member, bool) {
	if !m.hasState {
		return 0, false
	}
	return m.state.Find(m.self)
}

// trainerOf returns the member that was given a share in one of the newest rounds, and that round,
// or false.
func (m *member) trainerOf(spans []batch.Span) (who coordinator.Member, round coordinator.Round, ok bool) {
	if !m.hasState {
		return 0, 0, false
	}
	h := batch.Hash(spans)
	for back := range coordinator.Round(4) {
		r, found := m.state.At(m.state.Round() - back)
		if !found || !r.Trains() {
			continue
		}
		if i := slices.Index(m.common.Shares(r).Hashes, h); i >= 0 {
			return coordinator.Member(i), r.Number(), true
		}
	}
	return 0, 0, false
}

// ours reports whether a key belongs to the gang.
func (m *member) ours(k key.Public) bool {
	for _, g := range m.o.Gang {
		if g == k {
			return true
		}
	}
	return false
}

// remember records a commitment of another member.
func (m *member) remember(author key.Public, s *dispute.Signed) {
	c := &s.Commitment
	if author == m.self {
		return
	}
	if m.seen[c.Round] == nil {
		m.seen[c.Round] = map[coordinator.Member]*dispute.Signed{}
	}
	m.seen[c.Round][c.Member] = s
	if m.held[c.Payload] {
		m.news++
	}
}

// forget drops the commitments of old rounds: as a witness the member has heard those of all. Of
// the newest round it keeps the one that rumour tells of.
func (m *member) forget(now coordinator.Round) {
	newest := slices.Max(append(slices.Collect(maps.Keys(m.seen)), 0))
	maps.DeleteFunc(m.seen, func(round coordinator.Round, of map[coordinator.Member]*dispute.Signed) bool {
		if round+keepRounds < now && round == newest && len(of) > 1 {
			i, s := least(of)
			m.seen[round] = map[coordinator.Member]*dispute.Signed{i: s}
		}
		return round+keepRounds < now && round < newest
	})
}

// least returns the commitment that states the least loss, of several the first member's.
func least(of map[coordinator.Member]*dispute.Signed) (who coordinator.Member, best *dispute.Signed) {
	for i, s := range of {
		if best == nil || s.Commitment.Loss < best.Commitment.Loss || s.Commitment.Loss == best.Commitment.Loss && i < who {
			who, best = i, s
		}
	}
	return who, best
}

// sign signs a commitment as this member.
func (m *member) sign(c dispute.Commitment) dispute.Signed { return c.Sign(m.signer) }

// noise returns a hash that nobody can guess.
func (m *member) noise() (h wire.Hash) {
	for i := 0; i < len(h); i += 8 {
		x := m.random.Uint64()
		for k := range 8 {
			h[i+k] = byte(x >> (8 * k))
		}
	}
	return h
}
