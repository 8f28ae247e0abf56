package coordinator

import (
	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

// PageBytes is the size of a page, a leaf of State.Hash. The parts of the buffer begin at pages, so
// that a host can ship or store only the pages that changed without knowing what is in them.
const PageBytes = record.PageBytes

const (
	magic   = 0x52544e45 // "ENTR"
	version = 3

	checkpointersMax = 3
)

// Phase is what a run is doing.
type Phase uint8

// The phases of a run, with the numbers and names of the field.
const (
	Uninitialized     Phase = 0 // the zero buffer
	WaitingForMembers Phase = 1 // until enough are present
	Warmup            Phase = 2 // those present fetch and check the agreed parameters
	RoundTrain        Phase = 3 // members compute their shares, fetch results, and witnesses who hold everything report
	RoundWitness      Phase = 4 // the other witnesses report
	Cooldown          Phase = 5 // the epoch is over; a checkpoint is made
	Finished          Phase = 6 // the last
	Paused            Phase = 7 // until the owner resumes
)

// String returns the phase's name.
func (p Phase) String() string {
	switch p {
	case Uninitialized:
		return "Uninitialized"
	case WaitingForMembers:
		return "WaitingForMembers"
	case Warmup:
		return "Warmup"
	case RoundTrain:
		return "RoundTrain"
	case RoundWitness:
		return "RoundWitness"
	case Cooldown:
		return "Cooldown"
	case Finished:
		return "Finished"
	case Paused:
		return "Paused"
	}
	return "unknown phase"
}

// State is a view of a run's buffer. Copies of a State view the same bytes; only Apply changes them. The methods are not
// synchronised: one goroutine applies, and others read copies of the bytes. The zero State is not valid; New and Open make one.
type State struct {
	b []byte
	l record.Layout
}

func (s State) h() record.Header { return record.Header(s.b) }

func (s State) buffer() record.Buffer { return record.Buffer{B: s.b, Layout: s.l} }

// Env is what a message's host knows when it applies the message, the same at every replica.
type Env struct {
	NowMs  uint64     // the ledger's time, in milliseconds since 1970; never goes back
	Height uint64     // the ledger's height
	Seed   wire.Hash  // chance that nobody knew before this block
	Sender key.Public // who signed the message; zero for a host's own Tick

	// Value is how many tokens the sender attached. The host moves them into the run's escrow if the message is applied.
	Value uint64
	// Referee judges disputes by the run's specification; nil where the run verifies nothing.
	Referee Referee
}

// New creates a run, in WaitingForMembers. It fails with ErrLimits or ErrConfig; Config.Check lists what is wrong.
func New(l Limits, c Config, env Env) (State, error) {
	if e := l.check(); e != OK {
		return State{}, e
	}
	if len(c.Check(l)) > 0 {
		return State{}, ErrConfig
	}
	a := l.layout()
	s := State{b: make([]byte, a.Total), l: a}
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

// Bytes returns the buffer: the state's canonical encoding, not a copy.
func (s State) Bytes() []byte { return s.b }

// Hash returns the state's hash: the merkle.Root over the leaves of its pages of PageBytes.
func (s State) Hash() wire.Hash {
	var t merkle.Tree
	for b := s.b; len(b) > 0; b = b[PageBytes:] {
		t.Add(merkle.Leaf(b[:PageBytes]))
	}
	return t.Root()
}

// Limits returns the capacity the run was created with.
func (s State) Limits() Limits {
	return Limits{
		Members: s.l.Members, Witnesses: uint16(s.l.Witnesses), Validators: uint16(s.l.Validators), Buckets: s.l.Buckets, Speeds: s.l.Speeds,
	}
}

// ID returns the run's identity, to which commitments are bound: a hash of its limits and configuration and of the block it
// was created in, so that no two runs share it.
func (s State) ID() wire.Hash { return s.h().ID() }

// Phase returns what the run is doing.
func (s State) Phase() Phase { return Phase(s.h().Phase()) }

// PhaseSince returns when the phase began, in the ledger's milliseconds.
func (s State) PhaseSince() uint64 { return s.h().PhaseSince() }

// Deadline returns when time ends the phase, in the ledger's milliseconds; 0 if time alone does not. WaitingForMembers also
// needs StartMembers. Where the ledger's height ends the phase, DeadlineHeight tells it.
func (s State) Deadline() uint64 {
	length := s.phaseMs()
	since := s.PhaseSince()
	if length == 0 || since > 1<<64-1-length {
		return 0
	}
	return since + length
}

// phaseMs returns the longest time of the current phase; 0 if it has none.
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

// Epoch returns the number of the epoch that runs or ran last; an epoch begins with its warmup, the first is 1.
func (s State) Epoch() uint32 { return s.h().Epoch() }

// EpochSince returns when the epoch's first round opened, in the ledger's milliseconds.
func (s State) EpochSince() uint64 { return s.h().EpochSince() }

// Round returns the number of the round that runs or ran last; rounds count across the run, the first is 1.
func (s State) Round() uint32 { return s.h().Round() }

// Step returns how many rounds with training have been opened.
func (s State) Step() uint32 { return s.h().Step() }

// Params returns the parameters agreed last: their hash, and the round at whose start they were held. Round 0 means the
// initial parameters. A round's parameters contain all that was accepted in rounds before it, less Overlap.
func (s State) Params() (wire.Hash, uint32) { return s.h().Params(), s.h().ParamsRound() }

// Draining returns how many drain rounds the epoch still has, the current one included; 0 while rounds train.
func (s State) Draining() uint8 { return s.h().Drain() }

// PausePending tells whether the run will pause at the end of this epoch.
func (s State) PausePending() bool { return s.h().PausePending() }

// Rollbacks returns how often the run went back to older parameters: when an epoch ended without agreement on its last ones, or
// when the agreed ones were lost with all who held them (see loseWarmup). Members then go back to Params, and what was accepted
// since is lost to the model, though its points stand.
func (s State) Rollbacks() uint32 { return s.h().Rollbacks() }

// PointsTotal returns the points ever given, one for each sequence accepted. Those of members whose places were given to
// others are in it.
func (s State) PointsTotal() uint64 { return s.h().PointsTotal() }

// PointsRetired returns the points of members whose places were given to others.
func (s State) PointsRetired() uint64 { return s.h().PointsRetired() }

// DataIndex returns the first sequence that was never given out. Together with what waits in the redo queue it is what is
// left to train.
func (s State) DataIndex() uint64 { return s.h().DataIndex() }

// Checkpointers returns the members chosen to make the checkpoint of the epoch that ended last; none before.
func (s State) Checkpointers() []uint32 {
	list := make([]uint32, min(s.h().CheckpointersLen(), checkpointersMax))
	for i := range list {
		list[i] = s.h().Checkpointer(uint32(i))
	}
	return list
}

// Checkpointer tells whether member i was chosen to make the checkpoint of the epoch that ended last.
func (s State) Checkpointer(i uint32) bool {
	for _, m := range s.Checkpointers() {
		if m == i {
			return true
		}
	}
	return false
}

// Saved is a checkpoint that was reported.
type Saved struct {
	Epoch    uint32
	Params   wire.Hash
	Manifest wire.Hash
	By       key.Public
}

// LastCheckpoint returns the checkpoint reported last, if there was one.
func (s State) LastCheckpoint() (Saved, bool) {
	if !s.h().HasCheckpoint() {
		return Saved{}, false
	}
	return Saved{
		Epoch:    s.h().CheckpointEpoch(),
		Params:   s.h().CheckpointParams(),
		Manifest: s.h().CheckpointManifest(),
		By:       s.h().CheckpointKey(),
	}, true
}

// enter begins a phase.
func (s State) enter(p Phase, env Env) {
	s.h().SetPhase(uint8(p))
	s.h().SetPhaseSince(env.NowMs)
	s.h().SetPhaseHeight(env.Height)
}

// elapsed tells whether the phase has lasted ms milliseconds.
func (s State) elapsed(env Env, ms uint64) bool {
	since := s.PhaseSince()
	return env.NowMs >= since && env.NowMs-since >= ms
}
