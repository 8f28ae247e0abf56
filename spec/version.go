package spec

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Version is a release of the program: major, minor and patch. It ignores pre-release and build
// suffixes.
type Version [3]uint64

// ParseVersion parses "v1.2.3" or "1.2.3", with or without a pre-release or build suffix.
func ParseVersion(s string) (v Version, err error) {
	text, _, _ := strings.Cut(strings.TrimPrefix(s, "v"), "+")
	text, _, _ = strings.Cut(text, "-")
	parts := strings.Split(text, ".")
	if len(parts) != len(v) {
		return v, fmt.Errorf("%q is not a version such as v1.2.3", s)
	}
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 10, 32)
		if err != nil || p != strconv.FormatUint(n, 10) {
			return Version{}, fmt.Errorf("%q is not a version such as v1.2.3", s)
		}
		v[i] = n
	}
	return v, nil
}

// Compare compares two versions; the older is less.
func (v Version) Compare(o Version) int {
	return cmp.Or(cmp.Compare(v[0], o[0]), cmp.Compare(v[1], o[1]), cmp.Compare(v[2], o[2]))
}

// String returns v in a form that ParseVersion accepts.
func (v Version) String() string { return fmt.Sprintf("v%d.%d.%d", v[0], v[1], v[2]) }
