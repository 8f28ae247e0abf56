package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// byteCount is a flag of so many bytes, such as 500000, 64kB, 8GB or 2GiB. 0 is none.
type byteCount uint64

// byteUnits are the units a byteCount takes, the longer of two that end alike first.
var byteUnits = []struct {
	name  string
	bytes float64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}, {"", 1}}

// Set is part of pflag.Value.
func (b *byteCount) Set(s string) error {
	for _, u := range byteUnits {
		digits, ok := strings.CutSuffix(s, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
		if err != nil || !(n > 0) || n*u.bytes < 1 || n*u.bytes > math.MaxInt64/2 {
			break
		}
		*b = byteCount(n * u.bytes)
		return nil
	}
	return fmt.Errorf("%q is no number of bytes such as 500000, 64kB, 8GB or 2GiB", s)
}

// String is part of pflag.Value.
func (b *byteCount) String() string {
	if *b == 0 {
		return ""
	}
	return bytesText(uint64(*b))
}

// Type is part of pflag.Value.
func (b *byteCount) Type() string { return "bytes" }
