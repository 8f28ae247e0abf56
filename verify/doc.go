// Package verify decides whether a result is what comes out of a share, and proves it to those who
// did not compute it.
//
//	Recompute    does a member's step again and says in what its commitment differs
//	Player       plays one side of a dispute on the ledger: shows its trace, descends to the first difference, opens it
//	NewReferee   judges the slice that was opened, from the run's specification and what the evidence proves
//
// A dispute goes about one step of one member. Its program (package trace) follows from the
// specification, the step's number and the size of the share; what the program reads from outside
// follows from hashes that both sides signed or the ledger agreed upon:
//
//	parameters   Commitment.Params, the BlobRoot of the agreed parameters: the evidence is a chunk of 256 KiB and its way to the root
//	old state    Commitment.Prev, likewise
//	tokens       Commitment.Share, the hash of the share's spans, and data.manifest in the specification: the evidence is the spans, the data's
//	             manifest, and the chunks of shards that the sequence lies in (data.Set.Prove)
//	all others   the accuser's trace, which up to there is the accused's too
//
// The referee holds no data, no parameters and no state, and its judgement of one slice takes
// milliseconds of plain Go.
package verify
