// Package units bounds the compute units that messages take on Solana. The program divides the end
// of a round among transactions by it. TestCostsOnSolana in coordinator compares the bounds with
// what it measures.
package units

import "github.com/entrain-network/entrain/coordinator"

// Max is the most that a transaction may take.
const Max = 1_400_000

// Close bounds the units that the end of a round and the beginning of the next take with some
// members, in all transactions together: whether all results are accepted, or none is and all
// members are dropped, and whatever speeds they state.
func Close(members uint64, l *coordinator.Limits, c *coordinator.Config) uint64 {
	each, speeds := uint64(750), c.Sharing == coordinator.SpeedShares
	if c.Overlap == 0 {
		each += 160
	}
	if c.Exchange == coordinator.Buckets {
		each += 120
	}
	if speeds {
		each += 1050
	}
	if c.VerificationPercent > 0 {
		each += 160 + 60*uint64(c.VerificationPercent)
		if speeds {
			each += 1200
		}
	}
	units := 50_000 + each*members
	if l.Validators > 0 {
		units += settle(members, l)
	}
	return units
}

// settle bounds what it takes to settle a period's scores, in all transactions together.
func settle(members uint64, l *coordinator.Limits) uint64 {
	return 300_000 + members*(1100+370*uint64(l.Validators))
}

// Ticks returns how many Ticks usually end a round, besides the message that begins to.
func Ticks(members uint64, l *coordinator.Limits, c *coordinator.Config) uint64 {
	return Close(members, l, c) / tickWork
}

// tickWork is how much of a closing a Tick does: with what it takes besides, it fits a transaction.
const tickWork = 1_100_000

// Report bounds the units of a witness's report in a run with some members.
func Report(members uint64) uint64 { return 14_000 + 100*members }

// Work returns how much a message of a run with some members does of a closing, so that it fits a
// transaction.
func Work(members uint64, m coordinator.Message) uint64 {
	switch m.(type) {
	case coordinator.Tick:
		return tickWork
	case coordinator.Evidence:
		return 1
	}
	return max(1, 1_000_000-min(1_000_000, Report(members)))
}
