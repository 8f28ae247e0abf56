package coordinator

import (
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
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
	l layout
}

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
	a := layoutOf(l)
	s := State{b: make([]byte, a.total), l: a}
	putU32(s.b, hMagic, magic)
	putU32(s.b, hVersion, version)
	putU32(s.b, hMembers, l.Members)
	putU16(s.b, hWitnesses, l.Witnesses)
	putU16(s.b, hValidators, l.Validators)
	putU8(s.b, hRoom, l.room())
	s.putConfig(c)
	born := wire.AppendU64(wire.AppendU64(nil, env.NowMs), env.Height)
	put32(s.b, hID, wire.Sum("entrain/run", c.Append(l.Append(nil)), env.Seed[:], born))
	put32(s.b, hParams, c.ModelHash)
	s.enter(WaitingForMembers, env)
	return s, nil
}

func (s State) putConfig(c Config) {
	putU64(s.b, hWaitingMs, c.WaitingMs)
	putU64(s.b, hWarmupMs, c.WarmupMs)
	putU64(s.b, hRoundTrainMs, c.RoundTrainMs)
	putU64(s.b, hRoundWitnessMs, c.RoundWitnessMs)
	putU64(s.b, hCooldownMs, c.CooldownMs)
	putU64(s.b, hEpochMs, c.EpochMs)
	putU64(s.b, hBatchRampTokens, c.BatchRampTokens)
	putU32(s.b, hMinMembers, c.MinMembers)
	putU32(s.b, hStartMembers, c.StartMembers)
	putU32(s.b, hTotalSteps, c.TotalSteps)
	putU32(s.b, hBatchStart, c.BatchStart)
	putU32(s.b, hBatchEnd, c.BatchEnd)
	putU32(s.b, hSequenceTokens, c.SequenceTokens)
	putU16(s.b, hConfigWitnesses, c.Witnesses)
	putU8(s.b, hOverlap, c.Overlap)
	putU8(s.b, hMissedMax, c.MissedMax)
	putU8(s.b, hVerification, c.VerificationPercent)
	putU8(s.b, hNumerics, c.Numerics)
	putU8(s.b, hNameBytes, uint8(len(c.Name)))
	copy(s.b[hName:hName+NameBytesMax], c.Name)
	putU64(s.b, hVerifyMs, c.VerifyMs)
	putU64(s.b, hDisputeMs, c.DisputeMs)
	putU64(s.b, hStake, c.Stake)
	putU64(s.b, hUnbondMs, c.UnbondMs)
	putU64(s.b, hRate, c.Rate)
	putU8(s.b, hExchange, uint8(c.Exchange))
	putU32(s.b, hWindowBlocks, c.WindowBlocks)
	putU8(s.b, hSharing, uint8(c.Sharing))
	putU16(s.b, hConfigValidators, c.Validators)
	putU32(s.b, hScoreWindows, c.ScoreWindows)
	putU64(s.b, hEmission, c.Emission)
	putU8(s.b, hValidatorPercent, c.ValidatorPercent)
	putU8(s.b, hPenalty, c.Penalty)
	putU64(s.b, hRegisterCost, c.RegisterCost)
	putU32(s.b, hSlots, c.Slots)
	putU32(s.b, hImmuneWindows, c.ImmuneWindows)
	put32(s.b, hModelHash, c.ModelHash)
	put32(s.b, hStateHash, c.StateHash)
	put32(s.b, hSpecHash, c.SpecHash)
	put32(s.b, hOwner, c.Owner)
}

// Config returns the run's configuration.
func (s State) Config() Config {
	n := min(uint32(getU8(s.b, hNameBytes)), NameBytesMax)
	return Config{
		Name:                string(s.b[hName : hName+n]),
		MinMembers:          getU32(s.b, hMinMembers),
		StartMembers:        getU32(s.b, hStartMembers),
		Witnesses:           getU16(s.b, hConfigWitnesses),
		WaitingMs:           getU64(s.b, hWaitingMs),
		WarmupMs:            getU64(s.b, hWarmupMs),
		RoundTrainMs:        getU64(s.b, hRoundTrainMs),
		RoundWitnessMs:      getU64(s.b, hRoundWitnessMs),
		CooldownMs:          getU64(s.b, hCooldownMs),
		EpochMs:             getU64(s.b, hEpochMs),
		TotalSteps:          getU32(s.b, hTotalSteps),
		BatchStart:          getU32(s.b, hBatchStart),
		BatchEnd:            getU32(s.b, hBatchEnd),
		BatchRampTokens:     getU64(s.b, hBatchRampTokens),
		SequenceTokens:      getU32(s.b, hSequenceTokens),
		Overlap:             getU8(s.b, hOverlap),
		MissedMax:           getU8(s.b, hMissedMax),
		VerificationPercent: getU8(s.b, hVerification),
		Numerics:            getU8(s.b, hNumerics),
		VerifyMs:            getU64(s.b, hVerifyMs),
		DisputeMs:           getU64(s.b, hDisputeMs),
		Stake:               getU64(s.b, hStake),
		UnbondMs:            getU64(s.b, hUnbondMs),
		Rate:                getU64(s.b, hRate),
		Exchange:            Exchange(getU8(s.b, hExchange)),
		WindowBlocks:        getU32(s.b, hWindowBlocks),
		Sharing:             s.sharing(),
		Validators:          getU16(s.b, hConfigValidators),
		ScoreWindows:        getU32(s.b, hScoreWindows),
		Emission:            getU64(s.b, hEmission),
		ValidatorPercent:    getU8(s.b, hValidatorPercent),
		Penalty:             getU8(s.b, hPenalty),
		RegisterCost:        getU64(s.b, hRegisterCost),
		Slots:               getU32(s.b, hSlots),
		ImmuneWindows:       getU32(s.b, hImmuneWindows),
		ModelHash:           get32(s.b, hModelHash),
		StateHash:           get32(s.b, hStateHash),
		SpecHash:            get32(s.b, hSpecHash),
		Owner:               get32(s.b, hOwner),
	}
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
		Members: s.l.members, Witnesses: uint16(s.l.witnesses), Validators: uint16(s.l.validators), Buckets: s.l.buckets, Speeds: s.l.speeds,
	}
}

// ID returns the run's identity, to which commitments are bound: a hash of its limits and configuration and of the block it
// was created in, so that no two runs share it.
func (s State) ID() wire.Hash { return get32(s.b, hID) }

// Phase returns what the run is doing.
func (s State) Phase() Phase { return Phase(getU8(s.b, hPhase)) }

// PhaseSince returns when the phase began, in the ledger's milliseconds.
func (s State) PhaseSince() uint64 { return getU64(s.b, hPhaseSince) }

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
		return getU64(s.b, hWaitingMs)
	case Warmup:
		return getU64(s.b, hWarmupMs)
	case RoundTrain:
		if s.exchange() == Buckets {
			return 0
		}
		return getU64(s.b, hTrainLimitMs)
	case RoundWitness:
		return getU64(s.b, hRoundWitnessMs)
	case Cooldown:
		return getU64(s.b, hCooldownMs)
	case Finished:
		if s.scoresDue() && s.exchange() != Buckets {
			return (uint64(s.tail()) + 1) * getU64(s.b, hRoundTrainMs)
		}
	}
	return 0
}

// Epoch returns the number of the epoch that runs or ran last; an epoch begins with its warmup, the first is 1.
func (s State) Epoch() uint32 { return getU32(s.b, hEpoch) }

// EpochSince returns when the epoch's first round opened, in the ledger's milliseconds.
func (s State) EpochSince() uint64 { return getU64(s.b, hEpochSince) }

// Round returns the number of the round that runs or ran last; rounds count across the run, the first is 1.
func (s State) Round() uint32 { return getU32(s.b, hRound) }

// Step returns how many rounds with training have been opened.
func (s State) Step() uint32 { return getU32(s.b, hStep) }

// Params returns the parameters agreed last: their hash, and the round at whose start they were held. Round 0 means the
// initial parameters. A round's parameters contain all that was accepted in rounds before it, less Overlap.
func (s State) Params() (wire.Hash, uint32) { return get32(s.b, hParams), getU32(s.b, hParamsRound) }

// Draining returns how many drain rounds the epoch still has, the current one included; 0 while rounds train.
func (s State) Draining() uint8 { return getU8(s.b, hDrain) }

// PausePending tells whether the run will pause at the end of this epoch.
func (s State) PausePending() bool { return getU8(s.b, hPausePending) == 1 }

// Rollbacks returns how often the run went back to older parameters: when an epoch ended without agreement on its last ones, or
// when the agreed ones were lost with all who held them (see loseWarmup). Members then go back to Params, and what was accepted
// since is lost to the model, though its points stand.
func (s State) Rollbacks() uint32 { return getU32(s.b, hRollbacks) }

// PointsTotal returns the points ever given, one for each sequence accepted. Those of members whose places were given to
// others are in it.
func (s State) PointsTotal() uint64 { return getU64(s.b, hPoints) }

// PointsRetired returns the points of members whose places were given to others.
func (s State) PointsRetired() uint64 { return getU64(s.b, hRetired) }

// DataIndex returns the first sequence that was never given out. Together with what waits in the redo queue it is what is
// left to train.
func (s State) DataIndex() uint64 { return getU64(s.b, hDataIndex) }

// Checkpointers returns the members chosen to make the checkpoint of the epoch that ended last; none before.
func (s State) Checkpointers() []uint32 {
	list := make([]uint32, min(getU8(s.b, hCheckpointersLen), checkpointersMax))
	for i := range list {
		list[i] = getU32(s.b, hCheckpointers+4*uint32(i))
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
	if getU8(s.b, hHasCheckpoint) == 0 {
		return Saved{}, false
	}
	return Saved{
		Epoch:    getU32(s.b, hCheckEpoch),
		Params:   get32(s.b, hCheckParams),
		Manifest: get32(s.b, hCheckManifest),
		By:       get32(s.b, hCheckKey),
	}, true
}

// enter begins a phase.
func (s State) enter(p Phase, env Env) {
	putU8(s.b, hPhase, uint8(p))
	putU64(s.b, hPhaseSince, env.NowMs)
	putU64(s.b, hPhaseHeight, env.Height)
}

// elapsed tells whether the phase has lasted ms milliseconds.
func (s State) elapsed(env Env, ms uint64) bool {
	since := s.PhaseSince()
	return env.NowMs >= since && env.NowMs-since >= ms
}
