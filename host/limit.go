package host

import "github.com/entrain-network/entrain/coordinator"

// Limits on what a ledger takes from outside. All are part of consensus: replicas that differ in one would fork.
const (
	// ChainIDBytesMax is CometBFT's own limit on the name of a chain.
	ChainIDBytesMax = 50
	// RunNameBytesMax fits a run's name into a file name, a URL's path element and a line of a table.
	RunNameBytesMax = 32
	// SpecBytesMax holds a run's TOML with room for comments; the spec is paid for by every replica, for ever.
	SpecBytesMax = 64 << 10
	// MessageBytesMax holds the largest message of a coordinator, the evidence of a dispute, which is rare. Witness reports
	// have at most 260 KiB, and with more than a few witnesses 1 to 20 KiB.
	MessageBytesMax = coordinator.EvidenceBytesMax + 4<<10
	// TxBytesMax holds the largest body with its envelope.
	TxBytesMax = MessageBytesMax + 4<<10

	// TxLifetimeMs bounds how far ahead of the ledger's time a transaction may expire, and with it how long the nonces of
	// an idle key are kept. Ten minutes outlast an outage of the ledger and a clock that is some minutes wrong.
	TxLifetimeMs = 10 * 60 * 1000
	// NoncesKept is how many of a key's transactions are remembered with their outcome. Transactions of one key that
	// travel side by side may be overtaken by so many others and still count.
	NoncesKept = 8
	// AccountsMax bounds the table of nonces (some 25 MB when full). Only keys that sent something within the last
	// TxLifetimeMs occupy it.
	AccountsMax = 1 << 16

	// RunsMax bounds the coordinators that every block ticks.
	RunsMax = 64
	// StateBytesMax bounds the memory of all coordinators together, since every replica holds it twice.
	StateBytesMax = 256 << 20
	// CreatorsMax bounds the genesis list of keys that may create runs.
	CreatorsMax = 256

	// SupplyMax bounds the tokens of a chain, so that no sum of some of them overflows, with room to double.
	SupplyMax = 1 << 60
	// AllocationsMax bounds the genesis list of accounts with tokens, which has to fit into its file.
	AllocationsMax = 4096
	// PursesMax bounds the keys that have tokens (10 MiB when full). To fill the table takes a 256th of the supply.
	PursesMax = 1 << 18
	// PoolsMax bounds the pools. To fill the table takes deposits of a 4096th of the supply.
	PoolsMax = 256
	// LendersMax bounds the lenders of a pool, and WorkersMax those that may stake from it besides its operator.
	LendersMax = 256
	WorkersMax = 16
	// PoolQuietMs is how long nothing must have been staked from a pool for its lenders to be able to close it: 30 days.
	PoolQuietMs = 30 * 24 * 3600 * 1000

	// AllowedMax bounds the keys on a run's list, and AdmitKeysMax those that one transaction adds or removes.
	AllowedMax   = 1 << 14
	AdmitKeysMax = 1 << 10
	// ProgramBytesMax bounds the release that a run's owner requires.
	ProgramBytesMax = 32
	// DelegationsMax bounds the nodes of a run that work for others, DelegationsPerOwner those of one owner.
	DelegationsMax      = 1 << 12
	DelegationsPerOwner = 64
	// DelegationMsMax is how long a delegation lasts at most, 30 days: a stolen node key is worth no more.
	DelegationMsMax = 30 * 24 * 3600 * 1000

	// SeatsMax bounds the replicas that vote on blocks, whose signatures every client checks, and ReplicasMax those with
	// candidates and with those that have left.
	SeatsMax    = 100
	ReplicasMax = 256
	// UnbondMs is how long what is behind a replica stays locked when it has left: 7 days, in which two votes of it for one
	// height count as evidence. Who checks the chain by its validators' signatures must have looked at it within less.
	UnbondMs = 7 * 24 * 3600 * 1000

	// AddrsMax is how many addresses a participant may announce: loopback, LAN and public ones, over QUIC and TCP.
	AddrsMax = 8
	// AddrBytesMax holds a multiaddress through a relay.
	AddrBytesMax = 256
	// PendingPeersMax is how many addresses of keys that are not members a run keeps, so that newcomers are found before
	// they are let in. The oldest gives way.
	PendingPeersMax = 64
)
