// Package ledger is where coordinators live: a log of signed transactions that all replicas execute alike.
//
// Ledger is what a participant needs of it: to watch a run's state, to submit transactions, and to read a run's spec and
// the addresses of its participants. Host is the deterministic state machine behind every ledger; what is around it (who
// orders transactions, where they are kept) is in the packages below: ledger/mem for simulation and tests, ledger/comet
// for a BFT chain.
//
// # Transactions
//
// All integers are little endian; Var and String are a U32 length and so many bytes (see package wire).
//
//	tx         = String chain | 32 sender | U64 nonce | U64 expires | U8 kind | body | 64 signature
//	CreateRun  = kind 1: coordinator.Limits | coordinator.Config | Var spec
//	Announce   = kind 2: String run | U8 count | count × String address
//	RunMessage = kind 3: String run | Var message
//
// The signature is over all before it, in the domain "entrain/tx/1" (see package key). Expires is in milliseconds since
// 1970. For example, the announcement of no addresses for run "a" on chain "c":
//
//	01 00 00 00 63 | sender | nonce | expires | 02 | 01 00 00 00 61 | 00 | signature
//
// A transaction counts at most once: see NoncesKept and TxLifetimeMs. One that is malformed, meant for another chain,
// wrongly signed, expired or replayed changes nothing. One that is refused for another reason, such as by the coordinator,
// uses up its nonce, or else it could be sent again by anyone once the reason is gone. Who asks again what became of
// one of the last NoncesKept transactions of its key is told.
//
// # Blocks
//
// Host.Begin opens a block, and ticks every run. Its time becomes the ledger's, unless that would set it back. Host.Deliver
// executes a transaction. Host.Commit ends the block and returns the hash of the state, the merkle root over
//
//	hash of the genesis | hash of the nonces | for each run, in order of names: hash of name, state, spec and addresses
//
// which neither height nor time enter: a block that changes nothing changes no hash, and CometBFT, which makes a block to
// prove each new hash, comes to rest.
//
// # Chance
//
// A coordinator's Env.Seed is a hash of the block's seed, its height and the run's name. The block's seed is what the host
// of Host gives it; ledger/comet gives the hash of the block itself. Nobody knows it before the block is proposed; but
// who proposes may try several blocks (leave out or reorder transactions, shift the time a little) and propose the one
// whose seed suits it. With a single validator, its operator can thus steer who is elected, as far as trying hashes goes.
//
// # Limits of this version
//
// Transactions cost nothing, so a flood is held off only by bounds (limit.go) and by the limits of the API they come in
// through. The genesis may name the keys that are allowed to create runs; runs are never removed.
package ledger
