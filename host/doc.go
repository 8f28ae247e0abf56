// Package host is the state machine of a chain that trains models: the coordinators of all runs,
// their specs, who may take part in them, the addresses of their participants, and who has which of
// the chain's tokens. Replicas that execute the same blocks have the same state.
//
// A Host knows neither how blocks are ordered nor where they are kept. That is up to a ledger:
// ledger/mem in memory, for simulation and tests; ledger/comet on a BFT chain. The package is
// replicated (see package wire), so that other chains can run it too.
//
// # Transactions
//
// All integers are little endian; Var and String are a U32 length and that number of bytes (see
// package wire).
//
//	tx         = String chain | 32 sender | U64 nonce | U64 expires | U8 kind | body | 64 signature
//	CreateRun  = kind 1: coordinator.Limits | coordinator.Config | Var spec
//	Announce   = kind 2: String run | U8 count | count × String address
//	RunMessage = kind 3: String run | U64 tokens | String pool that pays, or none | Var message
//	Transfer   = kind 4: 32 to | U64 tokens
//	CreatePool = kind 5: String name | U16 commission | U16 own part | U64 least |
//	                     U8 count | count × 32 worker
//	Lend       = kind 6: String pool | U64 tokens
//	Collect    = kind 7: String pool
//	ClosePool  = kind 8: String pool
//	ClaimFor   = kind 9: String run | 32 member
//	Admit      = kind 10: String run | U8 listed |
//	                      U16 count | count × 32 added | U16 count | count × 32 removed
//	Delegate   = kind 11: String run | 32 owner | U64 expires | 64 signature
//	Revoke     = kind 12: String run | 32 node
//	Stake      = kind 13: 32 replica | U64 tokens | 32 chance | 64 consent
//	Vote       = kind 14: 32 replica | U8 seated
//	Leave      = kind 15: 32 replica
//	Require    = kind 16: String run | String release
//	CloseRun   = kind 17: String run
//	SetName    = kind 18: String run | String name | String team
//	Sight      = kind 19: 32 genesis | U64 number | U8 count | count × 32 hash
//
// The signature covers all bytes before it, in the domain "entrain/tx/2" (see package key). Expires
// is in milliseconds since 1970. For example, the announcement of no addresses for run "a" on chain
// "c":
//
//	01 00 00 00 63 | sender | nonce | expires | 02 | 01 00 00 00 61 | 00 | signature
//
// A transaction counts at most once: see NoncesKept and TxLifetimeMs. One that is malformed,
// meant for another chain, wrongly signed, expired or replayed changes nothing. One that is
// refused for another reason, such as by the coordinator, uses up its nonce; otherwise anyone
// could send it again once the reason is gone. The host remembers the outcomes of the last
// NoncesKept transactions of a key.
//
// # Blocks
//
// Host.Begin opens a block and ticks every run. The block's time becomes the chain's, unless that
// would set it back. Host.Deliver executes a transaction. Host.Commit ends the block and returns
// the hash of the state, the Merkle root over
//
//	genesis | mark | nonces and names | root of 256 buckets of purses | pools | replicas |
//	root of the runs, in order of names | receipts of closed runs
//
// A run's leaf has its name, height and time of its last change, and the hashes of its state, spec,
// addresses, admission and history. The path to the root proves each part: see RunProof, OpenPurse,
// OpenPools, OpenReplicas. The mark is height, time and seed of the last block that changed any
// other leaf. So a block that changes nothing changes no hash, and CometBFT, which makes a block to
// prove each new hash, comes to rest.
//
// # Names
//
// A key that the chain knows may have a name, and belong to a team (SetName). They are for people:
// nothing is decided by them. They are unique, and so is what they look like; the table is bounded,
// and the names of keys that have left become free: each block looks at one. A name says who took
// it first, not who somebody is: whatever shows it shows the key too.
//
// # Replicas
//
// The replicas of the chain are part of its state: see Stake, Vote and Leave. The host decides the
// weight of each replica's votes on blocks; the consensus engine reads it after each block. The
// engine names in Block.Guilty the replicas that were shown to have voted twice.
//
// # The clock
//
// A run may count its windows by the blocks of another chain, Bittensor's (Config.Clock). Replicas
// whose operators name a node of that chain name its newest final blocks (Sight). A block that
// replicas with more than two thirds of the power name alike is agreed on. Clocked runs see its
// number as their height, and its hash enters their seeds, beside the chain's own. clock.StandsMs
// says what they do without. Times and deadlines stay the chain's own.
//
// # Tokens
//
// The genesis says how many tokens exist and who has them; their number never changes. They lie
// in purses, one for each key, in pools, in the escrow of runs, and behind replicas. A Transfer
// moves tokens between purses. A RunMessage brings tokens to a run, as a member's stake or for
// the treasury, if the run's coordinator accepts the message. State.Payout of the coordinator
// says what a message pays out and to whom. After every transaction the host compares what each
// run holds with what its coordinator accounts for, and the sum of all tokens with the supply. A
// difference would be a fault in these rules that no replica can repair: the host panics.
//
// A new purse starts with at least a 2^26th of the supply, and no payment leaves less in a purse,
// except nothing; see PursesMax. A claim whose payee would begin with less is refused; it can be
// repeated when more is due.
//
// A pool lets lenders share the stake, the risk and the pay of an operator's machines. What was
// lent can only become stake of members whom one of the runs in the pool's terms pays at the pool's
// address (PoolAddress), to which no secret key is known. ClaimFor lets anyone have such a member
// paid. Lending ends at the first stake. From then on all income is shared in proportion to what
// was lent: free of commission until it equals what was lent, less the operator's commission
// afterwards. Shares are exact: what a lender was paid and is due is its part of all that was ever
// shared, rounded down once. Slashed stake is the lenders' loss. Half of it rewards the member that
// showed the offence, and the rest goes to the run's treasury, which pays for work as the run's
// owner configured. So an operator in league with both could take all of it: CreatePool.Runs tells
// lenders whose treasuries these are. Where the owners are honest, an operator in league with the
// member that convicts its own gains nothing with a CreatePool.OwnBP of 5,000 or more, since others
// cannot lend more than the operator itself.
//
// # Admission
//
// The owner of a run can restrict it to a list of keys (Admit). The host then refuses the
// messages Join, Ready and RegisterValidator of other keys. A listed key can let nodes work for
// it: it signs a certificate for a node's key, over String chain | String run | 32 owner | 32
// node | U64 expires in the domain "entrain/delegation/1", and the node brings it to the chain
// (Delegate). Until it expires or is revoked, the node may take part if its owner may, and its
// Join names the owner as payee. A member that loses the right to take part is withdrawn at once,
// in the block of the cause.
//
// The owner can also name the oldest release of the program that takes part (Require). The programs
// compare their own version with it.
//
// # The end of a run
//
// The owner of a run pays a deposit for its place (Host.RunDeposit). When the run has finished, by
// its last step or by the owner's coordinator.End, and all that it owes is certain, CloseRun pays
// members, validators and, with the rest of the treasury and the deposit, the owner. Only a Receipt
// remains. Without the owner the chain ends a run in which nothing has changed for RunIdleMs, and
// closes it after the same time. The chain does not use a closed run's name again while it keeps
// the receipt or a pool's terms name the run.
//
// # Referees
//
// A run with verification needs a referee for its disputes, which the host makes from the run's
// spec; see Rules. Without one, the host refuses to create the run.
//
// # Chance
//
// A coordinator's Env.Seed is a hash of the block's seed, its height and the run's name. The caller
// of Begin provides the block's seed. In ledger/comet it follows from verifiable random values of
// all proposers so far (see package chance). A proposer has one such value for a block, and can
// withhold it but not choose it. With a single replica, its operator knows all seeds in advance.
//
// # Limits of this version
//
// Transactions cost no tokens, so only bounds (limit.go) and the limits of the API hold off a
// flood. On a chain without tokens, and whose genesis names no creators of runs, a run costs
// nothing either: strangers can fill the table for RunIdleFreeMs at a time.
package host
