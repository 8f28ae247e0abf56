package coordinator

// Error is why a message, a configuration or a buffer was refused. The zero value is OK and never becomes a Go error.
type Error uint8

// The reasons. The numbers are stable: receipts of hosts carry them.
const (
	OK Error = 0 // no error

	ErrUninitialized Error = 1 // Open: the buffer is zero: no run was created in it
	ErrVersion       Error = 2 // Open: the buffer was laid out by another version
	ErrCorrupt       Error = 3 // Open: the buffer contradicts itself
	ErrLimits        Error = 4 // New, Open: the limits are outside their range

	ErrZero        Error = 5  // Check: the field must not be zero
	ErrTooLarge    Error = 6  // Check: the field exceeds its maximum
	ErrTooSmall    Error = 7  // Check: the field is below another one that bounds it
	ErrName        Error = 8  // Check: the name is not 1 to 32 of a-z, 0-9, "-", "_" and ".", with a letter or digit first
	ErrUnsupported Error = 9  // Check: this version cannot do that
	ErrConfig      Error = 10 // New: the configuration has faults; Check lists them

	ErrMessage         Error = 11 // the message is of no known kind
	ErrPhase           Error = 12 // the message does not belong to this phase
	ErrEpoch           Error = 13 // the message is about another epoch
	ErrRound           Error = 14 // the report is about another round
	ErrParams          Error = 15 // the parameters are not the agreed ones
	ErrSender          Error = 16 // the sender's key is zero
	ErrNotMember       Error = 17 // the sender is not, or no longer, a member
	ErrAlreadyMember   Error = 18 // the sender is a member already
	ErrEjected         Error = 19 // the sender was ejected
	ErrFull            Error = 20 // no place is free in the table of members
	ErrNotActive       Error = 21 // the member does not take part in this epoch
	ErrNotElected      Error = 22 // the member is not a witness of this round
	ErrDuplicate       Error = 23 // the member has said so already
	ErrEarly           Error = 24 // the report is incomplete, and RoundTrain is not over
	ErrHeld            Error = 25 // the bitmap names a member that has no share in the round
	ErrHeldForm        Error = 26 // the bitmap is too long or ends in a zero byte
	ErrNotComplete     Error = 27 // the report says complete but lacks the result of an active member
	ErrFilterSize      Error = 28 // the filter has another size than this round's filters
	ErrFilterFull      Error = 29 // more bits of the filter are set than its items can set
	ErrNotOwner        Error = 30 // the sender is not the run's owner
	ErrPaused          Error = 31 // the run is paused, or will be
	ErrNotPaused       Error = 32 // the run is not paused
	ErrNotCheckpointer Error = 33 // the sender was not chosen to make this epoch's checkpoint

	ErrValue      Error = 34 // tokens are attached that the message does not take, or none or too many to one that does
	ErrStake      Error = 35 // the stake is below the least
	ErrPayee      Error = 36 // the payee cannot change while tokens are owed to it
	ErrNothing    Error = 37 // there is nothing to claim
	ErrNoMember   Error = 38 // nobody of that key is in the table of members
	ErrCheck      Error = 39 // the sender has no such check to make
	ErrLate       Error = 40 // the deadline is over
	ErrCommitment Error = 41 // the commitment is not that of the result in question, or its signature is wrong
	ErrBusy       Error = 42 // all places of the table of disputes are taken
	ErrReferee    Error = 43 // the host has no referee
	ErrDispute    Error = 44 // there is no such dispute
	ErrStage      Error = 45 // the message does not belong to this stage of the dispute
	ErrParty      Error = 46 // the move is not the sender's to make
	ErrVote       Error = 47 // the vote is none, or does not fit its trace
	ErrProof      Error = 48 // the trace does not end with what was committed to
	ErrNodes      Error = 49 // the children do not hash to the sender's node
	ErrEvidence   Error = 50 // the evidence proves nothing
	ErrNoConflict Error = 51 // the two commitments do not exclude each other

	ErrCommitted    Error = 52 // another commitment of the member for this round is on the ledger
	ErrExchange     Error = 53 // the run does not exchange by buckets
	ErrNoScores     Error = 54 // the run has no validators
	ErrNotValidator Error = 55 // the sender is not a validator
	ErrSeats        Error = 56 // all seats of validators are taken by higher stakes
	ErrPeriod       Error = 57 // the scores are about another period, or one that ended before the sender registered
	ErrHalf         Error = 58 // scores are committed in the first half of the period after, and revealed in the second
	ErrNotCommitted Error = 59 // the validator has not committed to scores of the period
	ErrReveal       Error = 60 // the scores are not those that were committed to
	ErrScores       Error = 61 // the scores are not in order, out of range, or about nobody
	ErrCost         Error = 62 // the tokens attached do not cover what registering costs
	ErrSlots        Error = 63 // all slots are taken, and nobody can be replaced
	ErrSharing      Error = 64 // the run gives everybody an equal share
	errorsEnd       Error = 65 // first unused number; tests walk up to it
)

// Error says what was refused and what to do about it. It implements the error interface.
func (e Error) Error() string {
	if e < ErrMessage {
		return e.stateText()
	}
	if e < ErrNotActive {
		return e.memberText()
	}
	if e < ErrValue {
		return e.roundText()
	}
	if e < ErrCommitted {
		return e.trustText()
	}
	return e.scoreText()
}

// scoreText is the text of the errors about commitments on the ledger, validators and slots.
func (e Error) scoreText() string {
	switch e {
	case ErrCommitted:
		return "another commitment of the member for this round is on the ledger; the two together are an equivocation"
	case ErrExchange:
		return "run does not exchange by buckets; gossip the commitment to its peers"
	case ErrNoScores:
		return "run has no seats for validators; nobody scores in it"
	case ErrNotValidator:
		return "sender is not a validator; register first"
	case ErrSeats:
		return "all seats of validators are taken, by stakes that are not lower; attach more tokens"
	case ErrPeriod:
		return "scores are about another period than the one that is scored now, or one that ended before the sender registered; read the state again"
	case ErrHalf:
		return "scores are committed in the first half of the next period's windows and revealed in the second; wait for that, or for the next period"
	case ErrNotCommitted:
		return "sender has not committed to scores of this period; nothing can be revealed"
	case ErrReveal:
		return "period, salt and scores are not those that the sender committed to"
	case ErrScores:
		return "scores must be in increasing order of members, of members that there are, and from -32767 to 32767"
	case ErrCost:
		return "tokens attached do not cover what registering costs; attach more"
	case ErrSharing:
		return "run gives everybody an equal share; nobody's speed is asked for"
	case ErrSlots:
		return "all slots are taken and nobody can be replaced now; try again when members have left or are no longer immune"
	}
	return "unknown error"
}

// stateText is the text of the errors of New, Open and Check.
func (e Error) stateText() string {
	switch e {
	case OK:
		return "ok"
	case ErrUninitialized:
		return "buffer holds no run; create one in it first"
	case ErrVersion:
		return "buffer was laid out by another version; run that version"
	case ErrCorrupt:
		return "buffer contradicts itself; restore it from a snapshot"
	case ErrLimits:
		return "limits are out of range; members may be 1 to 10000, witnesses 1 to 32, validators 0 to 64"
	case ErrZero:
		return "must not be zero"
	case ErrTooLarge:
		return "exceeds its maximum"
	case ErrTooSmall:
		return "is smaller than the field it must at least equal"
	case ErrName:
		return "must be 1 to 32 of a-z, 0-9, '-', '_' and '.', a letter or digit first"
	case ErrUnsupported:
		return "asks for what this version cannot do"
	case ErrConfig:
		return "configuration has faults; check it to have them listed"
	}
	return "unknown error"
}

// memberText is the text of the errors about who sends a message, and when.
func (e Error) memberText() string {
	switch e {
	case ErrMessage:
		return "unknown kind of message; upgrade the sender or the host"
	case ErrPhase:
		return "message does not belong to this phase; wait for the phase it belongs to"
	case ErrEpoch:
		return "message is about another epoch; read the state again"
	case ErrRound:
		return "report is about another round; read the state again"
	case ErrParams:
		return "parameters are not the agreed ones; fetch the agreed parameters from a peer"
	case ErrSender:
		return "sender's key is zero; sign with a key of your own"
	case ErrNotMember:
		return "sender is not a member; join first"
	case ErrAlreadyMember:
		return "sender is a member already; nothing to do"
	case ErrEjected:
		return "sender was ejected from this run and cannot return"
	case ErrFull:
		return "table of members is full; try again when members have left"
	}
	return "unknown error"
}

// roundText is the text of the errors of reports, and of what owners and checkpointers send.
func (e Error) roundText() string {
	switch e {
	case ErrNotActive:
		return "member does not take part in this epoch; wait for the next warmup"
	case ErrNotElected:
		return "member is not an elected witness of this round; only those report"
	case ErrDuplicate:
		return "member has said so already; nothing to do"
	case ErrEarly:
		return "report is incomplete; complete it, or send it in RoundWitness"
	case ErrHeld:
		return "bitmap of results held names a member that has no share in the attested round"
	case ErrHeldForm:
		return "bitmap of results held is longer than the table of members or ends in a zero byte"
	case ErrNotComplete:
		return "report says complete but lacks the result of an active member; send it as incomplete in RoundWitness"
	case ErrFilterSize:
		return "filter of commitments has another size than this round's filters"
	case ErrFilterFull:
		return "filter of commitments has more bits set than its commitments can set"
	case ErrNotOwner:
		return "sender is not the run's owner; only the owner pauses and resumes"
	case ErrPaused:
		return "run is paused already, or will be when this epoch ends"
	case ErrNotPaused:
		return "run is not paused; a pause that is still pending cannot be taken back"
	case ErrNotCheckpointer:
		return "sender was not chosen to make this epoch's checkpoint; leave it to those who were"
	}
	return "unknown error"
}

// trustText is the text of the errors about tokens, checks and disputes.
func (e Error) trustText() string {
	switch e {
	case ErrValue:
		return "tokens attached do not fit the message; only joining, registering, deposits and funding take any, and the latter two need some"
	case ErrStake:
		return "stake is below the least that the run asks for; attach more tokens"
	case ErrPayee:
		return "payee cannot change while tokens are owed to the one before; claim them first"
	case ErrNothing:
		return "there is nothing to claim now"
	case ErrNoMember:
		return "nobody of that key is in the table of members"
	case ErrCheck:
		return "sender has no such check to make, or has made it"
	case ErrLate:
		return "deadline is over"
	case ErrCommitment:
		return "commitment is not that of the member's result in question, or its signature is wrong"
	case ErrBusy:
		return "as many disputes are open as there can be; try again when one is over"
	case ErrReferee:
		return "host has no referee for this run; it cannot judge disputes"
	case ErrDispute:
		return "dispute is not open; read the state again"
	case ErrStage:
		return "message does not belong to this stage of the dispute; read the state again"
	case ErrParty:
		return "the move is not the sender's to make"
	case ErrVote:
		return "vote is unknown, or does not fit its trace"
	case ErrProof:
		return "proof does not show that the trace ends with what was committed to"
	case ErrNodes:
		return "children revealed do not hash to the sender's node"
	case ErrEvidence:
		return "evidence does not open the slice in question"
	case ErrNoConflict:
		return "the two commitments are not different ones of one member for one round"
	}
	return "unknown error"
}

// orNil returns e as a Go error, and nil for OK.
func (e Error) orNil() error {
	if e == OK {
		return nil
	}
	return e
}
