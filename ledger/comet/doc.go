// Package comet is a ledger that no single machine has to be trusted with: the host.Host as an application of CometBFT,
// a Byzantine-fault-tolerant chain, in one process with it, and an API over which clients reach it.
//
//	comet.Init(dir, comet.Options{Chain: "my-chain"})    // once: settings, genesis, keys
//	replica, err := comet.Open(dir, log, referees)
//	err = replica.Run(ctx)                               // until ctx ends
//
//	client, err := comet.NewClient("my-chain", []string{replica.Endpoint()}, log)   // a ledger.Ledger
//
// By default a chain has one replica, which listens on the loopback interface only. InitAll founds one of several. Others
// follow it when they are set up with its genesis file, its address among their peers, and endpoints to fetch the state from;
// they vote on blocks when they are given a seat (see ledger.Vote). docs/operators.md is for who runs one.
//
// # A replica's directory
//
//	chain.json            addresses, time between blocks, how much is kept; may be edited
//	genesis.json          what all replicas of the chain share
//	keys/validator.json   the key that votes: whoever has it can forge a chain with one validator
//	keys/node.json        the key that names the replica to others
//	keys/chance.json      the key of its random values
//	history/              the states that each run was in, one file a run
//	headers/              those by which old headers lead to new ones
//	data/                 CometBFT's: blocks, its own state, the log of votes, the last vote
//	state/                ours: the ledger's state as of two blocks
//
// # Durability
//
// CometBFT writes a block to disk, synced, before the application executes it, and a transaction is acknowledged after.
// The ledger's state is written every SnapshotBlocks blocks and at the end; a replica that was killed at any moment finds
// some recent state whole, and replays the blocks since. Blocks older than KeepBlocks are deleted, never those since the
// older of the two states. A transaction that only waited for its block dies with the process, so clients send it again
// until it is in one; a second sending of what is in a block already is answered with the first one's outcome.
//
// If a disk is full, or something cannot be written for another reason, the replica halts: Run returns the error. Nothing
// that was acknowledged is lost.
//
// # Time
//
// Blocks are made when there are transactions, when a deadline of some run is over, and after each that changed the state. A
// block's time is what its proposer says in the beacon, its first transaction, or CometBFT's, the time of the votes for the
// block before, if that is later. An empty block changes no hash; see package ledger.
//
// # Proofs
//
// The hash of the state after a block is in the header of the next. What a block did is shown when that one is there: to
// watchers, and to who waits for a transaction. Clients check it by headers that replicas with more than two thirds of the
// weight have signed, beginning with one that they believe; see ledger.Anchor and Client.Remember.
//
// # The API
//
// HTTP on one port. Every answer names the chain in the header Entrain-Chain; a request that names another one there gets
// status 421. An error is {"error": "..."}.
//
//	GET  /v1/status                     Status
//	GET  /v1/runs                       [ledger.RunStatus], in order of names
//	GET  /v1/runs/RUN                   RunStatus
//	GET  /v1/runs/RUN/state             the state's bytes; its height and hash in Entrain-Height and Entrain-Hash
//	GET  /v1/runs/RUN/watch?since=H&trusted=T   a stream of frames, see below, from the state at height H on, with headers from T on
//	GET  /v1/runs/RUN/history?from=N    the states it was in, ledger.Change, from number N on, at most 4096
//	GET  /v1/genesis                    the chain's genesis file
//	GET  /v1/headers?height=H           a header with its signatures, CometBFT's LightBlock; by default the newest that proves a state
//	GET  /v1/proven/...?trusted=T       runs/RUN, runs/RUN/spec, runs/RUN/peers, runs/RUN/admission, accounts/KEY, pools, replicas, snapshot:
//	                                    U32 count | count × Var header | U64 height of the one that proves it | what is asked for, with its proof
//	GET  /v1/runs/RUN/spec              the bytes published with the run
//	GET  /v1/runs/RUN/peers             [ledger.Peer], in order of keys
//	GET  /v1/runs/RUN/admission         ledger.Admission: who may take part
//	GET  /v1/accounts/KEY               Account
//	GET  /v1/pools                      the names of all pools, in order
//	GET  /v1/pools/POOL                 ledger.Pool
//	POST /v1/txs                        the body is a transaction; answers a Receipt: 200 accepted, 422 refused, 202 not yet in a block
//
// A stream begins at once, and never falls silent for long: if nothing changes, a beat comes every five seconds. Integers
// are little endian.
//
//	frame = U32 length of what follows | beat, state or header
//	beat  = U8 0 | U64 height | U64 time                                           of the last block
//	header = U8 2 | a header with its signatures, before the state that it proves
//	state = U8 1 | U64 height of the header that proves it | ledger.RunProof | U64 since | U64 height | U64 time | 32 hash | U32 size | U32 count | count × page
//	page  = U32 index | the 1024 bytes of the state at 1024·index (the last page may be shorter)
//
// A state frame turns the state that was current at height since into the one at height, whose hash it carries: the root
// over the state's pages, coordinator.State.Hash. With since 0 it has every page. Pages come in order. A client that keeps
// up gets what changed, typically a few pages; one that does not gets several changes in one frame.
package comet
