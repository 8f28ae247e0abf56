package bucket

import (
	"fmt"
	"strings"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// Kind is the type of an object. The numbers appear in envelopes and do not change.
type Kind uint8

// The kinds of objects. The package comment gives the contents of each and what its content hash
// covers.
const (
	KindCommitment Kind = 1
	KindReveal     Kind = 2
	KindState      Kind = 3
	KindIndex      Kind = 4
	KindPart       Kind = 5
	KindScore      Kind = 6
	KindLack       Kind = 7
	KindCopy       Kind = 8
)

// kinds are the names of kinds in paths.
var kinds = [...]string{KindCommitment: "commitment", KindReveal: "reveal", KindState: "state", KindIndex: "index", KindPart: "part", KindScore: "score", KindLack: "lack", KindCopy: "copy"}

// Valid reports whether k is a known kind.
func (k Kind) Valid() bool { return 0 < k && int(k) < len(kinds) }

// String returns the kind as it appears in paths.
func (k Kind) String() string {
	if !k.Valid() {
		return fmt.Sprintf("kind %d", uint8(k))
	}
	return kinds[k]
}

// parseKind is the inverse of String for valid kinds.
func parseKind(s string) (Kind, bool) {
	for k, name := range kinds {
		if name == s && name != "" {
			return Kind(k), true
		}
	}
	return 0, false
}

// Name identifies an object. Two valid objects with one name have the same content.
type Name struct {
	Run     wire.Hash         // coordinator.State.ID
	Window  coordinator.Round // the round
	Kind    Kind              // what it is
	Member  key.Public        // its author
	Content wire.Hash         // what must be in it; see the package comment
}

// Path returns the name as a key in a bucket, below the location's prefix.
func (n Name) Path() string {
	return n.Prefix() + n.Content.String()
}

// Prefix returns the common prefix of the paths of all objects of this run, window, kind and
// member.
func (n Name) Prefix() string {
	return fmt.Sprintf("%s%s/%s/", WindowPrefix(n.Run, n.Window), n.Kind, n.Member)
}

// String returns the path.
func (n Name) String() string { return n.Path() }

// RunPrefix returns the common prefix of the paths of all objects of a run.
func RunPrefix(run wire.Hash) string { return run.String() + "/" }

// WindowPrefix returns the common prefix of the paths of all objects of a window.
func WindowPrefix(run wire.Hash, window coordinator.Round) string {
	return fmt.Sprintf("%s/%010d/", run, window)
}

// ParseName is the inverse of Path: it accepts only what Path writes.
func ParseName(path string) (Name, error) {
	fail := func(what string) (Name, error) { return Name{}, fmt.Errorf("object name %.300q: %s", path, what) }
	parts := strings.SplitN(path, "/", 6)
	if len(parts) != 5 {
		return fail("it is not of the form run/window/kind/member/content")
	}
	var n Name
	var err error
	if n.Run, err = wire.ParseHash(parts[0]); err != nil {
		return fail("the run is not 64 hexadecimal digits")
	}
	window, ok := parseWindow(parts[1])
	if !ok {
		return fail("the window is not ten digits below 2^32")
	}
	n.Window = window
	if n.Kind, ok = parseKind(parts[2]); !ok {
		return fail("the kind of object is unknown")
	}
	if n.Member, err = key.ParsePublic(parts[3]); err != nil {
		return fail("the member is not 64 hexadecimal digits")
	}
	if n.Content, err = wire.ParseHash(parts[4]); err != nil {
		return fail("the content is not 64 hexadecimal digits")
	}
	return n, nil
}

// scoreContent returns the content in the name of a validator's notes.
func scoreContent(body []byte) wire.Hash { return wire.Sum(domain, body) }

// parseWindow reads ten digits.
func parseWindow(s string) (coordinator.Round, bool) {
	if len(s) != 10 {
		return 0, false
	}
	var v uint64
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
		v = 10*v + uint64(c-'0')
	}
	return coordinator.Round(v), v <= 1<<32-1
}
