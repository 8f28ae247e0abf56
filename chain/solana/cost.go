package solana

import "github.com/entrain-network/entrain/coordinator"

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

// Transactions returns how many transactions a message of n bytes takes: those that write it into a
// buffer, if it is long, and the one that applies it.
func Transactions(n int) uint64 {
	if n <= WritePart {
		return 1
	}
	return uint64((n+WritePart-1)/WritePart) + 1
}

// ReportUnits bounds the compute units of a witness's report in a run with some members and without
// checks of results, CloseUnits those of one after which a round ends and the next begins.
// TestCostsOnSolana compares them with what it measures.
func ReportUnits(members uint64) uint64 { return 14_000 + 128*members }
func CloseUnits(members uint64) uint64  { return 50_000 + 770*members }

// drawUnits bounds what drawing checks of results adds to the end of a round, for each member: most
// at 25 % of the results, where nearly all members get one to make.
const drawUnits = 800

// SettleUnits bounds what settling a period of scores adds to the end of a round.
func SettleUnits(members, validators uint64) uint64 {
	if validators == 0 {
		return 0
	}
	return 10_000 + members*(550+350*validators)
}

// roundUnits is what the end of a round may take, with a margin: a run whose round cannot end in
// one transaction would never go on, and keep its members' stakes.
const roundUnits = UnitsMax - 100_000

// PlacesMax returns how many places for members a run may have, with some validators, and checks of
// results or not. The program refuses more.
func PlacesMax(validators uint64, checks bool) uint64 {
	end := func(members uint64) uint64 {
		units := CloseUnits(members) + SettleUnits(members, validators)
		if checks {
			units += drawUnits * members
		}
		return units
	}
	return (roundUnits - end(0)) / (end(1) - end(0))
}

// CommitUnits bounds those of a miner's commitment, nearly all of which check its signature.
const CommitUnits = 100_000

// Asked returns the compute units that ledger/solana asks for a message that took some alone.
// Another one before it may join, or end a phase.
func Asked(units uint64) uint32 { return uint32(min(UnitsMax, 2*units+100_000)) }
