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
//	RunMessage = kind 3: String run | U64 tokens | String pool they come from, empty for the sender's own | Var message
//	Transfer   = kind 4: 32 to | U64 tokens
//	CreatePool = kind 5: String name | U16 commission | U16 own part | U64 least | U8 count | count × 32 worker
//	Lend       = kind 6: String pool | U64 tokens
//	Collect    = kind 7: String pool
//	ClosePool  = kind 8: String pool
//	ClaimFor   = kind 9: String run | 32 member
//	Admit      = kind 10: String run | U8 listed | U16 count | count × 32 added | U16 count | count × 32 removed
//	Delegate   = kind 11: String run | 32 owner | U64 expires | 64 signature
//	Revoke     = kind 12: String run | 32 node
//	Stake      = kind 13: 32 replica | U64 tokens | 32 chance | 64 consent
//	Vote       = kind 14: 32 replica | U8 seated
//	Leave      = kind 15: 32 replica
//
// The signature is over all before it, in the domain "entrain/tx/2" (see package key). Expires is in milliseconds since
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
//	genesis | mark | nonces | root of 256 buckets of purses | pools | replicas | root of the runs, in order of names
//
// A run's leaf has its name, the height of its last change, and the hashes of its state, spec, addresses, admission and history.
// Each part can be proven by the way to the root: see RunProof, OpenPurse, OpenPools, OpenReplicas. The mark is height, time
// and seed of the last block that changed any other leaf: a block that changes nothing changes no hash, and CometBFT, which
// makes a block to prove each new hash, comes to rest.
//
// # Replicas
//
// Who keeps the chain is part of its state: see Stake, Vote and Leave. The host says whose votes have which weight; what
// orders blocks is told after each block, and tells in Block.Guilty who was shown to have voted twice.
//
// # Tokens
//
// The genesis says how many tokens there are and who has them; there are never more or fewer. They lie in purses, one for
// each key, in pools, and in the escrow of runs. A Transfer moves them between purses. A RunMessage brings tokens to a run,
// as the sender's stake, somebody else's, or for the treasury, if the run's coordinator accepts the message; the coordinator
// says in State.Payout what a message pays out and to whom. After every transaction the host compares what each run holds
// with what its coordinator accounts for, and the sum of all with the supply. A difference would be a fault in these rules,
// and no replica goes on from it: the host panics.
//
// A purse that is not there yet begins with, and none is left with less than, a 2^26th of the supply, except nothing; see
// PursesMax. A claim whose payee would begin with less is refused, and can be made when there is more.
//
// A pool lets lenders share the stake, the risk and the pay of an operator's machines. What was lent can only become stake
// of members whom the run pays at the pool's address (PoolAddress), to which nobody has the secret; ClaimFor lets anybody
// have such a member paid. Lending ends at the first stake. From then on all that comes in is shared by what was lent: the
// first as much as was lent for nothing, the rest less the operator's commission. Shares are exact: what a lender was paid
// and is due is its part of all that was ever shared, rounded down once. Slashed stake is the lenders' loss. Half of it is
// the reward of whoever convicted the member, and an operator in league with that one could take it, to lose his own part
// of the stake: with a CreatePool.OwnBP of 5,000 or more it gains nothing by that, since others cannot lend more than itself.
//
// # Admission
//
// The owner of a run may restrict it to a list of keys (Admit). Of others, the messages Join, Ready and RegisterValidator are refused:
// they do not enter an epoch. A listed key may let others work for it: it signs a certificate for a node's key, over String chain |
// String run | 32 owner | 32 node | U64 expires in the domain "entrain/delegation/1", and the node brings it to the ledger
// (Delegate). Until it expires or is revoked the node may take part if its owner may, and its Join names the owner as who is
// paid. Who loses the right to take part is withdrawn at once, in the block of the cause.
//
// The owner may also say which release of the program is the oldest that takes part (Require). Programs compare themselves.
//
// # Referees
//
// A run with verification needs a referee for its disputes, which the host makes of the run's spec; see Referees. A host
// without, or whose factory knows none for the spec, refuses to create the run.
//
// # Chance
//
// A coordinator's Env.Seed is a hash of the block's seed, its height and the run's name. The block's seed is what the host
// of Host gives it; in ledger/comet it follows from verifiable random values of all proposers so far (see package chance), of
// which each has one for a block, and can withhold but not choose it. With a single replica, its operator knows all seeds.
//
// # Limits of this version
//
// Transactions cost no tokens, so a flood is held off only by bounds (limit.go) and by the limits of the API they come in
// through. The genesis may name the keys that are allowed to create runs; runs are never removed.
package ledger
