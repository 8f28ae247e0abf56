package spec

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Version is a release of the program: major, minor and patch. What a build adds to that does not
// count.
type Version [3]uint64

// ParseVersion reads "v1.2.3" or "1.2.3", with or without a pre-release or build after it.
func ParseVersion(s string) (v Version, err error) {
	text, _, _ := strings.Cut(strings.TrimPrefix(s, "v"), "+")
	text, _, _ = strings.Cut(text, "-")
	parts := strings.Split(text, ".")
	if len(parts) != len(v) {
		return v, fmt.Errorf("%q is no version such as v1.2.3", s)
	}
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 10, 32)
		if err != nil || p != strconv.FormatUint(n, 10) {
			return Version{}, fmt.Errorf("%q is no version such as v1.2.3", s)
		}
		v[i] = n
	}
	return v, nil
}

// Compare orders versions by age.
func (v Version) Compare(o Version) int {
	return cmp.Or(cmp.Compare(v[0], o[0]), cmp.Compare(v[1], o[1]), cmp.Compare(v[2], o[2]))
}

// String is as ParseVersion reads it.
func (v Version) String() string { return fmt.Sprintf("v%d.%d.%d", v[0], v[1], v[2]) }
