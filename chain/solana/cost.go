package solana

import (
	"math/bits"
	"sort"

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
func ReportUnits(members uint64) uint64 { return 14_000 + 100*members }

// CloseUnits bounds the compute units of the report after which a round ends and the next begins,
// with some members: whether all results are accepted, or none is and all members are dropped.
// Members may state any speeds: where checks go by them, each may look at all members.
func CloseUnits(members uint64, l coordinator.Limits, c coordinator.Config) uint64 {
	each, speeds := uint64(650), c.Sharing == coordinator.SpeedShares
	if c.Overlap == 0 {
		each += 160
	}
	if c.Exchange == coordinator.Buckets {
		each += 120
	}
	if speeds {
		each += 300
	}
	if c.VerificationPercent > 0 {
		each += 350
		if speeds {
			each += 400 + 9*members
		}
	}
	units := 50_000 + each*members
	if v := uint64(l.Validators); v > 0 { // scores may be settled, too, which sorts members
		units += 10_000 + members*(500+360*v+180*uint64(bits.Len64(members)))
	}
	return units
}

// PlacesMax returns how many places for members a run may have. The program refuses more: a run
// whose round cannot end in one transaction would never go on, and keep its members' stakes.
func PlacesMax(l coordinator.Limits, c coordinator.Config) uint64 {
	return uint64(sort.Search(coordinator.MembersMax, func(n int) bool {
		return CloseUnits(uint64(n)+1, l, c) > UnitsMax-100_000
	}))
}

// CommitUnits bounds those of a miner's commitment, nearly all of which check its signature.
const CommitUnits = 100_000

// Asked returns the compute units that ledger/solana asks for a message that took some alone.
// Another one before it may join, or end a phase.
func Asked(units uint64) uint32 { return uint32(min(UnitsMax, 2*units+100_000)) }
