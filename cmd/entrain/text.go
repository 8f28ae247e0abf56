package main

import (
	"fmt"
	"strconv"
	"time"
)

// How numbers are shown to people.

// bytesText is a number of bytes with a decimal unit.
func bytesText(n uint64) string {
	const unit = 1000
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	x, prefix := float64(n)/unit, 0
	for x >= unit && prefix < 4 {
		x /= unit
		prefix++
	}
	return fmt.Sprintf("%.1f %cB", x, "kMGTP"[prefix])
}

// thousands is a number with its thousands apart: 12,345.
func thousands(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// minutes is a duration as minutes and seconds.
func minutes(d time.Duration) string {
	s := int(d.Round(time.Second).Seconds())
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// short is the beginning of a hash or key, enough for people to tell two apart.
func short(hash string) string {
	if len(hash) > 12 {
		return hash[:12]
	}
	return orDash(hash)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func percent(part, of uint64) uint64 {
	if of == 0 {
		return 0
	}
	return part * 100 / of
}
