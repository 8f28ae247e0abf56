package data

import (
	"strings"
)

// PlainName derives a data set's name from a file's name: "Isaac.Newton-Opticks.txt" becomes
// "isaac.newton-opticks.txt".
func PlainName(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, s)
	s = strings.TrimLeft(s, ".-")
	if s == "" {
		return "data"
	}
	return s[:min(len(s), nameBytesMax)]
}
