package market

import (
	"time"

	"github.com/entrain-network/entrain/coordinator"
)

// stepTime is the time in which a miner computes its share of a window that is divided equally.
const stepTime = 2 * time.Second

// takes returns the time in which a miner computes a number of sequences. If all are equally fast
// and have equal shares, it does not depend on the number, so measurements do not either.
func (c *Config) takes(who Miner, sequences uint32) time.Duration {
	if c.Sharing == coordinator.EqualShares && who.Slow == 0 {
		return stepTime
	}
	return stepTime * time.Duration(max(who.Slow, 1)) * time.Duration(sequences) / time.Duration(c.Share)
}

// claims returns the speed that a miner states when it joins, or 0 if the run does not use speeds.
func (c *Config) claims(who Miner) uint32 {
	if c.Sharing == coordinator.EqualShares {
		return 0
	}
	percent := uint64(who.Claims)
	if percent == 0 {
		percent = 100
	}
	second := uint64(c.Share) * sequence * uint64(time.Second) / uint64(stepTime)
	return uint32(min(percent*second/100/uint64(max(who.Slow, 1)), 1<<32-1))
}
