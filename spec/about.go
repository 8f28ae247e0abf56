package spec

import (
	"fmt"
	"net/url"
	"strings"
	"unicode"
)

// About tells people what a run is for. Nothing is computed from it.
type About struct {
	// Description tells what is trained and why, in at most 2,000 bytes.
	Description string `toml:"description,omitempty" json:"description,omitempty"`
	// License is that of the model, such as Apache-2.0, in at most 64 bytes.
	License string `toml:"license,omitempty" json:"license,omitempty"`
	// Links are at most 8 addresses, https:// or http://.
	Links []string `toml:"links,omitempty" json:"links,omitempty"`
}

// The most bytes of the texts in About, and the most links.
const (
	descriptionMax = 2000
	licenseMax     = 64
	linkMax        = 256
	linksMax       = 8
)

// check returns what is wrong, each fault starting with a key. The texts reach terminals and pages.
func (a *About) check() (faults []error) {
	if a == nil {
		return nil
	}
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if len(a.Description) > descriptionMax || !printable(strings.ReplaceAll(a.Description, "\n", " ")) {
		fault("description: want at most %d bytes of text without control characters, it has %d", descriptionMax, len(a.Description))
	}
	if len(a.License) > licenseMax || !printable(a.License) {
		fault("license: want one line of at most %d bytes", licenseMax)
	}
	if len(a.Links) > linksMax {
		fault("links: there are %d, at most %d are allowed", len(a.Links), linksMax)
	}
	for i, l := range a.Links {
		u, err := url.Parse(l)
		if err != nil || len(l) > linkMax || !printable(l) || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil {
			fault("links[%d]: %q: want https://HOST/PATH of at most %d bytes", i, l[:min(len(l), linkMax)], linkMax)
		}
	}
	return faults
}

func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}
