package client

import (
	"slices"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/change"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// An Event is something that happened outside the machine. Every action that can end, in success or
// failure, ends in one.
type Event interface{ event() }

// StateChanged brings a newer state of the run, and the ledger's time TimeMs at which it held. The
// machine keeps the state and never writes to it.
type StateChanged struct {
	State   coordinator.State
	TimeMs  uint64
	Light   bool             // the state lacks filters: see Watch
	Reports []change.Reports // if they were asked for
}

// Tick reports that time has passed. Drivers send it by Machine.Wake at the latest.
type Tick struct{}

// Loaded ends the start. The driver holds the parameters with the hash Params, which were current
// at the start of round Round (0: the run's initial ones), or none if Known is false.
//
// Committed are the last commitments that this member signed before it was started, in the order of
// their rounds. The member must not compute those rounds again: the result could differ, and two
// commitments for one round are proof of a cheat. InDoubt says that there may be one which is not
// known; the member then sits out the round that is open now.
//
// Sets are accepted sets that the driver kept: this member applied them before it was started, and
// they lead on from Params.
//
// State is the hash of the optimizer state that the driver holds, zero if it is the fresh one.
//
// Cases are the shares that the driver kept on Keep.
type Loaded struct {
	Known     bool
	Round     coordinator.Round
	Params    wire.Hash
	Committed []dispute.Signed
	InDoubt   bool
	Sets      []Set
	Cases     []Kept
	State     wire.Hash
}

// Set is an accepted set of results of a step, which made the parameters of the start of round To
// from those with the hash From. Followed says that it is an update alone.
type Set struct {
	To       coordinator.Round
	Step     coordinator.Step
	From     wire.Hash
	Followed bool
}

// Kept is a share under a check or dispute, with the signed commitment to it.
type Kept struct {
	Task
	Signature key.Signature
}

// CommitmentReceived brings a signed commitment from gossip or from a peer's answer. The driver has
// checked its signature against Signer, and nobody changes it any more.
type CommitmentReceived struct {
	Signed *dispute.Signed
	Signer key.Public
	ID     wire.Hash  // of the commitment
	From   key.Public // who answered AskCommitments with it, if one did
}

// SpansReceived brings the spans that, says a peer, a member was given. The machine checks their
// hash.
type SpansReceived struct{ Spans []batch.Span }

// Trained ends a Train action. Failed is empty on success; otherwise it says why there is nothing
// to send.
type Trained struct {
	Round        coordinator.Round
	Payload      wire.Hash // codec.PayloadRoot of the payload
	PayloadBytes uint32
	Prev, State  wire.Hash // of the optimizer state before and after
	Gradient     wire.Hash // merkle.BlobRoot of the share's mean gradient
	Loss         uint32    // mean training loss in thousandths of a nat a token
	Failed       string
}

// PayloadFetched ends a FetchPayload action. OK means that the payload has the committed hash and
// decodes strictly.
type PayloadFetched struct {
	Round  coordinator.Round
	Member coordinator.Member
	ID     wire.Hash // of the commitment
	OK     bool
	// the bytes have the committed hash and are not a valid payload: never ask again
	Refused bool
}

// Applied ends an Apply action: the driver holds the parameters of the start of round To.
//
// Update is the root of the update that made them, if it was followed or made.
type Applied struct {
	To     coordinator.Round
	Params wire.Hash
	Update wire.Hash
	OK     bool
}

// Healed ends a Heal action.
type Healed struct {
	Round  coordinator.Round
	Params wire.Hash
	OK     bool
}

// Submitted ends a Submit action: Err is nil when the message is in a block and was accepted.
type Submitted struct {
	Message coordinator.Message
	Err     error
}

// Saved ends a Save action.
type Saved struct {
	Epoch    coordinator.Epoch
	Manifest wire.Hash
	OK       bool
}

// Stopping says that the participant wants to leave. The member withdraws from the run and starts
// nothing new. Not takes that back: the member joins again.
type Stopping struct{ Not bool }

func (StateChanged) event()       {}
func (Tick) event()               {}
func (Loaded) event()             {}
func (CommitmentReceived) event() {}
func (SpansReceived) event()      {}
func (Trained) event()            {}
func (PayloadFetched) event()     {}
func (Applied) event()            {}
func (Healed) event()             {}
func (Submitted) event()          {}
func (Saved) event()              {}
func (Stopping) event()           {}

// An Action is something that the driver is to do.
type Action interface{ action() }

// Submit sends a message to the run's coordinator.
type Submit struct{ Message coordinator.Message }

// Train computes this member's share of a round on the parameters and from the optimizer state with
// the given hashes. A driver that lost that state in a crash begins from the fresh one and says so
// in Trained. Settle, if not zero, is the seed of the slice that was sent of the state: the driver
// takes it out first.
type Train struct {
	Epoch  coordinator.Epoch
	Round  coordinator.Round
	Step   coordinator.Step
	Spans  []batch.Span
	Params wire.Hash
	Prev   wire.Hash
	Settle wire.Hash
}

// CancelTraining stops the Train action of a round that is over.
type CancelTraining struct{ Round coordinator.Round }

// Commit signs a commitment, keeps it for peers that ask, and publishes it: to some members, or to
// all if To is nil.
type Commit struct {
	Commitment dispute.Commitment
	To         []key.Public
}

// Republish publishes this member's own commitment of a round again, for peers that missed it.
type Republish struct {
	Round coordinator.Round
	To    []key.Public // as in Commit
}

// AskCommitments asks one peer for the commitments of members in a round. In a run of buckets To is
// zero, and each commitment is looked for in its author's bucket.
type AskCommitments struct {
	Round coordinator.Round
	Of    []coordinator.Member
	To    key.Public
}

// AskSpans asks one peer which spans have this batch.Hash. It ends in SpansReceived if the peer
// knows.
type AskSpans struct {
	Hash wire.Hash
	To   key.Public
}

// FetchPayload fetches and checks one committed payload; the slice of it that Seed draws, if Seed
// is not zero. If Slices is not 0, it fetches the range for that slice of Slices, with a proof.
type FetchPayload struct {
	Round        coordinator.Round
	Member       coordinator.Member
	ID           wire.Hash
	Payload      wire.Hash
	PayloadBytes uint32
	Seed         wire.Hash
	Slice        int
	Slices       int
	Author       key.Public   // the likeliest holder
	From         []key.Public // others; many fetches share the list, which nobody changes
	Bulk         key.Public   // if not zero, the only one to ask, for many payloads at once
}

// Apply makes the parameters of the start of round To from those of the round before, by the
// payloads of round Of in this order; by the slices of them that Seed draws, if Seed is not zero.
// Serve asks to make the update of the payloads and to serve it. If Update is not zero, it is the
// root of an update that was fetched, to apply instead; with Kept, the set for To of Loaded is.
type Apply struct {
	To, Of   coordinator.Round
	Seed     wire.Hash
	Step     coordinator.Step // of the round in which the payloads were made
	Payloads []wire.Hash
	Serve    bool
	Update   wire.Hash
	Kept     bool
}

// Heal fetches the parameters with the agreed hash, reusing what the driver holds of them.
type Heal struct {
	Round  coordinator.Round
	Params wire.Hash
	From   []key.Public
}

// Save writes the checkpoint of an epoch. Elected says that the run relies on this member for it;
// others may keep one.
//
// Endings is how members continue from it; Known is false if this member could not find out. Its
// own next result would begin from the state Own, less what the slice of Settle has sent.
type Save struct {
	Epoch       coordinator.Epoch
	Round       coordinator.Round
	Params      wire.Hash
	Elected     bool
	Known       bool
	Endings     []Ending
	Own, Settle wire.Hash
}

// Forget drops commitments and payloads of rounds before Before.
type Forget struct{ Before coordinator.Round }

// Retain names what the driver keeps and serves until the next Retain, although it has moved on:
// the parameters and optimizer states with these hashes, and the commitments to these shares,
// although Forget named their rounds. Mine are the shares in whose check or dispute this member has
// a part; arguments about others can go.
//
// Assignments are the spans of these shares, for peers that lack them.
type Retain struct {
	Blobs        []wire.Hash
	Shares, Mine []Share
	Assignments  []Assignment
}

// Assignment is the spans of a share, under their batch.Hash.
type Assignment struct {
	Hash  wire.Hash
	Spans []batch.Span
}

func (h Retain) equal(o Retain) bool {
	same := func(a, b Assignment) bool { return a.Hash == b.Hash }
	return slices.Equal(h.Blobs, o.Blobs) && slices.Equal(h.Shares, o.Shares) && slices.Equal(h.Mine, o.Mine) && slices.EqualFunc(h.Assignments, o.Assignments, same)
}

// Keep writes down what it takes to argue about this member's own share that is checked, so that a
// crash loses no dispute. It may be deleted once Retain no longer names the share in Mine.
type Keep struct{ Kept }

// Expelled ends this member's part in the run: it was convicted.
type Expelled struct{ Conviction dispute.Conviction }

// Note reports something that a person should know.
type Note struct{ Text string }

func (Submit) action()         {}
func (Train) action()          {}
func (CancelTraining) action() {}
func (Commit) action()         {}
func (Republish) action()      {}
func (AskCommitments) action() {}
func (AskSpans) action()       {}
func (FetchPayload) action()   {}
func (Apply) action()          {}
func (Heal) action()           {}
func (Save) action()           {}
func (Forget) action()         {}
func (Retain) action()         {}
func (Keep) action()           {}
func (Expelled) action()       {}
func (Note) action()           {}
