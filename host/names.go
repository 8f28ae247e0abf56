package host

import (
	"slices"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

// SetName gives the sender a name and a team, in place of those that it had; no name takes both
// away. Names and teams are of [NameValid] characters. A name that looks like another key's, or
// like a team, is refused, and so is a team that looks like a name or like another team. Anyone may
// belong to a team. Run names one in which the sender has a part; a sender with tokens needs none.
type SetName struct{ Run, Name, Team string }

// Profile is what a key is called, and its team.
type Profile struct {
	Key  key.Public `json:"key"`
	Name string     `json:"name"`
	Team string     `json:"team,omitempty"`
}

func (SetName) kind() uint8 { return kindSetName }

func (s SetName) append(dst []byte) []byte {
	return wire.AppendString(wire.AppendString(wire.AppendString(dst, s.Run), s.Name), s.Team)
}

// named is a profile with what its names look like.
type named struct {
	Profile
	look, teamLook string
}

func newNamed(p Profile) named { return named{p, looks(p.Name), looks(p.Team)} }

// names are what keys are called.
type names struct {
	list []named // in order of keys
	hash wire.Hash
	kept bool // whether hash is that of list
}

// NameValid reports whether a key or a team can be called so: 2 to NameBytesMax of the characters
// a-z, 0-9 and inner '-', and not only digits of a number or of a key.
func NameValid(s string) bool {
	if len(s) < 2 || len(s) > NameBytesMax || !RunNameValid(s) {
		return false
	}
	hex, decimal := true, true
	for i := range len(s) {
		hex = hex && (s[i] >= '0' && s[i] <= '9' || s[i] >= 'a' && s[i] <= 'f')
		decimal = decimal && s[i] >= '0' && s[i] <= '9'
	}
	return !decimal && !(hex && len(s) >= nameHexMin)
}

// nameHexMin is the number of digits from which hexadecimal ones may name a key.
const nameHexMin = 8

// looks returns a name as a reader in a hurry sees it: names that may be taken for each other look
// the same. Letters that look like two are spelled so.
func looks(name string) string {
	var b []byte
	for i := range len(name) {
		switch c := name[i]; c {
		case '-':
		case 'm':
			b = append(b, "rn"...)
		case 'w':
			b = append(b, "vv"...)
		case 'd':
			b = append(b, "cl"...)
		case '0':
			b = append(b, 'o')
		case '1', 'i':
			b = append(b, 'l')
		case '2':
			b = append(b, 'z')
		case '5':
			b = append(b, 's')
		case '8':
			b = append(b, 'b')
		case '9', 'q':
			b = append(b, 'g')
		default:
			b = append(b, c)
		}
	}
	return string(b)
}

func (n *names) find(k key.Public) (int, bool) {
	return slices.BinarySearchFunc(n.list, k, func(e named, k key.Public) int { return e.Key.Compare(k) })
}

// free returns nil if the key of e may be called so.
func (n *names) free(e named) error {
	if e.look == e.teamLook {
		return refuse(CodeName, "a team is not called as one of its members: ", quote(e.Team))
	}
	for _, o := range n.list {
		switch {
		case o.Key == e.Key:
		case o.look == e.look:
			return refuse(CodeName, quote(e.Name), " is taken, or looks like ", quote(o.Name))
		case o.look == e.teamLook:
			return refuse(CodeName, "team ", quote(e.Team), " looks like the name ", quote(o.Name))
		case o.teamLook == e.look:
			return refuse(CodeName, quote(e.Name), " looks like team ", quote(o.Team))
		case e.Team != "" && o.teamLook == e.teamLook && o.Team != e.Team:
			return refuse(CodeName, "team ", quote(e.Team), " looks like team ", quote(o.Team))
		}
	}
	return nil
}

// setName names a key that the chain knows: others could fill the table.
func (h *Host) setName(sender key.Public, s SetName) error {
	n := &h.names
	i, has := n.find(sender)
	switch {
	case s.Name == "" && s.Team == "":
		if has {
			n.list, n.kept = slices.Delete(n.list, i, i+1), false
		}
		return nil
	case !NameValid(s.Name), s.Team != "" && !NameValid(s.Team):
		return refuse(CodeName, quote(s.Name), ", team ", quote(s.Team), ": want 2 to ", NameBytesMax, " of a-z, 0-9 and inner '-', not only digits")
	case !h.known(sender, s):
		return refuse(CodeName, "only a key with tokens or a part in run ", quote(s.Run), " has a name: join one first")
	}
	e := newNamed(Profile{Key: sender, Name: s.Name, Team: s.Team})
	if err := n.free(e); err != nil {
		return err
	}
	switch {
	case has:
		n.list[i] = e
	case len(n.list) >= NamesMax:
		return refuse(CodeListFull, len(n.list), " names of ", NamesMax)
	default:
		n.list = slices.Insert(n.list, i, e)
	}
	n.kept = false
	return nil
}

// forgetName looks at one name a block, in turn, and takes it if the chain does not know the key
// any more. To look for a key in all runs costs milliseconds when they are full.
func (h *Host) forgetName() {
	n := &h.names
	if len(n.list) == 0 {
		return
	}
	i := int(h.height % uint64(len(n.list)))
	if !h.knownAnywhere(n.list[i].Key) {
		n.list, n.kept = slices.Delete(n.list, i, i+1), false
	}
}

// sum returns the hash of the list. Code that changes the list must set kept to false.
func (n *names) sum() wire.Hash {
	if !n.kept {
		n.hash, n.kept = wire.Sum("entrain/ledger/names", n.append(nil)), true
	}
	return n.hash
}

func (n *names) append(dst []byte) []byte {
	dst = wire.AppendU32(dst, uint32(len(n.list)))
	for _, e := range n.list {
		dst = wire.AppendString(wire.AppendString(append(dst, e.Key[:]...), e.Name), e.Team)
	}
	return dst
}

func parseNames(r *wire.Reader) names {
	count := r.U32()
	if count > NamesMax || uint64(count)*(32+4+2+4) > uint64(r.Len()) {
		r.Fail(wire.ErrTooLong)
		return names{}
	}
	var n names
	for range count {
		e := Profile{Key: readKey(r), Name: r.String(NameBytesMax), Team: r.String(NameBytesMax)}
		if r.Err() != wire.OK {
			return names{}
		}
		if k := len(n.list); !NameValid(e.Name) || e.Team != "" && !NameValid(e.Team) || k > 0 && n.list[k-1].Key.Compare(e.Key) >= 0 {
			r.Fail(wire.ErrNotCanonical)
			return names{}
		}
		n.list = append(n.list, newNamed(e))
	}
	return n
}

// show returns the profiles, in order of keys.
func (n *names) show() []Profile {
	list := make([]Profile, len(n.list))
	for i, e := range n.list {
		list[i] = e.Profile
	}
	return list
}

// ProveNames returns what keys are called, or nothing if that has the hash (NamesHash) that the
// reader names, and the path to the hash of the chain's state.
func (h *Host) ProveNames(known wire.Hash) []byte {
	_, leaves := h.roots()
	var list []byte
	if h.names.sum() != known {
		list = h.names.append(nil)
	}
	b := wire.AppendHash(wire.AppendVar(nil, list), h.accounts.sum())
	return appendWay(b, merkle.Prove(leaves, leafKeys))
}

// NamesHash returns the hash of profiles that OpenNames returned.
func NamesHash(list []Profile) wire.Hash {
	n := names{list: make([]named, len(list))}
	for i, p := range list {
		n.list[i].Profile = p
	}
	return n.sum()
}

// OpenNames reads what ProveNames returned, with the hash of the chain's state that contains it.
// Known are the profiles whose hash the reader named, if any.
func OpenNames(b []byte, known []Profile) ([]Profile, wire.Hash, error) {
	r := wire.NewReader(b)
	list := r.Var(4 + NamesMax*(32+2*(4+NameBytesMax)))
	nonces, way := r.Hash(), readWay(&r)
	if len(list) == 0 && r.Done() == wire.OK {
		root, err := climbTop(keysLeaf(nonces, NamesHash(known)), leafKeys, way)
		return known, root, err
	}
	body := wire.NewReader(list)
	n := parseNames(&body)
	err := r.Done().OrNil()
	if err == nil {
		err = body.Done().OrNil()
	}
	if err != nil {
		return nil, wire.Hash{}, failed("names: ", err)
	}
	root, err := climbTop(keysLeaf(nonces, n.sum()), leafKeys, way)
	return n.show(), root, err
}

// keysLeaf returns the leaf of what the chain keeps of keys.
func keysLeaf(nonces, names wire.Hash) wire.Hash {
	return wire.Sum("entrain/ledger/keys", nonces[:], names[:])
}
