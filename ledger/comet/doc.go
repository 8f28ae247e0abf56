// Package comet is a ledger that needs no trust in any single machine: a host.Host as an
// application of CometBFT, a Byzantine-fault-tolerant chain, in one process with it, and an API
// for clients.
//
//	comet.Init(dir, comet.Options{Chain: "my-chain"})    // once: settings, genesis, keys
//	replica, err := comet.Open(dir, log, referees)
//	err = replica.Run(ctx)                               // until ctx ends
//
//	client, err := comet.NewClient("my-chain", []string{replica.Endpoint()}, log)
//	l := client.As(key)                                  // a ledger.Ledger
//
// By default a chain has one replica, which listens on the loopback interface only. InitAll
// founds a chain of several. Further replicas follow the chain when they are set up with its
// genesis file, the address of a replica, and endpoints to fetch the state from. They vote on
// blocks once they are given a seat (see host.Vote). Operators find more in docs/operators.md.
//
// # A replica's directory
//
//	chain.json            addresses, time between blocks, how much is kept; may be edited
//	genesis.json          shared by all replicas of the chain
//	keys/validator.json   the key that votes: its holder can forge a chain with one validator
//	keys/node.json        the key that identifies the replica to others
//	keys/chance.json      the key of its random values
//	history/              the states that each run was in, one file a run
//	headers/              the headers by which old headers lead to new ones
//	data/                 CometBFT's: blocks, its own state, the log of votes, the last vote
//	state/                ours: the host's state as of two blocks
//
// # Durability
//
// CometBFT writes a block to disk, synced, before the application executes it, and a transaction
// is acknowledged afterwards. The host's state is written every SnapshotBlocks blocks and at the
// end. A replica that was killed at any moment finds a recent state whole, and replays the blocks
// since. Blocks older than KeepBlocks are deleted, but never those since the older of the two
// states. A transaction that only waits for its block is lost with the process, so clients send
// it again until it is in one. A repeated transaction is answered with the first outcome.
//
// If a disk is full, or a write fails for another reason, the replica halts: Run returns the error.
// Nothing that was acknowledged is lost.
//
// # Time
//
// Blocks are made when there are transactions, when a deadline of a run has passed, and after
// each block that changed the state. A block's time is the one that its proposer put into the
// beacon, its first transaction, or CometBFT's, the time of the votes for the previous block, if
// that is later. An empty block changes no hash; see package host.
//
// # Proofs
//
// The hash of the state after a block is in the header of the next block. Watchers and senders
// learn what a block did when that header exists. Clients check it by headers that replicas with
// more than two thirds of the power have signed, starting with one that they believe; see
// ledger.Anchor and Client.Remember.
//
// # The API
//
// HTTP on one port. Every answer names the chain in the header Entrain-Chain. A request that names
// another chain there gets status 421. An error is {"error": "..."}.
//
//	GET  /v1/status                     ledger.Status
//	GET  /v1/runs                       [ledger.RunStatus], in order of names
//	GET  /v1/runs/RUN                   ledger.RunStatus
//	GET  /v1/runs/RUN/state             the state's bytes; headers Entrain-Height, Entrain-Hash
//	GET  /v1/runs/RUN/watch?since=H&trusted=T&packed=1&light=1&mark=M
//	                                    a stream of frames, see below, from the state at height H on,
//	                                    with headers from T on
//	GET  /v1/runs/RUN/history?from=N    its states, host.Change, from number N on, at most 4096
//	GET  /v1/genesis                    the chain's genesis file
//	GET  /v1/headers?height=H           a header with its signatures, CometBFT's LightBlock; by
//	                                    default the newest that proves a state
//	GET  /v1/proven/...?trusted=T       runs/RUN, runs/RUN/spec, runs/RUN/peers, runs/RUN/admission,
//	                                    accounts/KEY, pools, names (without the list if known=HASH is
//	                                    that of the names), closed, replicas, snapshot:
//	                                    U32 count | count × Var header | U64 height of the header
//	                                    that proves the answer | the answer with its proof
//	GET  /v1/runs/RUN/spec              the bytes published with the run
//	GET  /v1/runs/RUN/peers             [host.Peer], in order of keys
//	GET  /v1/runs/RUN/admission         host.Admission
//	GET  /v1/accounts/KEY               ledger.Account
//	GET  /v1/pools                      the names of all pools, in order
//	GET  /v1/closed                     the host.Receipt of each closed run, oldest first
//	GET  /v1/pools/POOL                 host.Pool
//	POST /v1/txs                        the body is a transaction; answers a Receipt: 200 accepted,
//	                                    422 refused, 202 not yet in a block
//
// A stream begins at once. If nothing changes, a beat comes every five seconds. Integers are little
// endian.
//
//	frame = U32 length of what follows | beat, state, header or packed
//	beat  = U8 0 | U64 height | U64 time                                           of the last block
//	header = U8 2 | a header with its signatures, before the state that it proves
//	state = U8 1 | U64 height of the header that proves it | host.RunProof | U64 since |
//	        U64 height | U64 time | 32 hash | U32 size | U32 count | count × page
//	packed = U8 3 | zstd of a state, if the request has packed=1 and that is smaller
//	page  = U32 index | the 1024 bytes of the state at 1024·index (the last page may be shorter)
//
// A state frame turns the state that was current at height since into the one at height, whose hash
// it carries: the root over the state's pages, coordinator.State.Hash. With since 0 it has every
// page. Pages come in order. A client that keeps up gets the changed pages, typically a few; a
// slower client gets several changes in one frame.
//
// With light=1 a watcher gets states without the filters of reports and the numbers of witnesses
// that hold results, as far as a page holds only these, and not each state: what begins or ends at
// once, other changes with it or after 30 seconds of a round, and 5 seconds at other times. Its
// frames are beats with 8 more bytes, headers and changes:
//
//	beat   = U8 0 | U64 height | U64 time | the first 8 bytes of host.RunProof.Peers
//	change = U8 4 | U64 since | U64 mark | coordinator.Limits if both are 0 | compressed content
//	content = U32 count | count × Var header | U64 height of the header that proves the state |
//	        host.RunProof | the change of the state, as package coordinator/change encodes it
//
// A change turns the state of height since into a newer one, whose height, time and hash are in its
// proof. With since 0 it is the change of a blank state. The mark says which header and proof came
// with the former, in 63 bits: the content is compressed with DEFLATE, and with the bytes of those
// two as its dictionary, because the next ones resemble them. The headers lead from that one to the
// one that proves the state. A client that has fallen behind gets the frames that it lacks, of the
// last 64, or else the whole light state; so does one whose mark the replica does not know. Frames
// are made once for all. A replica of a release before light watches sends what it sends others.
//
// With light=2 a watcher gets besides, of each round that is over and that the state has, what the
// filters of its reports can be made from again by those who know the commitments:
//
//	reports = U8 5 | compressed change.Reports, as package coordinator/change encodes it
//
// What the reports say is held is not in the state, so a replica that has started since lacks it.
// The hashes of the pages are proven by the change before, and the filters by them. A replica that
// does not know light=2 sends whole states.
package comet
