package host

import "github.com/entrain-network/entrain/coordinator"

// Limits on what a host takes from outside. All are part of consensus: replicas that differ in
// one would fork.
const (
	// ChainIDBytesMax is CometBFT's own limit on the name of a chain.
	ChainIDBytesMax = 50
	// RunNameBytesMax fits a run's name into a file name, a URL's path element and a line of a
	// table.
	RunNameBytesMax = 32
	// SpecBytesMax holds a run's TOML with room for comments; every replica keeps it forever.
	SpecBytesMax = 64 << 10
	// MessageBytesMax holds the largest message of a coordinator, the evidence of a dispute,
	// which is rare. A witness report has at most 260 KiB; with a few witnesses, 1 to 20 KiB.
	MessageBytesMax = coordinator.EvidenceBytesMax + 4<<10
	// TxBytesMax holds the largest body with its envelope.
	TxBytesMax = MessageBytesMax + 4<<10

	// TxLifetimeMs bounds how far a transaction's expiry lies after the chain's time, and so how
	// long the nonces of an idle key are kept. Ten minutes outlast an outage of the chain and a
	// clock that is some minutes wrong.
	TxLifetimeMs = 10 * 60 * 1000
	// NoncesKept is the number of a key's transactions whose outcome is remembered. A transaction
	// that others of its key overtake still counts if they are fewer than that.
	NoncesKept = 8
	// AccountsMax bounds the table of nonces (25 MB when full). Only keys that sent something
	// within the last TxLifetimeMs occupy it.
	AccountsMax = 1 << 16
	// WorkBitsMax bounds the work that a key without an account shows when the table fills up: some
	// seconds of one core.
	WorkBitsMax = 24
	// accountsAllMax bounds the table with the keys that find a place in it when strangers have
	// filled it; see Host.known.
	accountsAllMax = AccountsMax + PursesMax + RunsMax*coordinator.MembersMax

	// RunIdleMs is how long nothing changes in a run until it is ended, and, once it has finished,
	// closed: 30 days. RunIdleFreeMs is the same for a run that nobody has worked on, where anybody
	// can create one without a deposit: 2 days.
	RunIdleMs     = 30 * 24 * 3600 * 1000
	RunIdleFreeMs = 2 * 24 * 3600 * 1000
	// ClosedMax bounds the receipts of closed runs that a chain keeps (3 MB when full).
	ClosedMax = 1 << 14
	// RunsMax bounds the coordinators that every block ticks.
	RunsMax = 64
	// refereesMax bounds the runs with verification that a block creates or refuses: to make a
	// referee takes up to 300 ms and 150 MB, whether or not the specification is good.
	refereesMax = 4
	// StateBytesMax bounds the memory of all coordinators together, since every replica holds it
	// twice.
	StateBytesMax = 256 << 20
	// CreatorsMax bounds the genesis list of keys that may create runs.
	CreatorsMax = 256

	// SupplyMax bounds the tokens of a chain, so that no sum of them overflows, with room to
	// double.
	SupplyMax = 1 << 60
	// AllocationsMax bounds the genesis list of accounts with tokens, which has to fit into its
	// file.
	AllocationsMax = 4096
	// PursesMax bounds the keys that have tokens (10 MiB when full). Filling the table takes a
	// 256th of the supply.
	PursesMax = 1 << 18
	// PoolsMax bounds the pools. Filling the table takes deposits of a 4096th of the supply.
	PoolsMax = 256
	// LendersMax bounds the lenders of a pool, WorkersMax the keys besides its operator that may
	// stake from it.
	LendersMax = 256
	WorkersMax = 16
	// PoolRunsMax bounds the runs that a pool may stake in.
	PoolRunsMax = 16
	// PoolQuietMs is how long a pool must not have staked before its lenders can close it: 30
	// days.
	PoolQuietMs = 30 * 24 * 3600 * 1000

	// NameBytesMax bounds the name of a key and of a team, NamesMax their number (1.5 MB when full).
	NameBytesMax = 24
	NamesMax     = 1 << 14

	// AllowedMax bounds the keys on a run's list, AdmitKeysMax the keys that one transaction adds
	// or removes.
	AllowedMax   = 1 << 14
	AdmitKeysMax = 1 << 10
	// ProgramBytesMax bounds the release that a run's owner requires.
	ProgramBytesMax = 32
	// DelegationsMax bounds the nodes of a run that work for others, DelegationsPerOwner the
	// nodes of one owner.
	DelegationsMax      = 1 << 12
	DelegationsPerOwner = 64
	// DelegationMsMax bounds the time of a delegation to 30 days, and so the use of a stolen node
	// key.
	DelegationMsMax = 30 * 24 * 3600 * 1000

	// SeatsMax bounds the replicas that vote on blocks, whose signatures every client checks.
	// ReplicasMax includes candidates and replicas that have left.
	SeatsMax    = 100
	ReplicasMax = 256
	// UnbondMs is how long the stake behind a replica stays locked after it has left: 7 days, in
	// which two of its votes for one height count as evidence. A client that checks the chain by
	// the replicas' signatures must look at it more often.
	UnbondMs = 7 * 24 * 3600 * 1000

	// AddrsMax is the number of addresses that a participant can announce: loopback, LAN and
	// public ones, over QUIC and TCP.
	AddrsMax = 8
	// AddrBytesMax holds a multiaddress through a relay.
	AddrBytesMax = 256
	// PendingPeersMax is the number of keys without membership whose addresses a run keeps, so
	// that newcomers are found before they join. The oldest are dropped first.
	PendingPeersMax = 64
)
