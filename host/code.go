package host

import (
	"github.com/entrain-network/entrain/coordinator"
)

// Code says what became of a transaction. The numbers are part of every block's results and never change their meaning.
// Codes from CodeCoordinator on are the error of a run's coordinator, plus CodeCoordinator.
type Code uint16

// What may become of a transaction. Up to CodeAccountsFull it is not taken at all: it changes nothing, and may be sent
// again. From CodeBadName on, its nonce is used up.
const (
	CodeOK           Code = 0  // accepted
	CodeMalformed    Code = 1  // bytes that are no transaction
	CodeTooLarge     Code = 2  // more than TxBytesMax bytes
	CodeWrongChain   Code = 3  // signed for another chain
	CodeBadSignature Code = 4  // not signed by its sender
	CodeExpired      Code = 5  // its time is over
	CodeExpiresLate  Code = 6  // it expires more than TxLifetimeMs after the ledger's time
	CodeReplayed     Code = 7  // its nonce is used, or older than all that are remembered
	CodeAccountsFull Code = 8  // too many keys in use; try again later
	CodeBadName      Code = 16 // not a run's name
	CodeUnknownRun   Code = 17 // no run of that name
	CodeRunExists    Code = 18 // the name is taken
	CodeRunsFull     Code = 19 // no room for one more run
	CodeNotCreator   Code = 20 // the sender may not create runs on this chain
	CodeNotOwner     Code = 21 // the configuration names another owner than the sender
	CodeBadConfig    Code = 22 // the coordinator refuses the limits or the configuration
	CodeBadSpec      Code = 23 // the spec's hash is not the configuration's
	CodeBadMessage   Code = 24 // bytes that are no message of a coordinator
	CodeNoReferee    Code = 25 // the run wants verification, and there is no referee for it
	CodeFunds        Code = 26 // whoever pays has not so many tokens
	CodeAmount       Code = 27 // an amount that is zero, too small, or for nobody
	CodeDust         Code = 28 // a purse would hold less than the least
	CodePursesFull   Code = 29 // no room for one more key with tokens
	CodePoolExists   Code = 30 // the name is taken
	CodeUnknownPool  Code = 31 // no pool of that name
	CodePoolsFull    Code = 32 // no room for one more pool
	CodePoolTerms    Code = 33 // against the terms of the pool, or terms that no pool can have
	CodePoolStage    Code = 34 // the pool does not lend, or stake, any more
	CodeNotOperator  Code = 35 // the sender does not act for the pool
	CodePoolUse      Code = 36 // a pool's tokens can only become stake of a member who is paid at its address
	CodeNothingDue   Code = 37 // nothing to collect
	CodePoolOwed     Code = 38 // the pool has dues, or is owed something, and cannot be removed
	CodeNotAdmitted  Code = 39 // the run takes only listed keys, and this is none of them
	CodeDelegation   Code = 40 // a certificate that does not count, or a delegation that is not there
	CodeListFull     Code = 41 // no room for one more allowed key or delegation

	CodeUnknownReplica Code = 42 // no replica of that key
	CodeReplicaKey     Code = 43 // a key that cannot be a replica's, or has not consented
	CodeReplicasFull   Code = 44 // no room for one more replica
	CodeSeat           Code = 45 // not while the replica has, or has not, a seat

	CodeCoordinator Code = 256 // the first of the coordinator's own errors
)

// String says in a few words what the code means.
func (c Code) String() string {
	if c <= CodeSeat && codeTexts()[c] != "" {
		return codeTexts()[c]
	}
	if c >= CodeCoordinator && c < CodeCoordinator+256 {
		return "coordinator: " + coordinator.Error(c-CodeCoordinator).Error()
	}
	return text("code ", uint16(c))
}

// Taken tells whether a transaction with this outcome stands in a block and has used its nonce.
func (c Code) Taken() bool { return c == CodeOK || c >= CodeBadName }

// codeTexts returns what each code means, except for those of the coordinator.
func codeTexts() [CodeSeat + 1]string {
	return [...]string{
		CodeOK:           "accepted",
		CodeMalformed:    "malformed transaction",
		CodeTooLarge:     "transaction too large",
		CodeWrongChain:   "transaction is for another chain",
		CodeBadSignature: "wrong signature",
		CodeExpired:      "transaction has expired",
		CodeExpiresLate:  "transaction expires too far in the future: is this machine's clock right?",
		CodeReplayed:     "nonce was used before",
		CodeAccountsFull: "too many keys in use, try again later",
		CodeBadName:      "bad run name",
		CodeUnknownRun:   "no such run",
		CodeRunExists:    "a run of this name exists",
		CodeRunsFull:     "no room for one more run",
		CodeNotCreator:   "this key may not create runs on this chain",
		CodeNotOwner:     "the configuration's owner is not the sender",
		CodeBadConfig:    "bad run configuration",
		CodeBadSpec:      "the spec's hash is not the one in the configuration",
		CodeBadMessage:   "malformed coordinator message",
		CodeNoReferee:    "the run wants verification, and there is no referee for it",
		CodeFunds:        "not enough tokens",
		CodeAmount:       "bad amount of tokens",
		CodeDust:         "too few tokens for a purse",
		CodePursesFull:   "too many keys have tokens",
		CodePoolExists:   "a pool of this name exists",
		CodeUnknownPool:  "no such pool",
		CodePoolsFull:    "no room for one more pool",
		CodePoolTerms:    "against the pool's terms",
		CodePoolStage:    "too late for this pool",
		CodeNotOperator:  "this key does not act for the pool",
		CodePoolUse:      "a pool's tokens can only become stake of a member who is paid at its address",
		CodeNothingDue:   "nothing to collect",
		CodePoolOwed:     "the pool is not done yet",
		CodeNotAdmitted:  "the run takes only keys on its owner's list, and this one is not",
		CodeDelegation:   "the delegation does not count",
		CodeListFull:     "the list is full",

		CodeUnknownReplica: "no such replica",
		CodeReplicaKey:     "not a replica's key",
		CodeReplicasFull:   "no room for one more replica",
		CodeSeat:           "the replica's seat does not allow that",
	}
}

// TxError is why a transaction was refused.
type TxError struct {
	Code Code
	Text string // for people; may be empty, since a ledger that is asked again remembers the code alone
}

// Error says why the transaction was refused.
func (e *TxError) Error() string {
	if e.Text == "" {
		return e.Code.String()
	}
	return e.Code.String() + ": " + e.Text
}

func refuse(c Code, parts ...any) *TxError { return &TxError{Code: c, Text: text(parts...)} }

// Err returns the code as an error, a *TxError without a text; nil for CodeOK.
func (c Code) Err() error {
	if c == CodeOK {
		return nil
	}
	return &TxError{Code: c}
}

// CodeOf returns the code of an error that Host, ParseTx or Tx.Verify returned; CodeOK for nil.
func CodeOf(err error) Code {
	if err == nil {
		return CodeOK
	}
	refused, ok := err.(*TxError)
	if !ok {
		panic(text("host: ", err, " is not the outcome of a transaction"))
	}
	return refused.Code
}

// Coordinator returns the coordinator's error that the code stands for; false if it stands for another.
func (c Code) Coordinator() (coordinator.Error, bool) {
	if c < CodeCoordinator || c >= CodeCoordinator+256 {
		return coordinator.OK, false
	}
	return coordinator.Error(c - CodeCoordinator), true
}

// codeOfCoordinator is the inverse of Coordinator.
func codeOfCoordinator(err error) Code {
	e, ok := err.(coordinator.Error)
	if !ok {
		panic(text("host: coordinator refused a message with ", err, ", which is no coordinator.Error"))
	}
	return CodeCoordinator + Code(e)
}
