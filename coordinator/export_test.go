package coordinator

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/coordinator/score"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// Applied is a message that a test applied, for applying it again on another machine.
type Applied struct {
	Before, After []byte // the state
	Env           Env
	Message       Message
	Err           error
	// Answers is what the referee said, one after the other: numbers as U32; of Judge a Bool, whether it failed, and the hash if not.
	Answers []byte
}

// mirror sees every message that the worlds and runs of tests apply. Tests that set it are not
// parallel, so that it is nil while others are.
var mirror func(Applied)

// mirrored applies a message, and shows it to the mirror.
func mirrored(s State, env Env, m Message) error {
	if mirror == nil || m == nil {
		return s.Apply(env, m)
	}
	step := Applied{Before: slices.Clone(s.Bytes()), Env: env, Message: m}
	if env.Referee != nil {
		env.Referee = &listener{of: env.Referee, heard: &step.Answers}
	}
	step.Err = s.Apply(env, m)
	step.After = s.Bytes()
	mirror(step)
	return step.Err
}

// listener writes down what a referee says.
type listener struct {
	of    dispute.Referee
	heard *[]byte
}

func (l *listener) number(n uint32) uint32 {
	*l.heard = wire.AppendU32(*l.heard, n)
	return n
}

func (l *listener) Ops(sequences uint32) uint32               { return l.number(l.of.Ops(sequences)) }
func (l *listener) Tiles(c dispute.Case, op uint32) uint32    { return l.number(l.of.Tiles(c, op)) }
func (l *listener) Slices(c dispute.Case, a, b uint32) uint32 { return l.number(l.of.Slices(c, a, b)) }

func (l *listener) Judge(c dispute.Case, op, tile, slice uint32, root wire.Hash, evidence []byte) (wire.Hash, error) {
	h, err := l.of.Judge(c, op, tile, slice, root, evidence)
	*l.heard = wire.AppendBool(*l.heard, err != nil)
	if err == nil {
		*l.heard = wire.AppendHash(*l.heard, h)
	}
	return h, err
}

// Mirrored runs all scenarios and n random runs, and shows every message to see.
func Mirrored(t *testing.T, n int, see func(Applied)) {
	mirror = see
	defer func() { mirror = nil }()
	scenarios(t)
	checks := flag.Lookup("rapid.checks")
	before := checks.Value.String()
	if err := checks.Value.Set(fmt.Sprint(n)); err != nil {
		t.Fatal(err)
	}
	defer checks.Value.Set(before)
	randomMessages(t, new(seen))
}

// Kind is what makes the rounds of a run cost more or less.
type Kind struct {
	Checks                   uint8 // VerificationPercent
	Overlap, Buckets, Speeds bool
	Validators               uint16
	// Work bounds what a message of a run of some members does of a closing; nil: it does all.
	Work func(members uint64, m Message) uint64
}

// Life takes a run of many members through its life, and shows its most frequent messages, and its most expensive ones, to see.
func Life(t *testing.T, members uint32, kind Kind, see func(what string, a Applied)) {
	what := ""
	defer func() { mirror = nil }()
	l := &life{large: born(t, members, kind), what: &what, kind: kind}
	mirror = func(a Applied) {
		see(what, a)
		closes := what
		for l.s.Closing() { // the mirror sees the Ticks that follow, too
			env := Env{NowMs: a.Env.NowMs, Height: a.Env.Height, Work: kind.Work(uint64(members), Tick{})}
			next := Applied{Before: slices.Clone(l.s.Bytes()), Env: env, Message: Tick{}}
			what = "closing, " + [...]string{"", "late members", "agree", "line", "accept", "judge", "second line", "reward", "next round", "prepare checks", "draw checks", "clear", "divide", "clear", "settle scores"}[l.s.h().Closing()]
			next.Err = l.s.Apply(env, Tick{})
			next.After = l.s.Bytes()
			see(what, next)
		}
		what = closes
	}
	l.opening(t)
	for round := Round(1); round <= 3; round++ {
		l.round(t, round)
	}
	if kind.Checks > 0 && !kind.Buckets {
		l.disputes(t)
	}
	l.denied(t, "of which every other result is held", 0xaa, 0)
	l.denied(t, "of which no result is held", 0, 0)
	kept, env := slices.Clone(l.s.b), l.env
	l.denied(t, "and drops all members", 0, l.s.h().MissedMax())
	copy(l.s.b, kept)
	l.env = env
	leaver := Member(members / 2)
	for !l.s.Status(leaver).Present() {
		leaver = (leaver + 1) % l.s.Count()
	}
	l.env.Sender, what = l.s.Key(leaver), "withdraw"
	l.apply(t, Withdraw{})
	l.env.Sender, what = l.s.Key(1), "claim"
	_ = mirrored(l.s, l.env, Claim{})
	what = "tick that ends the training"
	l.window(t, l.s.Config().RoundTrainMs)
	what = "tick that closes a round without reports"
	l.tick(t, l.s.Config().RoundWitnessMs)
	l.rest(t)
}

// rest pauses the run, changes it, loses a warmup, and lets a newcomer take the place of a member that is gone.
func (l *life) rest(t *testing.T) {
	owner := func(what string, m Message) {
		l.bound(m)
		*l.what, l.env.Sender = what, l.s.Config().Owner
		_ = mirrored(l.s, l.env, m) // what is refused costs, too
	}
	owner("pause", Pause{})
	for l.s.Phase() != Cooldown {
		*l.what = "tick that ends the training"
		l.window(t, l.s.Config().RoundTrainMs)
		*l.what = "tick that closes a drain round"
		l.tick(t, l.s.Config().RoundWitnessMs)
	}
	*l.what = "tick that ends the cooldown"
	l.tick(t, l.s.Config().CooldownMs)
	c := l.s.Config()
	owner("change", Change{
		Rate: 1, Emission: c.Emission, WaitingMs: c.WaitingMs, WarmupMs: c.WarmupMs, RoundTrainMs: c.RoundTrainMs, RoundWitnessMs: c.RoundWitnessMs,
		CooldownMs: c.CooldownMs, EpochMs: c.EpochMs,
	})
	owner("refund", Refund{Amount: 1})
	l.env.NowMs += NoticeMs
	owner("resume", Resume{})
	for i := range l.s.Count() {
		b := l.s.place(i)
		b.SetMissed(l.s.h().MissedMax())
		b.SetStake(dispute.FeeDivisor)
		putStatus(b, StatusWaiting)
	}
	l.s.h().SetEscrow(l.s.Treasury() + dispute.FeeDivisor*uint64(l.s.Count()))
	*l.what = "tick that begins the warmup"
	l.tick(t, c.WaitingMs)
	*l.what = "tick that ends a warmup for which all are late"
	l.tick(t, c.WarmupMs)
	l.env.Sender = key.Public{31: 255}
	*l.what = "join, a full table of members that are gone"
	_ = mirrored(l.s, l.env, Join{})
	l.env.NowMs += max(PlaceMs, c.UnbondMs)
	for i := range l.s.Count() { // each is looked at wholly if the one before it left later
		l.s.place(i).SetLeftMs(l.env.NowMs - PlaceMs - uint64(i))
	}
	*l.what, l.env.Sender = "join, a full table of members that are gone and paid", key.Public{31: 254}
	_ = mirrored(l.s, l.env, Join{})
}

// PrivateOf returns the private key of a participant of the tests.
func PrivateOf(k key.Public) key.Private {
	private, _ := known(k)
	return private
}

// AtSlice returns a state in which an open dispute about a share has come to a slice, with the hashes of it that the two sides claim.
func AtSlice(state []byte, d dispute.Dispute) []byte {
	s, err := Attach(slices.Clone(state))
	if err != nil {
		panic(err)
	}
	for k := range uint32(record.DisputesMax) {
		b := s.buffer().Dispute(k)
		if b.Check().Round() == 0 || b.ID() != d.ID {
			continue
		}
		b.Check().SetSequences(d.Sequences)
		b.SetStage(uint8(dispute.StageEvidence))
		b.SetLevel(uint8(dispute.LevelSlices))
		b.SetOp(d.Op)
		b.SetTile(d.Tile)
		b.SetSlice(d.Slice)
		b.SetDeadlineMs(d.DeadlineMs)
		b.SetTrace(dispute.Accuser, d.Traces[dispute.Accuser])
		b.SetNode(dispute.Accused, d.Nodes[dispute.Accused])
		b.SetNode(dispute.Accuser, d.Nodes[dispute.Accuser])
		d.Commitment.Append(b.Commitment()[:0])
	}
	return s.Bytes()
}

// Settle shows the messages that settle a period of a run by buckets, with its members, and validators that scored them all, in an
// order that takes long to sort.
func Settle(t *testing.T, members uint32, validators uint16, work func(members uint64, m Message) uint64, see func(Applied)) {
	mirror = see
	defer func() { mirror = nil }()
	s := largeScored(t, members, validators)
	for k := range uint32(validators) {
		for i := range Member(members) {
			s.buffer().Given(1, k).SetScore(i, score.Offset(int16((k*7919+uint32(i)*104729)%1009)*8))
		}
	}
	for begun := false; !begun || s.Closing(); begun = true {
		if err := mirrored(s, Env{NowMs: bornMs, Work: work(uint64(members), Tick{})}, Tick{}); err != nil {
			t.Fatal(err)
		}
	}
}

// Scored shows dear messages of a run of members and validators: scores of all members, and a newcomer to a full table, for whom each
// place is looked at wholly.
func Scored(t *testing.T, members uint32, see func(what string, a Applied)) {
	what := "scores of all members"
	mirror = func(a Applied) { see(what, a) }
	defer func() { mirror = nil }()
	s := largeScored(t, members, 16)
	m := RevealScores{Period: 1}
	for i := range Member(members) {
		m.Scores = append(m.Scores, score.Score{Member: i, Value: int16(i)})
	}
	s.h().SetRound(4)
	clear(s.buffer().Ballots(1))
	s.buffer().Ballots(1).SetPeriod(1)
	env := Env{NowMs: bornMs, Sender: s.buffer().Seat(0).Key()}
	b := s.buffer().Ballot(1, 0)
	b.SetKey(env.Sender)
	b.SetHash(ScoresHash(s.ID(), env.Sender, m))
	if err := mirrored(s, env, m); err != nil {
		t.Fatal(err)
	}

	// Members that are present are looked at for a slot. Those that are gone are looked at for a place, too, and wholly if each is gone
	// longer than the one before. In a warmup they are counted besides.
	what = "join, a full table, validators"
	for _, slots := range []uint32{1, members - 1} {
		for _, phase := range []Phase{WaitingForMembers, Warmup, RoundTrain} {
			for _, work := range []uint32{0, 1} {
				s, env := full(t, members, slots, phase, work)
				if err := mirrored(s, env, Join{}); err != nil && err != ErrFull {
					t.Fatal(err)
				}
			}
		}
	}
}

// full is a run with validators whose table is full. Its first members take all slots; the others are gone, and their places can be
// had if they have no work in the two periods that are not settled.
func full(t *testing.T, members, slots uint32, phase Phase, work uint32) (State, Env) {
	s := largeScored(t, members, 16)
	env := Env{NowMs: bornMs + s.Config().WaitingMs + 2*PlaceMs, Sender: key.Public{31: 255}}
	h, r := s.h(), s.slot(5)
	h.SetRate(1)
	h.SetSlots(slots)
	h.SetImmuneWindows(1)
	h.SetPeriodSettled(1)
	h.SetPhase(uint8(phase))
	h.SetWarmupMs(1 << 62)
	h.SetEscrow(s.Escrow() + uint64(members))
	r.b.SetNumber(5)
	r.b.SetStep(1) // it trains until its window is over
	setBit(r.expected(), Member(members-1))
	clear(s.buffer().TallyOf(1))
	for i := range s.Count() {
		b := s.place(i)
		b.SetStake(1)
		b.SetPoints(1 << 40)
		b.SetSettled(1 << 40)
		b.SetScore(uint16(members) - uint16(i))
		b.SetLeftMs(env.NowMs - PlaceMs - uint64(i))
		if putStatus(b, StatusDropped); uint32(i) < slots {
			putStatus(b, StatusActive)
		}
		for _, p := range []uint32{2, 3} {
			s.buffer().TallyOf(p).SetPeriod(p)
			s.buffer().TallyOf(p).Work(i).SetSequences(work)
		}
	}
	return s, env
}

type life struct {
	*large
	what *string
	kind Kind
}

// bound sets what a message does of a closing.
func (l *life) bound(m Message) {
	if l.kind.Work != nil {
		l.env.Work = l.kind.Work(uint64(l.s.l.Members), m)
	}
}

func (l *life) send(t *testing.T, i Member, m Message) {
	t.Helper()
	l.bound(m)
	l.large.send(t, i, m)
}

func (l *life) tick(t *testing.T, ms uint64) {
	t.Helper()
	l.bound(Tick{})
	l.large.tick(t, ms)
}

// Of returns the limits and the configuration of a run of many members.
func (kind Kind) Of(members uint32) (Limits, Config) {
	c := testConfig()
	if kind.Checks > 0 {
		c = trusting()
		c.VerificationPercent, c.Stake = kind.Checks, 0
	}
	if !kind.Overlap {
		c.Overlap = 0
	}
	if kind.Buckets {
		c.Exchange, c.WindowBlocks = Buckets, 10
	}
	if kind.Speeds {
		c.Sharing = SpeedShares
	}
	if c.Validators = kind.Validators; c.Validators > 0 {
		c.ScoreWindows, c.Emission = 2, 1000
	}
	if c.BatchStart = members; kind.Speeds {
		c.BatchStart = 8 * members // with one sequence a member there is nothing to divide
	}
	c.BatchEnd = c.BatchStart
	return Limits{Members: members, Witnesses: WitnessesMax, Validators: kind.Validators, Buckets: kind.Buckets, Speeds: kind.Speeds}, c
}

// born returns a run whose table lacks one member.
func born(t *testing.T, members uint32, kind Kind) *large {
	l := &large{env: Env{NowMs: bornMs, Seed: wire.Sum("test/large"), Referee: program{}}}
	limits, c := kind.Of(members)
	s, err := New(limits, c, l.env)
	if err != nil {
		t.Fatal(err)
	}
	l.s = s
	l.fill(members - 1)
	for i := range s.Count() {
		s.place(i).SetSpeed(1<<(i%32) + uint32(i)) // all lengths: what costs most to divide and to search by
	}
	return l
}

func (l *life) apply(t *testing.T, m Message) {
	t.Helper()
	l.bound(m)
	if err := mirrored(l.s, l.env, m); err != nil {
		t.Fatal(err)
	}
}

func (l *life) opening(t *testing.T) {
	n := Member(l.s.l.Members)
	binary.LittleEndian.PutUint32(l.env.Sender[28:], uint32(n))
	*l.what = "join, the last place"
	l.apply(t, Join{Speed: 5})
	*l.what = "tick that begins the warmup"
	l.tick(t, l.s.Config().WaitingMs)
	for i := range n - 1 {
		putStatus(l.s.place(i), StatusReady)
	}
	*l.what = "ready that opens the first round"
	l.send(t, n-1, Ready{Epoch: 1, Params: l.s.Config().ModelHash})
}

func (l *life) round(t *testing.T, number Round) {
	*l.what = "tick that does nothing"
	l.tick(t, 0)
	r, _ := l.s.At(number)
	m, list := l.report(), r.Witnesses()
	l.env.NowMs++ // the run notes how long a round took
	l.commit()
	for k, i := range list {
		*l.what = "report"
		if k+1 == len(list) {
			*l.what = "tick that ends the training"
			l.window(t, 0)
			*l.what = "report that closes a round and opens the next"
		}
		l.send(t, i, m)
	}
	if l.s.Round() != number+1 {
		t.Fatalf("round %d, want %d", l.s.Round(), number+1)
	}
}

// window lets time pass, and a window's blocks.
func (l *life) window(t *testing.T, ms uint64) {
	l.env.Height += uint64(l.s.h().WindowBlocks())
	l.tick(t, ms)
}

// commit puts a commitment of each member on the ledger, in a run by buckets.
func (l *life) commit() {
	if r := l.s.slot(l.s.Round()); l.s.l.Buckets {
		for i := range l.s.Count() {
			l.s.l.Commit(r.b, i).SetID(wire.Hash{1})
		}
	}
}

// denied is a round whose witnesses hold of every eight results those of a mask. Its members, with a
// stake, have missed some before.
func (l *life) denied(t *testing.T, what string, mask, missed byte) {
	for i := range l.s.Count() {
		b := l.s.place(i)
		b.SetMissed(missed)
		b.SetStake(dispute.FeeDivisor)
	}
	l.s.h().SetEscrow(l.s.Treasury() + dispute.FeeDivisor*uint64(l.s.Count()))
	l.commit()
	*l.what = "tick that ends the training"
	l.window(t, l.s.Config().RoundTrainMs)
	m := l.report()
	m.Complete = false
	for i := range m.Held {
		m.Held[i] &= mask
	}
	m.Held = bytes.TrimRight(m.Held, "\x00")
	r, _ := l.s.At(m.Round)
	for _, i := range r.Witnesses() {
		if !l.s.Status(i).Present() {
			continue
		}
		*l.what = "report that closes a round " + what
		l.send(t, i, m)
	}
}

func (l *life) disputes(t *testing.T) {
	c := l.s.Checks()[0]
	*l.what = "unserved, which opens a dispute"
	l.send(t, c.Verifier, Unserved{Round: c.Round, Member: c.Member})
	d := l.s.Disputes()[0]
	for _, v := range d.TieBreakers {
		*l.what = "vote"
		l.env.Sender = l.s.Key(v.Member)
		_ = mirrored(l.s, l.env, TieBreak{Dispute: d.ID, Vote: dispute.VoteUnserved})
	}
	*l.what = "tick at which checks expire"
	l.tick(t, l.s.Config().VerifyMs)
}

// AtClose returns a run of some members whose witnesses have reported in time, except one: time ends the round. The member with this
// key is the first.
func AtClose(t *testing.T, members uint32, pub key.Public) []byte {
	l := newLarge(t, members, 0)
	l.s.place(0).SetKey(pub)
	l.tick(t, l.s.Config().RoundTrainMs)
	return l.s.Bytes()
}
