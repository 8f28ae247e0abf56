package comet

import (
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"testing"
	"testing/iotest"
	"time"

	"github.com/cometbft/cometbft/crypto/ed25519"
	cmttypes "github.com/cometbft/cometbft/types"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/ledger/comet/headers"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/tests/campaign"
	"github.com/entrain-network/entrain/wire"
)

// clock is the time at which worlds show states.
var clock = time.Unix(genesisMs/1000, 0)

// light returns what a light watcher gets next, no bytes if there is nothing.
func (w *world) light(p *replica) []byte {
	w.t.Helper()
	now, l, _ := w.hub.look("demo")
	n, err := l.after(p.light.at, 0, now, clock, signers(4))
	if err != nil {
		w.t.Fatal(err)
	}
	return n.frame
}

// due has what is not urgent be due.
func (w *world) due() {
	_, l, _ := w.hub.look("demo")
	l.shown = l.shown.Add(-lightRoundWait)
}

// followLightly takes p to the newest state that is shown and returns the length of the frames that
// it took.
func (w *world) followLightly(p *replica) (n int) {
	w.t.Helper()
	for frame := w.light(p); frame != nil; frame = w.light(p) {
		if _, err := p.apply(frame[4:]); err != nil {
			w.t.Fatal(err)
		}
		n += len(frame)
	}
	return n
}

// signers are replicas that sign headers with random bytes.
type signers int

func (n signers) block(height uint64) ([]byte, error) {
	drawn := uint64(0)
	random := func() []byte {
		drawn++
		h := wire.Sum("entrain/test/header", wire.AppendU64(nil, height), wire.AppendU64(nil, drawn))
		return h[:]
	}
	var keys []*cmttypes.Validator
	commit := &cmttypes.Commit{Height: int64(height)}
	at := time.UnixMilli(int64(genesisMs + height*200)).UTC()
	for i := range int(n) {
		seed := wire.Sum("entrain/test/replica", wire.AppendU64(nil, uint64(i)))
		keys = append(keys, cmttypes.NewValidator(ed25519.GenPrivKeyFromSecret(seed[:]).PubKey(), 10))
		commit.Signatures = append(commit.Signatures, cmttypes.CommitSig{
			BlockIDFlag: cmttypes.BlockIDFlagCommit, ValidatorAddress: keys[i].Address, Timestamp: at.Add(time.Duration(drawn) * time.Millisecond),
			Signature: append(random(), random()...),
		})
	}
	set := cmttypes.NewValidatorSet(keys)
	header := &cmttypes.Header{
		ChainID: testChain, Height: int64(height), Time: at, LastCommitHash: random(), DataHash: random(), ValidatorsHash: set.Hash(), NextValidatorsHash: set.Hash(),
		ConsensusHash: make([]byte, 32), AppHash: random(), LastResultsHash: random(), EvidenceHash: make([]byte, 32), ProposerAddress: keys[0].Address,
		LastBlockID: cmttypes.BlockID{Hash: random(), PartSetHeader: cmttypes.PartSetHeader{Total: 1, Hash: random()}},
	}
	commit.BlockID = cmttypes.BlockID{Hash: header.Hash(), PartSetHeader: cmttypes.PartSetHeader{Total: 1, Hash: random()}}
	return headers.Encode(&cmttypes.LightBlock{SignedHeader: &cmttypes.SignedHeader{Header: header, Commit: commit}, ValidatorSet: set})
}

func (n signers) same(uint64, uint64) bool { return true }

func (n signers) way(from, to uint64) ([][]byte, error) {
	if from >= to {
		return nil, nil
	}
	b, err := n.block(to)
	return [][]byte{b}, err
}

// rounds is a world whose run has trained for some rounds.
type rounds struct {
	*world
	names   map[key.Public]string
	missing uint64 // of 100 results
	alone   bool   // each report is in a block of its own
	apart   uint64 // of 100 results, those that a witness lacks and others have
	liars   int    // witnesses with false filters
	chance  prng.Source
}

// newRounds has all members of a run join and be ready. checks is the share of results that are
// checked, in percent. All pass in the round after.
func newRounds(t testing.TB, members int, missing uint64, checks uint8) *rounds {
	t.Helper()
	h, err := host.NewHost(host.Genesis{Chain: testChain, TimeMs: genesisMs}, rules(func([]byte) (dispute.Referee, error) { return idle{}, nil }))
	if err != nil {
		t.Fatal(err)
	}
	w := &rounds{
		world: &world{t: t, host: h, hub: newHub()}, names: map[key.Public]string{}, missing: missing,
		chance: prng.New(wire.Hash{}, "entrain/test/missing"),
	}
	run := createRun("demo", signer("owner").Key.Public(), uint32(members))
	c := &run.Config
	c.BatchStart, c.BatchEnd, c.StartMembers, c.EpochMs, c.Rate = uint32(members), uint32(members), uint32(members), 1<<30, 1
	if checks > 0 {
		c.VerificationPercent, c.VerifyMs, c.DisputeMs, c.StateHash = checks, 600_000, 600_000, wire.Sum("entrain/test/state")
	}
	w.block(w.tx("owner", run))
	for i := range members {
		name := fmt.Sprint("member ", i)
		w.names[privateKey(name).Public()] = name
	}
	w.each(func() coordinator.Message { return coordinator.Join{} })
	w.block()
	params, _ := w.state().Params()
	w.each(func() coordinator.Message { return coordinator.Ready{Epoch: w.state().Epoch(), Params: params} })
	if p := w.state().Phase(); p != coordinator.RoundTrain {
		t.Fatalf("phase %v, want RoundTrain", p)
	}
	return w
}

// idle is the referee of a run without disputes.
type idle struct{ dispute.Referee }

// each has every member send a message.
func (w *rounds) each(m func() coordinator.Message) {
	var txs [][]byte
	for i := range len(w.names) {
		txs = append(txs, w.send(fmt.Sprint("member ", i), m()))
	}
	w.block(txs...)
}

func (w *rounds) send(name string, m coordinator.Message) []byte {
	return w.tx(name, host.RunMessage{Run: "demo", Message: coordinator.Append(nil, m)})
}

// later makes a block some time later, in which time ends the phase.
func (w *rounds) later() {
	w.height += 10_000/200 + 1
	w.block()
}

// play plays a round. The witnesses lack a few results, which others than the round before. each is
// called after each block.
func (w *rounds) play(each func()) {
	w.t.Helper()
	s := w.state()
	r, ok := s.At(s.Round())
	if !ok || s.Phase() != coordinator.RoundTrain {
		w.t.Fatalf("phase %v, round %d, want RoundTrain", s.Phase(), s.Round())
	}
	report, ids := w.report(s, r)
	if !report.Complete {
		w.later()
		each()
	}
	w.pass()
	var txs [][]byte
	quorum := int(r.Quorum())
	for i, member := range r.Witnesses() {
		who := s.Key(member)
		txs = append(txs, w.send(w.names[who], w.own(report, r, ids, who, i)))
		if w.alone || i == quorum-1 || i == len(r.Witnesses())-1 {
			w.block(txs...)
			each()
			txs = nil
		}
	}
	for w.state().Round() == r.Number() {
		w.later()
		each()
	}
}

// pass has all checks pass that are not in dispute, those of one verifier in several blocks.
func (w *rounds) pass() {
	w.t.Helper()
	for {
		s, txs := w.state(), map[coordinator.Member][]byte{}
		for _, c := range s.Checks() {
			if c.Disputed {
				continue
			}
			v := dispute.Commitment{Run: s.ID(), Epoch: c.Epoch, Round: c.Round, Member: c.Member, Share: c.Share, Params: c.Params}
			v.Work = dispute.WorkHash(s.ID(), c.Round, c.Member, wire.Hash{})
			signed := v.Sign(privateKey(w.names[s.Key(c.Member)]))
			txs[c.Verifier] = w.send(w.names[s.Key(c.Verifier)], coordinator.Pass{Round: c.Round, Member: c.Member, Commitment: signed})
		}
		if len(txs) == 0 {
			return
		}
		w.block(slices.Collect(maps.Values(txs))...)
	}
}

// report returns what the witnesses of a round hold, and the IDs of the commitments.
func (w *rounds) report(s coordinator.State, r coordinator.RoundState) (coordinator.Witness, []wire.Hash) {
	number := uint64(r.Number())
	m := coordinator.Witness{Round: r.Number(), Complete: w.apart == 0}
	m.Params, m.Prev = wire.Sum("entrain/test/params", wire.AppendU64(nil, number)), wire.Sum("entrain/test/params", wire.AppendU64(nil, number-1))
	if number == 1 {
		m.Params, _ = s.Params()
		m.Prev = m.Params
	}
	a, attests := s.At(r.Attests())
	var ids []wire.Hash
	for i := range s.Count() {
		switch {
		case !attests || !a.Expected(i):
		case w.missing > 0 && w.chance.Uint64n(100) < w.missing:
			m.Complete = false
		default:
			m.Held = coordinator.SetHeld(m.Held, i)
			ids = append(ids, commitment(r.Number(), i))
		}
	}
	return m, ids
}

// TestLightWatchers measures what a light watcher is sent in a round: no more than 5 kB and a bit for
// each member, although results are missing, each witness lacks others, and some are checked.
func TestLightWatchers(t *testing.T) {
	t.Parallel()
	for _, members := range []int{64, 256, 1024, 4096, 10_000} {
		if few := members != 1024 && (members != 10_000 || !campaign.Whole()); few && !testing.Verbose() {
			continue
		}
		for _, of := range []struct {
			name           string
			missing, apart uint64
			checks         uint8
		}{{"all results", 0, 0, 0}, {"2 % missing", 2, 0, 0}, {"10 % missing", 10, 0, 0}, {"5 % checks", 0, 0, 5}, {"2 % of each", 1, 2, 0}, {"all of it", 2, 2, 5}} {
			if of.apart*of.missing < 4 && !testing.Verbose() {
				continue
			}
			w := newRounds(t, members, of.missing, of.checks)
			w.apart = of.apart
			p := demo()
			first := w.followLightly(p)
			const from, played = 4, 8 // the slots of the first rounds were empty
			bytes, frames, largest := 0, 0, 0
			for round := range played {
				n := 0
				w.play(func() {
					if k := w.followLightly(p); k > 0 && round >= from {
						n += k
						frames++
					}
				})
				bytes, largest = bytes+n, max(largest, n)
			}
			if s := w.state(); p.light.picture.Hash() != s.Hash() {
				t.Error("the watcher does not have the state")
			}
			bytes /= played - from
			reports := w.elected(p, nil)
			t.Logf("%6d members, %-12s: %5d bytes a round, at most %5d, in %d frames; first %7d, the whole state %7d; the reports of a round %6d", members, of.name, bytes, largest, frames/(played-from), first, len(w.packed(0)), reports)
			if 5*reports > 300_000 {
				t.Errorf("%d members: the reports of five rounds are sent in %d bytes", members, 5*reports)
			}
			if most := 5_000 + members/8; largest > most {
				t.Errorf("%d members, %s: a light watcher is sent %d bytes in a round, at most %d are allowed", members, of.name, largest, most)
			}
		}
	}
}

// What a watcher draws again need not be what was drawn: verdicts may have changed doubts since, or
// checks of several rounds have come at once, while a dispute is open. It has the state all the same.
func TestOtherChecksThanWereDrawn(t *testing.T) {
	w := newRounds(t, 256, 2, 20)
	p := demo()
	for round := range 6 {
		w.play(func() {
			if round%2 == 0 {
				w.followLightly(p)
			}
		})
		switch round {
		case 2:
			w.pass()
		case 3:
			c := w.state().Checks()[0]
			w.block(w.send(w.names[w.state().Key(c.Verifier)], coordinator.Unserved{Round: c.Round, Member: c.Member}))
			if len(w.state().Disputes()) != 1 {
				t.Fatal("no dispute")
			}
		}
		w.due()
		w.followLightly(p)
		if p.light.picture.Hash() != w.state().Hash() {
			t.Fatalf("round %d: another state", round)
		}
	}
}

func TestLightWatchersFollowFromWhereverTheyAre(t *testing.T) {
	w := newWorld(t, 256)
	always, lazy := demo(), demo()
	follow := func(p *replica) {
		t.Helper()
		w.due()
		var s *ledger.Snapshot
		for b := w.light(p); b != nil; b = w.light(p) {
			frame, err := readFrame(iotest.HalfReader(bytes.NewReader(b)))
			if err != nil {
				t.Fatal(err)
			}
			if s, err = p.apply(frame); err != nil {
				t.Fatal(err)
			}
		}
		if s == nil {
			return
		}
		if v, _ := w.host.View("demo"); s.Height != v.Changed || s.State.Hash() != v.Hash || s.TimeMs != genesisMs+v.Changed*200 {
			t.Fatalf("height %d and hash %v, want %d and %v", s.Height, s.State.Hash(), v.Changed, v.Hash)
		}
	}
	w.grow(func() { follow(always) }, func() { follow(lazy) })
	w.block(w.tx("40", join("demo")))
	full := len(w.light(demo()))
	w.due()
	delta := len(w.light(always))
	if delta*3 > full {
		t.Errorf("one join is sent in %d bytes, the whole state in %d", delta, full)
	}
	t.Logf("run of 256 members: state %d bytes, first frame %d, a join %d", len(always.light.picture.State()), full, delta)
}

func TestFalseChangesAreRefused(t *testing.T) {
	w := newWorld(t, 64)
	p := demo()
	first := w.light(p)[4:]
	w.followLightly(p)
	w.block(w.tx("ann", join("demo")))
	w.due()
	second := w.light(p)[4:]
	w.block(w.tx("bob", join("demo")))
	w.due()
	w.light(demo()) // a newer state is shown
	ahead := *p
	w.followLightly(&ahead)
	change := func(b []byte, at int) []byte {
		b = bytes.Clone(b)
		b[at] ^= 1
		return b
	}
	for name, b := range map[string][]byte{
		"empty":           {},
		"kind":            change(second, 0),
		"since":           change(second, 1),
		"mark":            change(second, 1+8),
		"limits":          change(first, 1+8+8),
		"no limits":       change(first, 1+8+8+3),
		"beginning":       change(second, 1+8+8),
		"contents":        change(second, len(second)-8),
		"short":           second[:len(second)-1],
		"long":            append(bytes.Clone(second), 0),
		"whole and short": first[:len(first)-1],
		"beat, long":      {frameBeat, 0},
	} {
		q := *p
		before := bytes.Clone(q.light.picture.State())
		if s, err := q.apply(b); err == nil {
			t.Errorf("%s: accepted as %v", name, s)
		}
		if q.light.at != p.light.at || !bytes.Equal(q.light.picture.State(), before) {
			t.Errorf("%s: the replica has changed", name)
		}
	}
	if _, err := ahead.apply(second); !errors.Is(err, errOutOfStep) {
		t.Errorf("an old step: %v", err)
	}
}

func FuzzChange(f *testing.F) {
	w := newWorld(f, 4)
	p := demo()
	f.Add(w.light(p)[4:])
	w.followLightly(p)
	w.block(w.tx("ann", join("demo")))
	w.due()
	f.Add(w.light(p)[4:])
	f.Add(w.light(demo())[4:])
	f.Add(appendPeersBeat(nil, 1, 2, 3)[4:])
	f.Fuzz(func(t *testing.T, b []byte) {
		q := *p
		before := bytes.Clone(q.light.picture.State())
		s, err := q.apply(b)
		if err != nil || s == nil {
			if q.light.at != p.light.at || !bytes.Equal(q.light.picture.State(), before) {
				t.Error("the replica has changed")
			}
			return
		}
		if s.Height != q.reached() && s.Height != q.light.at.height {
			t.Errorf("height %d after %d, hash %v", s.Height, p.light.at.height, s.State.Hash())
		}
	})
}

// A frame that inflates into far more than a state is refused, after no more than twice a state.
func TestChangesAreBounded(t *testing.T) {
	w := newWorld(t, 64)
	var out bytes.Buffer
	z, err := flate.NewWriter(&out, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	const bomb = 64 << 20
	for range bomb >> 20 {
		z.Write(make([]byte, 1<<20))
	}
	z.Close()
	frame := append(w.state().Limits().Append(append([]byte{frameChange}, make([]byte, 8+8)...)), out.Bytes()...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if s, err := demo().apply(frame); !errors.Is(err, wire.ErrTooLong) {
		t.Errorf("%d bytes: %v, %v", out.Len(), s, err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > bomb/4 {
		t.Errorf("a bomb of %d bytes has %d allocated", bomb, n)
	}
}

// counting counts how often headers are asked for.
type counting struct {
	signers
	asked int
}

// same says that the replicas of known headers are the same.
func (c *counting) same(_, other uint64) bool { return other < 1000 }

func (c *counting) block(height uint64) ([]byte, error) {
	c.asked++
	return c.signers.block(height)
}

// A storm of light watchers costs one encoding: those that come back with the state of some blocks
// ago get the steps since, newcomers all of it, and each kind the same bytes.
func TestChangesAreMadeOnce(t *testing.T) {
	w := newWorld(t, 16)
	h := &counting{signers: 1}
	now, l, _ := w.hub.look("demo")
	ask := func(have mark) news {
		t.Helper()
		n, err := l.after(have, 0, now, clock, h)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	first := ask(mark{})
	const blocks = 10
	for i := range blocks {
		w.block(w.tx(fmt.Sprint(i), join("demo")))
		now, _, _ = w.hub.look("demo")
		w.due()
		ask(first.to) // one watcher keeps the line going
	}
	h.asked = 0
	step, whole := ask(first.to), ask(mark{})
	for range 10_000 {
		if n := ask(first.to); &n.frame[0] != &step.frame[0] {
			t.Fatal("a step was made again")
		}
		if n := ask(mark{}); &n.frame[0] != &whole.frame[0] {
			t.Fatal("a state was encoded again")
		}
	}
	if h.asked > 1 {
		t.Errorf("headers were read %d times", h.asked)
	}
	// Strangers have no step made, whatever header they say that they trust.
	w.block(w.tx("ann", join("demo")))
	now, _, _ = w.hub.look("demo")
	for _, trusted := range []uint64{0, 1, now.header, now.header + 1, 1 << 60} {
		if n, err := l.after(mark{}, trusted, now, clock, h); err != nil || n.to != whole.to {
			t.Errorf("a newcomer that trusts header %d has a step made for all: %v", trusted, err)
		}
	}
	steps := 0
	for have := first.to; have != whole.to; have = ask(have).to {
		steps++
	}
	if steps != blocks {
		t.Errorf("%d steps to the newest state, want %d", steps, blocks)
	}
}
