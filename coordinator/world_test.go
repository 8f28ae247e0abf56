package coordinator

import (
	"bytes"
	"encoding/binary"
	"errors"
	"reflect"
	"slices"
	"sync"

	"github.com/entrain-network/entrain/coordinator/dispute"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/bloom"
	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/key"
	_ "github.com/entrain-network/entrain/tests/heap"
	"github.com/entrain-network/entrain/wire"
)

// world is a run with everything around it that tests need: a clock, the parameters honest members hold, a log for replay,
// and an account of what became of every sequence. Each message goes through apply, which checks the invariants.
type world struct {
	t        testingT
	s        State
	limits   Limits
	config   Config
	now      uint64
	height   uint64
	block    uint64              // the ledger's height, in a run by buckets; else it is height
	salt     string              // makes the chance of this world
	theta    map[Round]wire.Hash // parameters honest members hold at the start of a round
	silent   map[Member]bool     // members whose results reach nobody
	log      []entry
	before   []byte // the state before the last message
	fates    fates
	work     uint64 // bounds what a message does of a closing
	opened   *State // the state before the closing that goes on
	rewarded uint64 // sequences of accepted results that were paid
	// Tokens that came in and went out.
	paidIn, paidOut uint64
	referee         dispute.Referee
}

// entry is one message that was applied or refused.
type entry struct {
	env Env
	m   Message
	err error
}

// fates says what became of sequences: each was accepted in one round, or not yet.
type fates struct {
	acceptedIn map[uint64]Round
}

// testingT is what testing.T and rapid.T have in common.
type testingT interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

const bornMs = 1_700_000_000_000

func newWorld(t testingT, l Limits, c Config, salt string) *world {
	t.Helper()
	w := &world{
		t: t, limits: l, config: c, now: bornMs, salt: salt,
		referee: program{}, theta: map[Round]wire.Hash{}, silent: map[Member]bool{}, fates: fates{acceptedIn: map[uint64]Round{}},
	}
	w.s = w.born()
	return w
}

// born creates the run again. Its ID is that of the rules' first version, which knew nothing of windows and scores: of it come the
// seeds of rounds, and what scenarios show depends on who is drawn for what.
func (w *world) born() State {
	w.t.Helper()
	height, block, now := w.height, w.block, w.now
	w.height, w.block, w.now = 0, 0, bornMs
	env := w.env(key.Public{})
	w.height, w.block, w.now = height, block, now
	s, err := New(w.limits, w.config, env)
	if err != nil {
		w.t.Fatalf("new: %v; faults %v", err, w.config.Check(w.limits))
	}
	const since, hashes = 1 + 4 + 2 + 4 + 8 + 1 + 1 + 8 + 4 + 4, 4 * 32 // fields that came later, and those behind them
	b := w.config.Append(w.limits.Append(nil)[:6])
	at := len(b) - hashes - since
	when := wire.AppendU64(wire.AppendU64(nil, env.NowMs), env.Height)
	s.h().SetID(wire.Sum("entrain/run", b[:at], b[at+since:], env.Seed[:], when))
	return s
}

// testConfig is a good configuration with round numbers: 10 s of waiting, 20 s of warmup, 30 s of training, and so on.
func testConfig() Config {
	return Config{
		Name: "test", MinMembers: 2, StartMembers: 2,
		WaitingMs: 10_000, WarmupMs: 20_000, RoundTrainMs: 30_000, RoundWitnessMs: 5_000, CooldownMs: 15_000, EpochMs: 600_000,
		TotalSteps: 100, BatchStart: 8, BatchEnd: 8, SequenceTokens: 16, Overlap: 1, MissedMax: 1,
		ModelHash: wire.Sum("test/model"), SpecHash: wire.Sum("test/spec"), Owner: testKey("owner"),
	}
}

// keys are those of everybody in the tests: the private ones by the public ones, and these by name.
var keys = struct {
	sync.Mutex
	privates map[key.Public]key.Private
	publics  map[string]key.Public
}{privates: map[key.Public]key.Private{}, publics: map[string]key.Public{}}

// known returns the private key of somebody in the tests.
func known(k key.Public) (private key.Private, ok bool) {
	keys.Lock()
	defer keys.Unlock()
	private, ok = keys.privates[k]
	return private, ok
}

func testKey(name string) key.Public {
	if name == "owner" {
		return key.Public(wire.Sum("test/key", []byte(name))) // it signs nothing
	}
	keys.Lock()
	defer keys.Unlock()
	if pub, ok := keys.publics[name]; ok {
		return pub
	}
	k := key.FromSeed(wire.Sum("test/key", []byte(name)))
	keys.publics[name], keys.privates[k.Public()] = k.Public(), k
	return k.Public()
}

func (w *world) env(sender key.Public) Env {
	n := wire.AppendU64(nil, w.height)
	block := w.height
	if w.config.Exchange == Buckets {
		block = w.block
	}
	return Env{NowMs: w.now, Height: block, Seed: wire.Sum("test/seed", []byte(w.salt), n), Sender: sender, Referee: w.referee, Work: w.work}
}

// apply sends a message as sender and checks what must hold after any message.
func (w *world) apply(sender key.Public, m Message) error {
	w.t.Helper()
	return w.applyWith(sender, 0, m)
}

// applyWith is apply with tokens attached.
func (w *world) applyWith(sender key.Public, value uint64, m Message) error {
	w.t.Helper()
	w.height++
	env := w.env(sender)
	env.Value = value
	w.before = append(w.before[:0], w.s.Bytes()...)
	before := w.before
	to, most := w.s.WillPay(env, m)
	err := mirrored(w.s, env, m)
	w.log = append(w.log, entry{env, m, err})
	if err != nil {
		var code Error
		if !errors.As(err, &code) || code == OK {
			w.t.Fatalf("apply %#v: error %v is not a code", m, err)
		}
		if !bytes.Equal(before, w.s.Bytes()) {
			w.t.Fatalf("apply %#v: refused with %q, but the state changed", m, err)
		}
		return err
	}
	old, e := Open(slices.Clone(before))
	if e != nil {
		w.t.Fatalf("open the state before: %v", e)
	}
	still := old.Phase() == w.s.Phase() && old.Round() == w.s.Round() && old.Epoch() == w.s.Epoch()
	still = still && slices.Equal(old.Checks(), w.s.Checks()) && reflect.DeepEqual(old.Disputes(), w.s.Disputes())
	still = still && old.Window() == w.s.Window() && old.book().Settled() == w.s.book().Settled()
	old.h().SetPayment(key.Public{}, 0)
	still = still && !old.Closing() && !w.s.Closing()
	if _, ticks := m.(Tick); ticks && still && !bytes.Equal(old.b, w.s.Bytes()) {
		w.t.Fatalf("a tick changed the state without a transition, in %v", old.Phase())
	}
	if _, paid := w.s.Payout(); paysOut(m) {
		w.paidOut += paid
	} else if paid != 0 {
		w.t.Fatalf("%#v pays out %d", m, paid)
	}
	if k, paid := w.s.Payout(); paid != most || paid > 0 && k != to {
		w.t.Fatalf("%#v pays %d to %x, said was %d to %x", m, paid, k[:4], most, to[:4])
	}
	w.paidIn += value
	if w.opened == nil {
		w.opened = &old
	}
	if !w.s.Closing() {
		w.observe(*w.opened)
		w.check()
		w.opened = nil
	}
	return nil
}

// observe follows what one message changed: newly settled results, and the parameters at the start of a new round.
func (w *world) observe(old State) {
	w.t.Helper()
	for k := range Round(record.RingRounds) {
		was := old.slot(k)
		now, ok := w.s.At(was.Number())
		if ok && !was.b.Agreed() && now.b.Agreed() {
			now.Shares(func(i Member, spans []batch.Span) {
				if now.Accepted(i) && w.s.Status(i) != StatusEjected {
					w.rewarded += uint64(batch.Total(spans))
				}
			})
		}
		if !ok || was.Final() || !now.Final() {
			continue
		}
		for i := range w.s.Count() {
			if now.Accepted(i) {
				w.accept(now, i)
			}
		}
	}
	r, ok := w.s.At(w.s.Round())
	if !ok || r.Number() == old.Round() {
		return
	}
	params, _ := w.s.Params()
	prev, had := w.theta[r.Number()-1]
	if r.Number() == w.s.h().EpochRound() || !had {
		w.theta[r.Number()] = params
		return
	}
	due, ok := w.s.At(r.Number() - 1 - Round(w.config.Overlap))
	if ok && due.AcceptedCount() > 0 {
		prev = wire.Sum("test/apply", prev[:], due.accepted())
	}
	w.theta[r.Number()] = prev
}

// accept books the sequences of an accepted result.
func (w *world) accept(r RoundState, i Member) {
	w.t.Helper()
	for _, v := range r.Share(i) {
		for q := v.Start; q < v.End(); q++ {
			if in, twice := w.fates.acceptedIn[q]; twice {
				w.t.Fatalf("sequence %d was accepted in round %d and again in round %d", q, in, r.Number())
			}
			w.fates.acceptedIn[q] = r.Number()
		}
	}
}

// check verifies what holds of every state.
func (w *world) check() {
	w.t.Helper()
	s, err := Open(w.s.Bytes())
	if err != nil {
		w.t.Fatalf("after %#v the state does not open: %v", w.log[len(w.log)-1].m, err)
	}
	sum := s.PointsRetired()
	for i := range s.Count() {
		sum += s.Member(i).Points
	}
	if sum != s.PointsTotal() || sum != w.rewarded+s.PointsVerified() || w.rewarded > uint64(len(w.fates.acceptedIn)) {
		w.t.Fatalf("points: members and retired have %d, total is %d, rewarded were %d of %d accepted sequences, verified %d",
			sum, s.PointsTotal(), w.rewarded, len(w.fates.acceptedIn), s.PointsVerified())
	}
	tokens := s.Treasury()
	for i := range s.Count() {
		tokens += s.Member(i).Stake + s.Member(i).Balance + s.Member(i).Unvested
	}
	for _, v := range append(s.Validators(), s.Benched()...) {
		tokens += v.Stake + v.Balance
	}
	if tokens != s.Escrow() || w.paidIn-w.paidOut != s.Escrow() {
		w.t.Fatalf("tokens: treasury and members have %d, escrow is %d, in came %d, out went %d", tokens, s.Escrow(), w.paidIn, w.paidOut)
	}
	w.checkSequences()
}

// checkSequences verifies that every sequence given out is accepted, waiting in the redo queue, in flight, or lost to a full
// queue, and never two of these.
func (w *world) checkSequences() {
	w.t.Helper()
	elsewhere := map[uint64]string{}
	put := func(spans []batch.Span, where string) {
		for _, v := range spans {
			for q := v.Start; q < v.End(); q++ {
				if w.fates.acceptedIn[q] != 0 {
					w.t.Fatalf("sequence %d was accepted, yet is %s", q, where)
				}
				if elsewhere[q] != "" {
					w.t.Fatalf("sequence %d is %s and %s", q, elsewhere[q], where)
				}
				elsewhere[q] = where
			}
		}
	}
	put(w.s.Redo(), "waiting")
	for k := range Round(record.RingRounds) {
		if r := w.s.slot(k); r.Number() != 0 && !r.Final() {
			put(r.Spans(), "in flight")
		}
	}
	got := uint64(len(w.fates.acceptedIn)+len(elsewhere)) + w.s.RedoLost()
	if got != w.s.DataIndex() {
		w.t.Fatalf("sequences: %d given out, but %d accepted, %d waiting or in flight, %d lost",
			w.s.DataIndex(), len(w.fates.acceptedIn), len(elsewhere), w.s.RedoLost())
	}
}

// replay applies the log to a new state and compares the hashes.
func (w *world) replay() {
	w.t.Helper()
	s := w.born()
	for i, e := range w.log {
		m := e.m
		if m != nil { // as a host would: by way of bytes
			if parsed, err := ParseMessage(Append(nil, m)); err == nil {
				m = parsed
			}
		}
		if err := s.Apply(e.env, m); err != e.err {
			w.t.Fatalf("replay of message %d: %v, was %v", i, err, e.err)
		}
	}
	if s.Hash() != w.s.Hash() {
		w.t.Fatalf("replay ends at hash %v, the run at %v", s.Hash(), w.s.Hash())
	}
}

// commitment returns the honest commitment of a member to a round.
func commitment(r RoundState, i Member) dispute.Commitment {
	return dispute.Commitment{Run: r.s.ID(), Epoch: r.Epoch(), Round: r.Number(), Member: i, Share: batch.Hash(r.Share(i))}
}

// report returns the report member i would honestly make now if it holds the results of those for whom has is true.
func (w *world) report(i Member, has func(Member) bool) Witness {
	r, ok := w.s.At(w.s.Round())
	if !ok {
		return Witness{}
	}
	m := Witness{Round: r.Number(), Complete: true, Params: w.theta[r.Number()], Prev: w.config.ModelHash}
	if prev, ok := w.theta[r.Number()-1]; ok {
		m.Prev = prev
	}
	a, ok := w.s.At(r.Attests())
	if !ok {
		return m
	}
	p := r.Filter()
	f := bloom.New(p)
	salt := w.s.Key(i)
	held := a.held()
	for j := range w.s.Count() {
		switch {
		case !bit(held, j):
		case has(j):
			m.Held = SetHeld(m.Held, j)
			if p.Bits > 0 {
				f.Add(p, salt[:], commitment(a, j).ID())
			}
		case w.s.Status(j) == StatusActive:
			m.Complete = false
		}
	}
	m.Commitments = f
	return m
}

// slotAt returns where the slot of a round begins in the buffer.
func slotAt(r RoundState) uint32 { return r.s.l.Ring + uint32(r.Number()%record.RingRounds)*r.s.l.Slot }

// putU32 changes four bytes of a buffer behind the accessors' back.
func putU32(b []byte, at, v uint32) { binary.LittleEndian.PutUint32(b[at:], v) }

// heard reports whether member j's results reach the others.
func (w *world) heard(j Member) bool { return !w.silent[j] }
