package view

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// byteUnits are the units that ParseBytes takes; where two end alike, the longer comes first.
var byteUnits = []struct {
	name  string
	bytes float64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}, {"", 1}}

// ParseBytes reads a number of bytes, such as 500000, 64kB, 8GB or 2GiB; 0 is none.
func ParseBytes(s string) (uint64, error) {
	for _, u := range byteUnits {
		digits, ok := strings.CutSuffix(s, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
		if err != nil || !(n > 0) || n*u.bytes < 1 || n*u.bytes > math.MaxInt64/2 {
			break
		}
		return uint64(n * u.bytes), nil
	}
	return 0, fmt.Errorf("%q is not a number of bytes such as 500000, 64kB, 8GB or 2GiB", s)
}

// ByteCount is the value of a flag: a number of bytes, such as 500000, 64kB or 2GiB. 0 is none.
type ByteCount uint64

// Set is part of a flag's value.
func (b *ByteCount) Set(s string) error {
	n, err := ParseBytes(s)
	*b = ByteCount(n)
	return err
}

// String is part of a flag's value.
func (b *ByteCount) String() string {
	if *b == 0 {
		return ""
	}
	return Bytes(uint64(*b))
}

// Type is part of a flag's value.
func (b *ByteCount) Type() string { return "bytes" }

// ParsePercent reads a percentage of at most two decimals, in basis points.
func ParsePercent(s string) (uint16, error) {
	whole, decimals, _ := strings.Cut(strings.TrimSuffix(s, "%"), ".")
	n, err := strconv.ParseUint(whole+(decimals + "00")[:2], 10, 16)
	if err != nil || whole == "" || len(decimals) > 2 || n > 10_000 {
		return 0, fmt.Errorf("%q: want a percentage of 0 to 100, with at most two decimals", s)
	}
	return uint16(n), nil
}

// BasisPoints writes basis points as a percentage.
func BasisPoints(n uint16) string {
	text := strings.TrimRight(fmt.Sprintf("%d.%02d", n/100, n%100), "0")
	return strings.TrimSuffix(text, ".") + " %"
}
