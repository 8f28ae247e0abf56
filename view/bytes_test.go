package view

import (
	"strings"
	"testing"
)

func TestNumbersOfBytes(t *testing.T) {
	for text, want := range map[string]uint64{"1": 1, "500000": 500000, "64kB": 64000, "2GiB": 2 << 30, "1.5 MB": 1500000, "7B": 7} {
		if got, err := ParseBytes(text); err != nil || got != want {
			t.Errorf("%s: got %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "0", "-1", "B", "much", "1e30", "NaN", "0.1", "5 XB", "InfGB"} {
		if got, err := ParseBytes(text); err == nil {
			t.Errorf("%q was taken for %d", text, got)
		}
	}
}

func TestPercentagesInBasisPoints(t *testing.T) {
	for text, want := range map[string]uint16{"0": 0, "5": 500, "12.5%": 1250, "0.01%": 1, "100%": 10000, "99.99": 9999} {
		got, err := ParsePercent(text)
		if err != nil || got != want {
			t.Errorf("%q: got %d, %v, want %d", text, got, err, want)
		}
		if again, err := ParsePercent(strings.ReplaceAll(BasisPoints(want), " ", "")); err != nil || again != want {
			t.Errorf("%d is written %q, which reads %d, %v", want, BasisPoints(want), again, err)
		}
	}
	for _, text := range []string{"", "%", ".5", "-1", "100.01", "1.234", "x", "5 %", "+5", "1e1"} {
		if got, err := ParsePercent(text); err == nil {
			t.Errorf("%q reads %d", text, got)
		}
	}
}
