// Package verify decides whether a result follows from a share, and proves the answer to parties
// that did not compute it.
//
//	Recompute    repeats a member's step and reports how its commitment differs
//	Player       plays one side of a dispute on the ledger: it reveals its trace, descends to
//	             the first difference, and opens it
//	NewReferee   judges the opened slice from the run's specification and the evidence
//
// A dispute concerns one step of one member. The specification, the step's number and the size of
// the share determine its program (package trace). The program's external inputs follow from hashes
// that both sides signed or that the ledger agreed on:
//
//	parameters   Commitment.Params, the BlobRoot of the agreed parameters: the evidence is a
//	             chunk of 256 KiB and its path to the root
//	old state    Commitment.Prev, likewise
//	tokens       Commitment.Share, the hash of the share's spans, and data.manifest in the
//	             specification: the evidence is the spans, the data's manifest, and the chunks
//	             of shards that hold the sequence (data.Set.Prove)
//	all others   the accuser's trace, which agrees with the accused's up to there
//
// In a run of buckets the program ends with the gradient and needs no state: of the outcome, only
// the work is computed, and payload and state are taken from the commitment.
//
// The referee holds no data, parameters or state. Judging one slice takes milliseconds in plain Go.
package verify
