package solana

import (
	"github.com/entrain-network/entrain/chain/solana/units"
	"github.com/entrain-network/entrain/coordinator"
)

// What the network takes, in lamports, of which 1,000,000,000 are a SOL.
const (
	SignatureFee = 5000 // for each signature of a transaction
	rentBytes    = 128  // that an account counts besides its data
	rentOfByte   = 6960 // that frees a byte of any rent
)

// Rent returns the lamports that an account of n bytes must hold.
func Rent(n uint64) uint64 { return (rentBytes + n) * rentOfByte }

// AccuserLamports is what a member must have to accuse another one: the rent of the longest
// evidence and of its judgement, which comes back, and a margin for fees.
const AccuserLamports = (2*rentBytes+coordinator.EvidenceBytesMax+4096+WorkBytes)*rentOfByte + 20_000_000

// MemberLamports is what a member must have to begin: the rent of its addresses and of an account
// for its tokens, and the fees of a thousand transactions.
const MemberLamports = (2*rentBytes+2400)*rentOfByte + 1000*SignatureFee

// Transactions returns how many transactions a message of n bytes takes: those that write it into a
// buffer, if it is long, and the one that applies it.
func Transactions(n int) uint64 {
	if n <= WritePart {
		return 1
	}
	return uint64((n+WritePart-1)/WritePart) + 1
}

// ReportUnits bounds the compute units of a witness's report in a run with some members.
// TestCostsOnSolana compares it, and CloseUnits, with what it measures.
func ReportUnits(members uint64) uint64 { return units.Report(members) }

// CloseUnits bounds the compute units of the end of a round, in all its transactions, as package
// units has it.
func CloseUnits(members uint64, l coordinator.Limits, c coordinator.Config) uint64 {
	return units.Close(members, &l, &c)
}

// Ticks returns how many ticks usually end a round of some members, besides the message that begins
// to.
func Ticks(members uint64, l coordinator.Limits, c coordinator.Config) uint64 {
	return units.Ticks(members, &l, &c)
}

// CommitUnits bounds those of a miner's commitment, nearly all of which check its signature.
const CommitUnits = 100_000

// Asked returns the compute units that ledger/solana asks for a message that took alone when it was
// tried by itself. A message before it in the block may make it dearer: one that joins, ends a
// phase or, in a large run, begins or continues a closing.
func Asked(alone uint64) uint32 {
	if alone > 300_000 {
		return UnitsMax
	}
	return uint32(2*alone + 100_000)
}
