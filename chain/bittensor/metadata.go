package bittensor

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/crypto/blake2b"
)

// metadata is what a runtime says about itself, version 14 of the format: the numbers of its calls,
// how the keys of its storage are hashed, and what its transactions carry. See
// https://docs.rs/frame-metadata, module v14.
type metadata struct {
	types      []typeDef
	pallets    map[string]*pallet
	byIndex    map[uint8]*pallet
	extensions []extension
	address    string // the name of the type by which transactions name their signer
	events     uint64 // the type of System.Events
}

type pallet struct {
	name, prefix        string
	calls, errors       uint64
	hasCalls, hasErrors bool
	storage             map[string]item
	index               uint8
}

type item struct {
	hashers   []uint8
	byDefault []byte
	value     uint64
}

type extension struct {
	name              string
	extra, additional uint64
}

// The kinds of types.
const (
	composite = iota
	variant
	sequence
	array
	tuple
	primitive
	compact
	bitSequence
)

type typeDef struct {
	kind     uint8
	path     string // its last part
	params   map[string]uint64
	fields   []uint64 // of a composite or tuple
	variants map[uint8]option
	elem     uint64 // of a sequence, array or compact
	length   uint32 // of an array
	size     int    // of a primitive, in bytes; 0 is a string
}

type option struct {
	name   string
	names  []string // of its fields
	fields []uint64
}

// primitives are the sizes of bool, char, str, u8 to u256 and i8 to i256.
var primitives = [...]int{1, 4, 0, 1, 2, 4, 8, 16, 32, 1, 2, 4, 8, 16, 32}

func parseMetadata(b []byte) (*metadata, error) {
	r := &reader{b: b}
	if magic, version := r.u32(), r.u8(); magic != 0x6174656d || version != 14 {
		return nil, fmt.Errorf("the runtime describes itself in version %d of the format; 14 is known", version)
	}
	m := &metadata{pallets: map[string]*pallet{}, byIndex: map[uint8]*pallet{}}
	for i := range r.count() {
		if id := r.compact(); id != uint64(i) {
			return nil, errors.New("the runtime's types are not numbered in order")
		}
		m.types = append(m.types, r.typeDef())
	}
	for range r.count() {
		p := r.pallet()
		m.pallets[p.name], m.byIndex[p.index] = p, p
	}
	extrinsic := r.compact()
	r.u8()
	for range r.count() {
		m.extensions = append(m.extensions, extension{r.str(), r.compact(), r.compact()})
	}
	if r.err != nil {
		return nil, fmt.Errorf("the runtime's description: %w", r.err)
	}
	if at, ok := m.of(extrinsic).params["Address"]; ok {
		m.address = m.of(at).path
	}
	if p := m.pallets["System"]; p != nil {
		m.events = p.storage["Events"].value
	}
	return m, nil
}

// of returns a type, or the empty tuple if there is none of that number.
func (m *metadata) of(id uint64) typeDef {
	if id >= uint64(len(m.types)) {
		return typeDef{kind: tuple}
	}
	return m.types[id]
}

func (r *reader) docs() {
	for range r.count() {
		r.str()
	}
}

func (r *reader) maybe() (uint64, bool) {
	if r.u8() == 0 {
		return 0, false
	}
	return r.compact(), true
}

func (r *reader) maybeString() string {
	if r.u8() == 0 {
		return ""
	}
	return r.str()
}

func (r *reader) fields() (names []string, types []uint64) {
	for range r.count() {
		names = append(names, r.maybeString())
		types = append(types, r.compact())
		r.maybeString()
		r.docs()
	}
	return names, types
}

func (r *reader) typeDef() typeDef {
	t := typeDef{params: map[string]uint64{}}
	for range r.count() {
		t.path = r.str()
	}
	for range r.count() {
		name := r.str()
		if id, ok := r.maybe(); ok {
			t.params[name] = id
		}
	}
	t.kind = r.u8()
	switch t.kind {
	case composite:
		_, t.fields = r.fields()
	case variant:
		t.variants = map[uint8]option{}
		for range r.count() {
			o := option{name: r.str()}
			o.names, o.fields = r.fields()
			t.variants[r.u8()] = o
			r.docs()
		}
	case array:
		t.length = r.u32()
		t.elem = r.compact()
	case sequence, compact:
		t.elem = r.compact()
	case tuple:
		for range r.count() {
			t.fields = append(t.fields, r.compact())
		}
	case primitive:
		n := r.u8()
		if int(n) >= len(primitives) {
			r.err = errShort
			return t
		}
		t.size = primitives[n]
	case bitSequence:
		r.compact()
		r.compact()
	default:
		r.err = errShort
	}
	r.docs()
	return t
}

func (r *reader) pallet() *pallet {
	p := &pallet{name: r.str(), storage: map[string]item{}}
	if r.u8() == 1 {
		p.prefix = r.str()
		for range r.count() {
			name := r.str()
			r.u8() // whether it has a default
			var it item
			if r.u8() == 1 {
				it.hashers = r.bytes()
				r.compact()
			}
			it.value = r.compact()
			it.byDefault = r.bytes()
			r.docs()
			p.storage[name] = it
		}
	}
	p.calls, p.hasCalls = r.maybe()
	r.maybe() // events
	for range r.count() {
		r.str()
		r.compact()
		r.bytes()
		r.docs()
	}
	p.errors, p.hasErrors = r.maybe()
	p.index = r.u8()
	return p
}

// call returns the two bytes that name a call, written PALLET.CALL.
func (m *metadata) call(palletName, name string) ([]byte, error) {
	if p := m.pallets[palletName]; p != nil && p.hasCalls {
		for i, o := range m.of(p.calls).variants {
			if o.name == name {
				return []byte{p.index, i}, nil
			}
		}
	}
	return nil, fmt.Errorf("the chain's runtime has no %s.%s", palletName, name)
}

// key returns where an item of the storage lies, and the value that it has if nothing lies there.
func (m *metadata) key(palletName, name string, args ...[]byte) (at string, byDefault []byte, err error) {
	p := m.pallets[palletName]
	if p == nil {
		return "", nil, fmt.Errorf("the chain's runtime has no %s", palletName)
	}
	it, ok := p.storage[name]
	if !ok || len(it.hashers) != len(args) {
		return "", nil, fmt.Errorf("the chain's runtime has no %s.%s by %d keys", palletName, name, len(args))
	}
	k := twox(twox(nil, []byte(p.prefix), 2), []byte(name), 2)
	for i, arg := range args {
		switch it.hashers[i] {
		case 0: // Blake2_128
			k = blake(k, arg, 16)
		case 1: // Blake2_256
			k = blake(k, arg, 32)
		case 2: // Blake2_128Concat
			k = append(blake(k, arg, 16), arg...)
		case 3: // Twox128
			k = twox(k, arg, 2)
		case 4: // Twox256
			k = twox(k, arg, 4)
		case 5: // Twox64Concat
			k = append(twox(k, arg, 1), arg...)
		case 6: // Identity
			k = append(k, arg...)
		default:
			return "", nil, fmt.Errorf("the keys of %s.%s are hashed in an unknown way", palletName, name)
		}
	}
	return "0x" + hex.EncodeToString(k), it.byDefault, nil
}

// twox appends n words of xxHash64, with the seeds 0 to n-1.
func twox(dst, b []byte, n uint64) []byte {
	for seed := range n {
		d := xxhash.NewWithSeed(seed)
		_, _ = d.Write(b) // never fails
		dst = binary.LittleEndian.AppendUint64(dst, d.Sum64())
	}
	return dst
}

func blake(dst, b []byte, size int) []byte {
	h, err := blake2b.New(size, nil)
	if err != nil {
		panic(err)
	}
	_, _ = h.Write(b) // never fails
	return h.Sum(dst)
}

// skip reads a value of a type without keeping it. depth bounds types within types, and the reader
// the work.
func (m *metadata) skip(r *reader, id uint64, depth int) {
	t := m.of(id)
	if r.work++; depth == 0 || r.work > workMax {
		r.err = errShort
	}
	if r.err != nil {
		return
	}
	each := func(n int) {
		for range n {
			if m.skip(r, t.elem, depth-1); r.err != nil {
				return
			}
		}
	}
	switch t.kind {
	case variant:
		o, ok := t.variants[r.u8()]
		if !ok {
			r.err = errShort
		}
		t.fields = o.fields
		fallthrough
	case composite, tuple:
		for _, f := range t.fields {
			m.skip(r, f, depth-1)
		}
	case sequence:
		each(r.count())
	case array:
		each(int(t.length))
	case primitive:
		if t.size == 0 {
			r.bytes()
		} else {
			r.take(t.size)
		}
	case compact:
		r.wide()
	case bitSequence:
		r.take(int(min(r.compact(), answerMax)+7) / 8)
	}
}

// workMax bounds the values that skip reads from one answer.
const workMax = 1 << 22

// wide skips a compact number of any size.
func (r *reader) wide() {
	if len(r.b) > 0 && r.b[0]&3 == 3 {
		r.take(int(r.u8()>>2) + 4)
		return
	}
	r.compact()
}

// empty reports whether values of a type surely take no bytes. depth bounds types within types.
func (m *metadata) empty(id uint64, depth int) bool {
	t := m.of(id)
	if depth == 0 || t.kind != composite && t.kind != tuple {
		return false
	}
	for _, f := range t.fields {
		if !m.empty(f, depth-1) {
			return false
		}
	}
	return true
}

// outcome reads the events of a block and returns how its transaction of the given number ended:
// nil, or a *Refusal.
func (m *metadata) outcome(events []byte, number uint32) error {
	record := m.of(m.of(m.events).elem)
	if record.kind != composite || len(record.fields) != 3 {
		return errors.New("the runtime's events are of an unknown form")
	}
	r := &reader{b: events}
	for range r.count() {
		ours := r.u8() == 0 && r.u32() == number // applying a transaction
		event := r.b
		m.skip(r, record.fields[1], 64)
		r.take(32 * r.count()) // topics
		if r.err != nil {
			return fmt.Errorf("the block's events: %w", r.err)
		}
		if p := m.byIndex[event[0]]; !ours || p == nil || p.name != "System" {
			continue
		}
		own := m.of(record.fields[1]).variants[event[0]].fields
		if len(own) != 1 || len(event) < 2 {
			continue
		}
		switch o := m.of(own[0]).variants[event[1]]; {
		case o.name == "ExtrinsicSuccess":
			return nil
		case o.name == "ExtrinsicFailed" && len(o.fields) > 0:
			return m.refusal(o.fields[0], &reader{b: event[2:]})
		}
	}
	return errors.New("the block does not say how the transaction ended")
}

// refusal reads the error of a failed transaction.
func (m *metadata) refusal(id uint64, r *reader) error {
	e := &Refusal{Pallet: "System", Name: m.of(id).variants[r.u8()].name}
	if e.Name == "Module" {
		if p := m.byIndex[r.u8()]; p != nil && p.hasErrors {
			e.Pallet, e.Name = p.name, m.of(p.errors).variants[r.u8()].name
		}
	}
	return e
}

// Refusal is the error with which a runtime ended a transaction.
type Refusal struct{ Pallet, Name string }

// Error names the refusal, and says what to do about those that users meet.
func (e *Refusal) Error() string {
	s := "the chain refused it: " + e.Pallet + "." + e.Name
	if hint := hints[e.Name]; hint != "" {
		s += "; " + hint
	}
	return s
}

var hints = map[string]string{
	"RegistrationDisabled":             "the subnet takes no registrations",
	"SubNetRegistrationDisabled":       "the subnet takes no registrations",
	"HotKeyAlreadyRegisteredInSubNet":  "nothing to do",
	"HotKeyNotRegisteredInSubNet":      "register the hotkey first",
	"HotKeyNotRegisteredInNetwork":     "register the hotkey first",
	"NotRegistered":                    "register the hotkey first",
	"AccountNotAllowedCommit":          "register the hotkey first",
	"NetworkDoesNotExist":              "there is no such subnet; check --netuid",
	"SubNetworkDoesNotExist":           "there is no such subnet; check --netuid",
	"SubnetNotExists":                  "there is no such subnet; check --netuid",
	"MechanismDoesNotExist":            "there is no such subnet; check --netuid",
	"SettingWeightsTooFast":            "the subnet's rate limit; try again after some blocks",
	"CommittingWeightsTooFast":         "the subnet's rate limit; try again after some blocks",
	"TooManyUnrevealedCommits":         "the hotkey has committed to weights ten times in this epoch; try again in the next",
	"IncorrectCommitRevealVersion":     "the chain wants weights encrypted by other rules; install a newer program",
	"CommitRevealDisabled":             "the subnet no longer wants weights hidden; try again",
	"TooManyRegistrationsThisBlock":    "try again in the next block",
	"TooManyRegistrationsThisInterval": "try again later",
	"CommitmentSetRateLimitExceeded":   "the subnet's rate limit; try again after some blocks",
	"SpaceLimitExceeded":               "the subnet's rate limit; try again after some blocks",
	"NotEnoughStakeToSetWeights":       "the hotkey needs more stake to set weights",
	"NeuronNoValidatorPermit":          "the hotkey has no validator's permit on this subnet",
	"NoValidatorPermit":                "the hotkey has no validator's permit on this subnet",
	"CommitRevealEnabled":              "the subnet wants weights committed before they are shown",
	"NotEnoughBalanceToStake":          "the account lacks tokens",
	"WeightVecLengthIsLow":             "the subnet wants weights for more hotkeys (min_allowed_weights)",
	"MaxWeightExceeded":                "the subnet bounds the share of one hotkey (max_weight_limit)",
	"IncorrectNetuid":                  "there is no such subnet; check --netuid",
	"IncorrectWeightVersionKey":        "the subnet wants other software; see its version key",
}
