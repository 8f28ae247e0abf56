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

	errorsEnd Error = 34 // first unused number; tests walk up to it
)

// Error says what was refused and what to do about it. It implements the error interface.
func (e Error) Error() string {
	if e < ErrMessage {
		return e.stateText()
	}
	if e < ErrNotActive {
		return e.memberText()
	}
	return e.roundText()
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
		return "limits are out of range; members may be 1 to 10000, witnesses 1 to 32"
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

// orNil returns e as a Go error, and nil for OK.
func (e Error) orNil() error {
	if e == OK {
		return nil
	}
	return e
}
