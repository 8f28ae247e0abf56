package market

import (
	"time"

	"github.com/entrain-network/entrain/coordinator"
)

// stepTime is how long a miner computes its part of a window whose sequences are divided equally.
const stepTime = 2 * time.Second

// takes returns how long a miner computes a number of sequences. Where all are equally fast and
// have equal shares the time does not depend on the number, so that measurements do not either.
func (c *Config) takes(who Miner, sequences uint32) time.Duration {
	if c.Sharing == coordinator.EqualShares && who.Slow == 0 {
		return stepTime
	}
	return stepTime * time.Duration(max(who.Slow, 1)) * time.Duration(sequences) / time.Duration(c.Share)
}

// claims is what a miner says when it joins: 0 where nobody asks.
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
