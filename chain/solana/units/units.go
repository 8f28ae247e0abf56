// Package units bounds the compute units that the end of a round takes on Solana. The program
// refuses runs by it, and clients ask for as many. TestCostsOnSolana in coordinator compares the
// bounds with what it measures.
package units

import (
	"math/bits"

	"github.com/entrain-network/entrain/coordinator"
)

// Max is the most that a transaction may take.
const Max = 1_400_000

// Close bounds the units of the report after which a round ends and the next begins, with some
// members: whether all results are accepted, or none is and all members are dropped. Members may
// state any speeds: where checks go by them, each may look at all members.
func Close(members uint64, l *coordinator.Limits, c *coordinator.Config) uint64 {
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

// Fits reports whether the end of a round of some members surely fits a transaction. A run whose
// rounds cannot end would never go on, and keep its members' stakes.
func Fits(members uint64, l *coordinator.Limits, c *coordinator.Config) bool {
	return Close(members, l, c) <= Max-100_000
}
