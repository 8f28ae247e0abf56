package view

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/entrain-network/entrain/coordinator"
)

// The way in which people see numbers.

// Bytes returns a number of bytes with a decimal unit.
func Bytes(n uint64) string {
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

// Thousands returns a number with separated thousands: 12,345.
func Thousands(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Minutes returns a duration as minutes and seconds.
func Minutes(d time.Duration) string {
	s := int(d.Round(time.Second).Seconds())
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// Lasts returns a duration without the smaller units that are zero.
func Lasts(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Standing returns a member's status for people: nobody waits in a run that has finished.
func Standing(phase, status string) string {
	if phase == coordinator.Finished.String() && status == coordinator.StatusWaiting.String() {
		return "done"
	}
	return status
}

// Short returns the beginning of a hash or key, enough for people to tell two apart.
func Short(hash string) string {
	if len(hash) > 12 {
		return hash[:12]
	}
	return OrDash(hash)
}

// OrDash returns a text, or a dash for none.
func OrDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// Percent returns a part in whole percents; 0 of nothing.
func Percent(part, of uint64) uint64 {
	if of == 0 {
		return 0
	}
	return part * 100 / of
}

// Tokens returns an amount of tokens with its unit.
func Tokens(n uint64) string {
	if n == 1 {
		return "1 token"
	}
	return Thousands(n) + " tokens"
}
