package coordinator

import (
	"encoding/binary"

	"github.com/entrain-network/entrain/bloom"
	"github.com/entrain-network/entrain/committee"
)

// The offsets below are the format drawn in the package comment. Every field lies at a multiple of its own size; bytes that
// no field covers are zero.

// PageBytes is the size of a page, a leaf of State.Hash. The parts of the buffer begin at pages, so that a host which ships
// or stores changed pages only need not know what is in them.
const PageBytes = 1024

const (
	magic   = 0x52544e45 // "ENTR"
	version = 3

	ringRounds = 4  // rounds kept
	spansMax   = 8  // spans of a batch: seven from the redo queue, one fresh
	redoMax    = 64 // spans in the redo queue
	spanBytes  = 16 // U64 start, U32 count, four zero bytes

	checkpointersMax = 3

	checksMin = 64 // least places in the table of checks
)

// Offsets in the header.
const (
	hMagic            = 0
	hVersion          = 4
	hMembers          = 8
	hWitnesses        = 12
	hValidators       = 14
	hID               = 16
	hWaitingMs        = 48
	hWarmupMs         = 56
	hRoundTrainMs     = 64
	hRoundWitnessMs   = 72
	hCooldownMs       = 80
	hEpochMs          = 88
	hBatchRampTokens  = 96
	hMinMembers       = 104
	hStartMembers     = 108
	hTotalSteps       = 112
	hBatchStart       = 116
	hBatchEnd         = 120
	hSequenceTokens   = 124
	hConfigWitnesses  = 128
	hOverlap          = 130
	hMissedMax        = 131
	hVerification     = 132
	hNumerics         = 133
	hNameBytes        = 134
	hName             = 136
	hModelHash        = 168
	hSpecHash         = 200
	hOwner            = 232
	hPhase            = 264
	hPausePending     = 265
	hDrain            = 266
	hRepeats          = 267
	hCheckpointersLen = 268
	hHasCheckpoint    = 269
	hLostWarmups      = 270
	hPhaseSince       = 272
	hEpochSince       = 280
	hDataIndex        = 288
	hPoints           = 296
	hRetired          = 304
	hRedoLost         = 312
	hParams           = 320
	hParamsRound      = 352
	hCount            = 356
	hEpoch            = 360
	hRound            = 364
	hStep             = 368
	hEpochRound       = 372
	hRedoLen          = 376
	hRollbacks        = 380
	hCheckpointers    = 384
	hCheckParams      = 400
	hCheckManifest    = 432
	hCheckKey         = 464
	hCheckEpoch       = 496
	hPaceMs           = 500
	hTrainLimitMs     = 504
	hVerifyMs         = 512
	hDisputeMs        = 520
	hStake            = 528
	hUnbondMs         = 536
	hRate             = 544
	hStateHash        = 552
	hTreasury         = 584
	hEscrow           = 592
	hPayout           = 600
	hPayoutTo         = 608
	hPointsVerified   = 640
	hConvictions      = 648
	hDisputes         = 652
	hChecksDrawn      = 656
	hChecksPassed     = 660
	hRoom             = 664
	hExchange         = 665
	hValidatorPercent = 666
	hPenalty          = 667
	hConfigValidators = 668
	hEmission         = 672
	hRegisterCost     = 680
	hWindowBlocks     = 688
	hScoreWindows     = 692
	hSlots            = 696
	hImmuneWindows    = 700
	hPhaseHeight      = 704
	hEmitted          = 712
	hPenalties        = 720
	hScored           = 728
	hTail             = 732
	hReplaced         = 736
	hSharing          = 740
	hEnd              = 741
	headerBytes       = PageBytes
)

// Offsets in a place of the table of members.
const (
	mKey         = 0
	mPoints      = 32
	mJoinedMs    = 40
	mLeftMs      = 48
	mStake       = 56
	mResults     = 64
	mSpeed       = 68
	mJoinedEpoch = 72
	mLeftRound   = 76
	mStatus      = 80
	mMissed      = 81
	mIdle        = 82
	mDoubt       = 83
	mStrikes     = 84
	mSkipped     = 85
	mAstray      = 86
	mBalance     = 88
	mSettled     = 96
	mClaimed     = 104
	mReleaseMs   = 112
	mPassed      = 120
	mFirstRound  = 124
	mLastRound   = 128
	mPayee       = 136
	mRipe        = 168
	mUnripe      = 176
	mEarned      = 184
	mSince       = 192
	mScore       = 196
	mSpoke       = 198
	mEnd         = 199
	memberBytes  = 200
)

// Offsets in the fixed part of a ring slot.
const (
	rNumber       = 0
	rEpoch        = 4
	rStep         = 8
	rBatch        = 12
	rOpenedMs     = 16
	rSeed         = 24
	rAgreed       = 56
	rActiveLen    = 88
	rExpectedLen  = 92
	rAcceptedLen  = 96
	rAttests      = 100
	rFilterBits   = 104
	rFilterHashes = 108
	rElectedLen   = 109
	rReports      = 110
	rCompletes    = 111
	rFinal        = 112
	rHasAgreed    = 113
	rSpansLen     = 114
	rSpans        = 120
	rFixedBytes   = rSpans + spansMax*spanBytes
)

// Offsets in a report of a ring slot.
const (
	pReported   = 0
	pComplete   = 1
	pParams     = 8
	reportBytes = 40
)

// Offsets in a member's part of a ring slot of a run whose shares go by speed.
const (
	eSpeed     = 0
	eFrom      = 4 // of the batch's sequences, the first of the share
	eCount     = 8
	shareBytes = 12
)

// Offsets in a place of the table of checks. A place whose round is 0 is free.
const (
	kRound      = 0
	kEpoch      = 4
	kStep       = 8
	kMember     = 12
	kVerifier   = 16
	kSequences  = 20
	kDeadlineMs = 24
	kShare      = 32
	kParams     = 64
	kDisputed   = 96
	kReassigned = 97
	kEnd        = 98
	checkBytes  = 104
)

// Offsets in a place of the table of disputes, which begins with the check as above. A place whose round is 0 is free.
const (
	dID          = 104
	dAccuser     = 108
	dDeadlineMs  = 112
	dStage       = 120
	dUnserved    = 121
	dDefended    = 122
	dLevel       = 123
	dDepth       = 124
	dRevealed    = 125 // 2 bytes: the accused, the accuser
	dTiesLen     = 127
	dOp          = 128
	dTile        = 132
	dSlice       = 136
	dIndex       = 140
	dTraces      = 144 // 2 hashes: the accused's, the accuser's
	dNodes       = 208 // likewise
	dChildren    = 272 // Fan hashes: what was revealed first
	dTies        = 784 // tieMax times U32 member, U8 vote, three zero bytes, Hash trace
	dCommitment  = 904
	dEnd         = dCommitment + CommitmentBytes // 1148
	disputeBytes = 1152
	tieBytes     = 40
	tiesMax      = 3

	disputesMax = 16
)

// Offsets in a place of the ring of convictions; conviction n is in place (n-1) mod convictionsMax.
const (
	cNumber         = 0
	cRound          = 4
	cMember         = 8
	cBy             = 12
	cKey            = 16
	cByKey          = 48
	cEvidence       = 80
	cSlashed        = 112
	cAtMs           = 120
	cFirstRound     = 128
	cLastRound      = 132
	cResults        = 136
	cOffence        = 140
	cEnd            = 141
	convictionBytes = 144

	convictionsMax = 64
)

// Offsets in a seat of the table of validators. A seat without a key is free.
const (
	vKey           = 0
	vPayee         = 32
	vStake         = 64
	vBalance       = 72
	vEarned        = 80
	vSinceMs       = 88
	vSince         = 96
	vTrust         = 100
	vEnd           = 101
	validatorBytes = 104
)

// Offsets in a tally: what members did in a period, and what became of it. Tallies of three periods are kept: the one that
// runs, the one that is being scored, and the one that was settled last; period p is in place p mod 3.
const (
	tPeriod    = 0
	tMembers   = 8 // tallyBytes for each member
	tSequences = 0 // in a member's part
	tWeight    = 4
	tAmount    = 8
	tScore     = 16
	tMissed    = 18
	tEnd       = 19
	tallyBytes = 24

	talliesKept = 3
)

// Offsets in a period's scores: a part for each seat of a validator, then for each seat the scores it gave, two bytes a member.
// Those of two periods are kept: the one that is being scored and the one that was settled last; period p is in place p mod 2.
const (
	sPeriod    = 0
	sSeats     = 8 // seatBytes for each seat
	sKey       = 0 // in a seat's part
	sHash      = 32
	sStake     = 64
	sReward    = 72
	sAgreement = 80
	sTrust     = 82
	sRevealed  = 83
	sEnd       = 84
	seatBytes  = 88

	scoresKept = 2
)

// layout is where the parts of a buffer lie that depend on the limits, in bytes.
type layout struct {
	members, witnesses, validators uint32
	buckets, speeds                bool

	table, redo, ring             uint32 // from the buffer's begin
	checks, disputes, convictions uint32
	slot, total                   uint32 // lengths of a ring slot and of the buffer
	checksMax                     uint32 // places in the table of checks
	validatorsAt, tallies, scores uint32 // from the buffer's begin
	tally, period                 uint32 // lengths of a tally and of a period's scores

	// From a slot's begin.
	elected, reports, active, expected, accepted, counts, filters, commits, speedsAt uint32
	bitmap, filtersLen                                                               uint32 // lengths of a bitmap and of the space for filters
}

// layoutOf lays out a buffer. The limits have been checked.
func layoutOf(l Limits) layout {
	a := layout{members: l.Members, witnesses: uint32(l.Witnesses), validators: uint32(l.Validators), buckets: l.Buckets, speeds: l.Speeds}
	a.bitmap = (l.Members + 63) / 64 * 8
	if !l.Buckets {
		a.filtersLen = filtersBytes(l) // with buckets the commitments are here, and nobody need say which it holds
	}

	a.elected = rFixedBytes
	a.reports = up(a.elected+4*a.witnesses, 8)
	a.active = a.reports + reportBytes*a.witnesses
	a.expected = a.active + a.bitmap
	a.accepted = a.expected + a.bitmap
	a.counts = a.accepted + a.bitmap
	a.filters = up(a.counts+l.Members, 8)
	a.commits = up(a.filters+a.filtersLen, 8)
	end := a.commits
	if l.Buckets {
		end += 32 * l.Members
	}
	a.speedsAt = end
	if l.Speeds {
		end += shareBytes * l.Members
	}
	a.slot = up(end, PageBytes)

	a.table = headerBytes
	a.redo = up(a.table+memberBytes*l.Members, PageBytes)
	a.ring = a.redo + up(redoMax*spanBytes, PageBytes)
	a.checks = a.ring + ringRounds*a.slot
	a.checksMax = max(checksMin, l.Members/4)
	a.disputes = a.checks + up(checkBytes*a.checksMax, PageBytes)
	a.convictions = a.disputes + up(disputeBytes*disputesMax, PageBytes)
	a.validatorsAt = a.convictions + up(convictionBytes*convictionsMax, PageBytes)
	a.tallies = a.validatorsAt + up(validatorBytes*a.validators, PageBytes)
	a.scores = a.tallies
	if a.validators > 0 {
		a.tally = up(tMembers+tallyBytes*l.Members, PageBytes)
		a.period = up(sSeats+a.validators*(seatBytes+2*l.Members), PageBytes)
		a.scores += talliesKept * a.tally
	}
	a.total = a.scores + scoresKept*a.period
	return a
}

// filtersBytes returns the space that the filters of one round need at most: many witnesses have smaller filters each, so
// the most is not always that of the most witnesses.
func filtersBytes(l Limits) uint32 {
	most := uint32(0)
	for w := uint32(1); w <= uint32(l.Witnesses); w++ {
		p := bloom.Size(l.Members, w, committee.Quorum(w))
		most = max(most, w*(p.Bits/8))
	}
	return most
}

// up rounds n up to a multiple of to.
func up(n, to uint32) uint32 { return (n + to - 1) / to * to }

// Size returns the length of the buffer of a run with these limits, in bytes: 0 if they are out of range.
func Size(l Limits) int {
	if l.check() != OK {
		return 0
	}
	return int(layoutOf(l).total)
}

// Typed access to fields at an offset.

func getU8(b []byte, at uint32) uint8    { return b[at] }
func getU16(b []byte, at uint32) uint16  { return binary.LittleEndian.Uint16(b[at:]) }
func getU32(b []byte, at uint32) uint32  { return binary.LittleEndian.Uint32(b[at:]) }
func getU64(b []byte, at uint32) uint64  { return binary.LittleEndian.Uint64(b[at:]) }
func putU8(b []byte, at uint32, v uint8) { b[at] = v }

func putU16(b []byte, at uint32, v uint16) { binary.LittleEndian.PutUint16(b[at:], v) }
func putU32(b []byte, at uint32, v uint32) { binary.LittleEndian.PutUint32(b[at:], v) }
func putU64(b []byte, at uint32, v uint64) { binary.LittleEndian.PutUint64(b[at:], v) }

func get32(b []byte, at uint32) [32]byte    { return [32]byte(b[at : at+32]) }
func put32(b []byte, at uint32, v [32]byte) { copy(b[at:at+32], v[:]) }

func putBool(b []byte, at uint32, v bool) {
	b[at] = 0
	if v {
		b[at] = 1
	}
}

// bit tells whether bit i of a bitmap is set; bits beyond it are not.
func bit(bitmap []byte, i uint32) bool {
	return uint64(i>>3) < uint64(len(bitmap)) && bitmap[i>>3]>>(i&7)&1 == 1
}

func setBit(bitmap []byte, i uint32) { bitmap[i>>3] |= 1 << (i & 7) }

// allZero tells whether b has no bit set.
func allZero(b []byte) bool {
	for _, v := range b {
		if v != 0 {
			return false
		}
	}
	return true
}
