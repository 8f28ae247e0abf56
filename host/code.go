package host

import (
	"github.com/entrain-network/entrain/coordinator"
)

// Code is the outcome of a transaction. The numbers are part of every block's results and never
// change their meaning. A code from CodeCoordinator on is an error of the run's coordinator, plus
// CodeCoordinator.
type Code uint16

// The outcomes of a transaction. With codes up to CodeWork the transaction is not taken:
// it changes nothing, and can be sent again. From CodeBadName on, its nonce is used up.
const (
	CodeOK           Code = 0  // accepted
	CodeMalformed    Code = 1  // the bytes are not a transaction
	CodeTooLarge     Code = 2  // more than TxBytesMax bytes
	CodeWrongChain   Code = 3  // signed for another chain
	CodeBadSignature Code = 4  // not signed by its sender
	CodeExpired      Code = 5  // it has expired
	CodeExpiresLate  Code = 6  // it expires more than TxLifetimeMs after the ledger's time
	CodeReplayed     Code = 7  // its nonce was used, or is older than all that are remembered
	CodeAccountsFull Code = 8  // too many keys in use; try again later
	CodeWork         Code = 9  // many keys are in use, and a new one shows too little work
	CodeBadName      Code = 16 // the name cannot be a run's
	CodeUnknownRun   Code = 17 // there is no run of that name
	CodeRunExists    Code = 18 // the name is taken, or was taken
	CodeRunsFull     Code = 19 // no room for one more run
	CodeNotCreator   Code = 20 // the sender may not create runs on this chain
	CodeNotOwner     Code = 21 // the configuration names a different owner than the sender
	CodeBadConfig    Code = 22 // the coordinator refuses the limits or the configuration
	CodeBadSpec      Code = 23 // the spec's hash is not the configuration's
	CodeBadMessage   Code = 24 // the bytes are not a coordinator's message
	CodeNoReferee    Code = 25 // the run wants verification, and the host has no referee for it
	CodeFunds        Code = 26 // the payer has too few tokens
	CodeAmount       Code = 27 // the amount is zero or too small, or the receiver is the zero key
	CodeDust         Code = 28 // a purse would hold less than the minimum
	CodePursesFull   Code = 29 // no room for one more key with tokens
	CodePoolExists   Code = 30 // the name is taken
	CodeUnknownPool  Code = 31 // there is no pool of that name
	CodePoolsFull    Code = 32 // no room for one more pool
	CodePoolTerms    Code = 33 // the pool's terms forbid it, or the terms are invalid
	CodePoolStage    Code = 34 // the pool no longer lends, or no longer stakes
	CodeNotOperator  Code = 35 // the sender does not act for the pool
	CodePoolUse      Code = 36 // a pool's tokens can only become stake of a member paid at its address
	CodeNothingDue   Code = 37 // nothing to collect
	CodePoolOwed     Code = 38 // the pool owes or is owed tokens, and cannot be removed
	CodeNotAdmitted  Code = 39 // the run admits only listed keys, and the sender is not listed
	CodeDelegation   Code = 40 // the certificate is invalid, or there is no such delegation
	CodeListFull     Code = 41 // no room for one more allowed key or delegation

	CodeUnknownReplica Code = 42 // there is no replica of that key
	CodeReplicaKey     Code = 43 // the key cannot be a replica's, or has not consented
	CodeReplicasFull   Code = 44 // no room for one more replica
	CodeSeat           Code = 45 // the replica's seat does not allow it

	CodeRunOpen Code = 46 // the run has not finished, or what it owes is not certain yet

	CodeName Code = 47 // the name is invalid or taken, or looks like one that is taken

	CodeClock Code = 48 // the replicas agree on no block of Bittensor, or the block named is not newer

	CodeCoordinator Code = 256 // the first of the coordinator's own errors
)

// String returns the meaning of the code.
func (c Code) String() string {
	if c <= CodeClock && codeTexts()[c] != "" {
		return codeTexts()[c]
	}
	if c >= CodeCoordinator && c < CodeCoordinator+256 {
		return coordinator.Error(c - CodeCoordinator).Error()
	}
	return text("code ", uint16(c))
}

// Taken reports whether a transaction with this outcome is in a block and has used its nonce.
func (c Code) Taken() bool { return c == CodeOK || c >= CodeBadName }

// codeTexts returns the meaning of each code but the coordinator's.
func codeTexts() [CodeClock + 1]string {
	return [...]string{
		CodeOK:           "accepted",
		CodeMalformed:    "malformed transaction",
		CodeTooLarge:     "transaction too large",
		CodeWrongChain:   "transaction is for another chain",
		CodeBadSignature: "wrong signature",
		CodeExpired:      "transaction has expired: is this machine's clock right?",
		CodeExpiresLate:  "transaction expires too far in the future: is this machine's clock right?",
		CodeReplayed:     "nonce was used before",
		CodeAccountsFull: "too many keys in use, try again later",
		CodeWork:         "the chain is busy, and a new key must show more work",
		CodeBadName:      "invalid run name",
		CodeUnknownRun:   "no such run",
		CodeRunExists:    "there is or was a run of this name",
		CodeRunsFull:     "no room for one more run",
		CodeNotCreator:   "this key may not create runs on this chain",
		CodeNotOwner:     "the configuration's owner is not the sender",
		CodeBadConfig:    "invalid run configuration",
		CodeBadSpec:      "the spec's hash is not the one in the configuration",
		CodeBadMessage:   "malformed coordinator message",
		CodeNoReferee:    "the run needs verification, and the chain has no referee for it",
		CodeFunds:        "not enough tokens",
		CodeAmount:       "invalid amount of tokens",
		CodeDust:         "too few tokens for a purse",
		CodePursesFull:   "too many keys have tokens",
		CodePoolExists:   "a pool of this name exists",
		CodeUnknownPool:  "no such pool",
		CodePoolsFull:    "no room for one more pool",
		CodePoolTerms:    "against the pool's terms",
		CodePoolStage:    "too late for this pool",
		CodeNotOperator:  "this key does not act for the pool",
		CodePoolUse:      "a pool's tokens can only become stake of a member that is paid at its address",
		CodeNothingDue:   "nothing to collect",
		CodePoolOwed:     "the pool still owes or is owed tokens",
		CodeNotAdmitted:  "the run admits only keys on its owner's list, and this key is not listed",
		CodeDelegation:   "invalid delegation",
		CodeListFull:     "the list is full",

		CodeUnknownReplica: "no such replica",
		CodeReplicaKey:     "not a replica's key",
		CodeReplicasFull:   "no room for one more replica",
		CodeSeat:           "the replica's seat does not allow that",

		CodeRunOpen: "the run has not finished, or what it owes is not certain yet",

		CodeName: "the name cannot be had",

		CodeClock: "no such block of Bittensor's",
	}
}

// TxError is the reason why a transaction was refused.
type TxError struct {
	Code Code
	Text string // for people; empty if the chain remembers only the code
}

// Error returns the code's meaning and the text.
func (e *TxError) Error() string {
	if e.Text == "" {
		return e.Code.String()
	}
	return e.Code.String() + ": " + e.Text
}

func refuse(c Code, parts ...any) *TxError { return &TxError{Code: c, Text: text(parts...)} }

// Err returns the code as a *TxError without a text; nil for CodeOK.
func (c Code) Err() error {
	if c == CodeOK {
		return nil
	}
	return &TxError{Code: c}
}

// CodeOf returns the code of an error from Host, ParseTx or Tx.Verify; CodeOK for nil.
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

// Coordinator returns the coordinator's error in the code; false if there is none.
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
		panic(text("host: coordinator refused a message with ", err, ", which is not a coordinator.Error"))
	}
	return CodeCoordinator + Code(e)
}
