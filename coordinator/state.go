package coordinator

import (
	"slices"

	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

// PageBytes is the size of a page, a leaf of State.Hash. Each part of the buffer begins at a page,
// so a host can ship or store only the pages that changed without knowing their content.
const PageBytes = record.PageBytes

const (
	magic   = 0x52544e45 // "ENTR"
	version = 5

	checkpointersMax = 3
	checkpointWords  = 2 // checkpointers whose word for a manifest suffices
)

// Phase is the phase of a run.
type Phase uint8

// The phases of a run.
const (
	Uninitialized     Phase = 0 // the zero buffer
	WaitingForMembers Phase = 1 // until enough members are present
	Warmup            Phase = 2 // members fetch and check the agreed parameters
	RoundTrain        Phase = 3 // members train and exchange results; complete witnesses report
	RoundWitness      Phase = 4 // the other witnesses report
	Cooldown          Phase = 5 // the epoch is over; a checkpoint is made
	Finished          Phase = 6 // the last
	Paused            Phase = 7 // until the owner resumes
)

// String returns the phase's name.
func (p Phase) String() string {
	names := [...]string{"Uninitialized", "WaitingForMembers", "Warmup", "RoundTrain", "RoundWitness", "Cooldown", "Finished", "Paused"}
	if int(p) < len(names) {
		return names[p]
	}
	return "unknown phase"
}

// State is a view of a run's buffer. Copies of a State view the same bytes; only Apply changes
// them. The methods are not synchronized: one goroutine applies messages, and others read copies of
// the bytes. The zero State is not valid. Use New or Open.
type State struct {
	b []byte
	l *record.Layout
}

func (s State) h() record.Header { return record.Header(s.b) }

func (s State) buffer() record.Buffer { return record.Buffer{B: s.b, Layout: s.l} }

// Env is what the host knows when it applies a message. It is the same at every replica.
type Env struct {
	NowMs  uint64     // the ledger's time, in milliseconds since 1970; never decreases
	Height uint64     // the ledger's height
	Seed   wire.Hash  // a random value, unknown before this block
	Sender key.Public // the key that signed the message; zero for a host's own Tick

	// Value is the number of tokens that the sender attached. The host moves them into the run's
	// escrow if the message is applied.
	Value uint64
	// Referee judges disputes by the run's specification. It is nil if the run verifies nothing.
	Referee dispute.Referee
	// Work bounds what the message does of a closing, in compute units of Solana, roughly; at least
	// one thing. 0 is no bound.
	Work uint64
}

// New creates a run in WaitingForMembers. It fails with ErrLimits or ErrConfig; Config.Check lists
// the faults.
func New(l Limits, c Config, env Env) (State, error) {
	return Create(make([]byte, Size(l)), l, c, env)
}

// Create is New in memory of the host's, Size(l) zero bytes. It fails with ErrCorrupt if b has
// another length.
func Create(b []byte, l Limits, c Config, env Env) (State, error) {
	if e := l.check(); e != OK {
		return State{}, e
	}
	if len(c.Check(l)) > 0 {
		return State{}, ErrConfig
	}
	s := State{b: b, l: l.layout()}
	if uint64(len(b)) != uint64(s.l.Total) {
		return State{}, ErrCorrupt
	}
	s.h().SetMagic(magic)
	s.h().SetVersion(version)
	s.h().SetLimitMembers(l.Members)
	s.h().SetLimitWitnesses(l.Witnesses)
	s.h().SetLimitValidators(l.Validators)
	s.h().SetRoom(l.room())
	s.putConfig(c)
	born := wire.AppendU64(wire.AppendU64(nil, env.NowMs), env.Height)
	s.h().SetID(wire.Sum("entrain/run", c.Append(l.Append(nil)), env.Seed[:], born))
	s.h().SetParams(c.ModelHash)
	s.enter(WaitingForMembers, env)
	return s, nil
}

// Bytes returns the buffer itself, which is the state's canonical encoding.
func (s State) Bytes() []byte { return s.b }

// Hash returns the state's hash: the merkle.Root over the leaves of its pages of PageBytes.
func (s State) Hash() wire.Hash {
	var t merkle.Tree
	for b := s.b; len(b) > 0; b = b[PageBytes:] {
		t.Add(merkle.Leaf(b[:PageBytes]))
	}
	return t.Root()
}

// Limits returns the capacity that the run was created with.
func (s State) Limits() Limits {
	l := Limits{Members: s.h().LimitMembers(), Witnesses: s.h().LimitWitnesses(), Validators: s.h().LimitValidators()}
	l.setRoom(s.h().Room())
	return l
}

// ID returns the run's identity, to which commitments are bound. It is a hash of the limits, the
// configuration, and the block that the run was created in, so no two runs share it.
func (s State) ID() wire.Hash { return s.h().ID() }

// Phase returns the current phase.
func (s State) Phase() Phase { return Phase(s.h().Phase()) }

// PhaseSince returns when the phase began, in the ledger's milliseconds.
func (s State) PhaseSince() uint64 { return s.h().PhaseSince() }

// Deadline returns when time ends the phase, in the ledger's milliseconds, or 0 if time alone does
// not. WaitingForMembers also needs StartMembers. If the ledger's height ends the phase, see
// DeadlineHeight.
func (s State) Deadline() uint64 {
	length := s.phaseMs()
	since := s.PhaseSince()
	if length == 0 || since > 1<<64-1-length {
		return 0
	}
	return since + length
}

// phaseMs returns the longest duration of the current phase in milliseconds, or 0 if it has none.
func (s State) phaseMs() uint64 {
	switch s.Phase() {
	case WaitingForMembers:
		return s.h().WaitingMs()
	case Warmup:
		return s.h().WarmupMs()
	case RoundTrain:
		if s.exchange() == Buckets {
			return 0
		}
		return s.h().TrainLimitMs()
	case RoundWitness:
		return s.h().RoundWitnessMs()
	case Cooldown:
		return s.h().CooldownMs()
	case Finished:
		if s.book().Due() && s.exchange() != Buckets {
			return (uint64(s.book().Tail()) + 1) * s.h().RoundTrainMs()
		}
	}
	return 0
}

// Epoch returns the number of the current or last epoch. An epoch begins with its warmup; the first
// is 1.
func (s State) Epoch() Epoch { return s.h().Epoch() }

// Round returns the number of the current or last round. Rounds are numbered from 1 over the whole
// run.
func (s State) Round() Round { return s.h().Round() }

// Step returns the number of rounds with training opened so far.
func (s State) Step() Step { return s.h().Step() }

// Params returns the last agreed parameters: their hash, and the round at whose start members held
// them. Round 0 means the initial parameters. A round's parameters contain all results accepted in
// the rounds before it, less Overlap.
func (s State) Params() (wire.Hash, Round) { return s.h().Params(), s.h().ParamsRound() }

// Draining returns the number of drain rounds left in the epoch, including the current one. It is 0
// while rounds train.
func (s State) Draining() uint8 { return s.h().Drain() }

// PausePending reports whether the run will pause at the end of this epoch.
func (s State) PausePending() bool { return s.h().PausePending() }

// Rollbacks returns how many times the run returned to older parameters: because an epoch ended
// without agreement on its last ones, or because all members that held the agreed ones were gone
// (see loseWarmup). Members then return to Params. Results accepted since are lost to the model,
// though their points stand.
func (s State) Rollbacks() uint32 { return s.h().Rollbacks() }

// PointsTotal returns all points ever given, one for each accepted sequence. It includes the points
// of members whose places were given to others.
func (s State) PointsTotal() uint64 { return s.h().PointsTotal() }

// PointsRetired returns the points of members whose places were given to others.
func (s State) PointsRetired() uint64 { return s.h().PointsRetired() }

// DataIndex returns the first sequence that was never given out. That sequence and all later ones,
// together with the redo queue, are left to train.
func (s State) DataIndex() uint64 { return s.h().DataIndex() }

// Checkpointers returns the members chosen to make the checkpoint of the last ended epoch. It is
// empty before the first.
func (s State) Checkpointers() []Member {
	list := make([]Member, min(s.h().CheckpointersLen(), checkpointersMax))
	for i := range list {
		list[i] = s.h().Checkpointer(uint32(i))
	}
	return list
}

// Checkpointer reports whether member i was chosen to make the checkpoint of the last ended epoch.
func (s State) Checkpointer(i Member) bool {
	_, ok := s.checkpointerAt(i)
	return ok
}

func (s State) checkpointerAt(i Member) (uint32, bool) {
	p := slices.Index(s.Checkpointers(), i)
	return uint32(p), p >= 0
}

// Saved is a reported checkpoint.
type Saved struct {
	Epoch    Epoch
	Params   wire.Hash
	Manifest wire.Hash
	By       key.Public // who named the manifest first
	Words    uint8      // checkpointers that named it; with one it is that member's word
}

// LastCheckpoint returns the last reported checkpoint, if there is one.
func (s State) LastCheckpoint() (Saved, bool) {
	if !s.h().HasCheckpoint() {
		return Saved{}, false
	}
	return Saved{
		Epoch:    s.h().CheckpointEpoch(),
		Params:   s.h().CheckpointParams(),
		Manifest: s.h().CheckpointManifest(),
		By:       s.h().CheckpointKey(),
		Words:    s.h().CheckpointWords(),
	}, true
}

// enter begins a phase.
func (s State) enter(p Phase, env Env) {
	s.h().SetPhase(uint8(p))
	s.h().SetPhaseSince(env.NowMs)
	s.h().SetPhaseHeight(env.Height)
}

// elapsed reports whether the phase has lasted ms milliseconds.
func (s State) elapsed(env Env, ms uint64) bool { return reached(env.NowMs, s.PhaseSince(), ms) }

// reached reports whether now is at least length after since.
func reached(now, since, length uint64) bool { return now >= since && now-since >= length }
