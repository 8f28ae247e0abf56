package node

import (
	"context"
	"time"

	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/node/blobs"
	"github.com/entrain-network/entrain/node/gossip"
	"github.com/entrain-network/entrain/p2p"
)

// exchange is how a member gets what others made, and they get what it made. In a run of peers they
// talk to each other (peers); in a run of buckets every member writes to its own bucket and reads
// those of the others (buckets). All methods are called on the loop and return at once. They call
// back on the loop too, never before they have returned.
//
// Nothing that comes is believed. A commitment counts by its signature and, in a run of buckets, by
// its ID on the ledger; a payload by the root in its commitment; a model by the hash that the run
// agreed on.
type exchange interface {
	// publish shows this member's commitment of a round, as gossip carries it, to some members, or
	// to all if to is nil. It may be called again.
	publish(round coordinator.Round, a *gossip.Authored, to []key.Public)

	// askCommitments looks for commitments of others and passes those it finds to Node.received.
	askCommitments(a client.AskCommitments)

	// fetchPayload gets the bytes of a committed payload from a member that has them.
	fetchPayload(ctx context.Context, p *coming)

	// fetchModel gets the parameters with a hash. have is what the node holds, nil if it holds none.
	fetchModel(ctx context.Context, a client.Heal, have *blobs.Version, progress func(done, total uint64), done func(model fetched, err error))

	// addrs returns where this member can be reached, as the ledger announces it. connect takes the
	// addresses of all and returns to how many others there is a connection.
	addrs() []string
	connect(all []host.Peer) (linked int)

	// owes says what a member that leaves still does for the others, and how long that may take.
	owes() (text string, most time.Duration)

	close() error
}

// server is an exchange whose members serve each other what their shares begin from.
type server interface {
	// askSpans asks which sequences a member was given in a round that the state no longer has.
	askSpans(a client.AskSpans)

	// askUpdate asks witnesses for the update of an accepted set.
	askUpdate(a client.AskUpdate)

	// askHeld asks aggregators what they hold of a round's payloads, and askSlices which slices they
	// have summed. ask asks one peer for parts of payloads, or for many, which are not checked yet.
	askHeld(a client.AskHeld)
	askSlices(a client.AskSlices)
	ask(ctx context.Context, to key.Public, question []byte, done func(answer []byte, err error))

	// fetchBlob gets an optimizer state or parameters for a recomputation, or an update.
	fetchBlob(ctx context.Context, f p2p.Fetch, done func(data []byte, err error))
}

// asker is an exchange whose members may hold commitments that this one does not know it made.
type asker interface {
	// askOwn asks peers for this member's own commitments to a round and passes those it finds to
	// Node.received. heard reports whether any of them answered.
	askOwn(round coordinator.Round, member coordinator.Member, to []key.Public, done func(heard bool))
}

// publisher is an exchange whose members upload what others may need, for them to fetch later.
type publisher interface {
	// reveal uploads the slice of this member's result.
	reveal(a client.Reveal, body []byte, done func(error))

	// applied uploads what an accepted set made of the parameters.
	applied(a client.Apply, v *blobs.Version)

	// putModel uploads the parameters of an epoch's end, which do not change before done.
	putModel(round coordinator.Round, values []float32, within time.Duration, done func(error))

	// entered notes that a round has opened.
	entered(round coordinator.Round)
}

// fetched is a model that came from others. Its hash is not checked yet.
type fetched struct {
	make   func() []float32 // called off the loop
	source string           // for people
	safe   func()           // to be called once the model is saved; may be nil
}
