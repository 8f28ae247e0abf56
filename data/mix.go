package data

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/canonical"
	"github.com/entrain-network/entrain/data/order"
	"github.com/entrain-network/entrain/wire"
)

// A Mix is several data sets of one tokenizer that are trained on in proportion to weights. Its
// manifest takes the place of a set's, and the hash of its canonical bytes identifies the mix. Each
// set is in the subdirectory that bears its name:
//
//	{
//	  "version": 1,
//	  "name": "web-and-code",
//	  "mix": [
//	    {
//	      "set": "web",
//	      "weight": 3,
//	      "manifest": "..."
//	    },
//	    ...
//	  ]
//	}
//
// Let W be the sum of the weights w. Of every W sequences in a row exactly w come from each set, in
// an order within the W that the seed draws. Each set yields its own sequences as it does alone,
// every one once per pass, in an order from its own seed. Thus i and the weights determine the set
// and number of the i-th sequence in a few operations. A proof of a sequence (Set.Prove) holds the
// mix's manifest before the set's.
type Mix struct {
	Version    int         `json:"version"`
	Name       string      `json:"name"` // like a data set's
	Components []Component `json:"mix"`
}

// Component is a set of a mix.
type Component struct {
	Set      string    `json:"set"`      // the directory's name, like a data set's
	Weight   uint32    `json:"weight"`   // 1 to weightMax
	Manifest wire.Hash `json:"manifest"` // Manifest.Hash
}

// Bytes are the canonical bytes of m: JSON indented by two spaces, the fields in the order of the
// structs, and a newline.
func (m Mix) Bytes() []byte { return canonical.JSON(m) }

// Hash is the SHA-256 of Bytes.
func (m Mix) Hash() wire.Hash { return wire.SHA256(m.Bytes()) }

// isMix reports whether the bytes of a manifest are meant to describe a mix.
func isMix(b []byte) bool {
	var of struct {
		Mix json.RawMessage `json:"mix"`
	}
	return len(b) <= mixBytesMax && json.Unmarshal(b, &of) == nil && of.Mix != nil
}

// ParseMix reads canonical bytes. It refuses all others, and any mix that Check refuses.
func ParseMix(b []byte) (Mix, error) {
	return canonical.Parse[Mix](b, "manifest of a mix", mixBytesMax)
}

// Check returns what is wrong with m, or nil.
func (m Mix) Check() error {
	switch {
	case m.Version != Version:
		return fmt.Errorf("unknown version %d, want %d", m.Version, Version)
	case !plainName(m.Name):
		return fmt.Errorf("name %q is not made of 1 to %d lower-case letters, digits, '-', '_' and '.'", m.Name, nameBytesMax)
	case len(m.Components) == 0 || len(m.Components) > componentsMax:
		return fmt.Errorf("it has %d sets, want 1 to %d", len(m.Components), componentsMax)
	}
	seen := make(map[string]bool)
	for i, c := range m.Components {
		switch {
		case !plainName(c.Set):
			return fmt.Errorf("mix[%d]: %q is not the name of a directory made of lower-case letters, digits, '-', '_' and '.'", i, c.Set)
		case seen[c.Set]:
			return fmt.Errorf("mix[%d]: set %q is listed twice", i, c.Set)
		case c.Weight == 0 || c.Weight > weightMax:
			return fmt.Errorf("mix[%d]: weight %d is not in 1..%d", i, c.Weight, weightMax)
		}
		seen[c.Set] = true
	}
	return nil
}

// total returns the sum of the weights.
func (m Mix) total() uint64 {
	sum := uint64(0)
	for _, c := range m.Components {
		sum += uint64(c.Weight)
	}
	return sum
}

// at returns which set owns a place among total consecutive ones, and the place's rank within that
// set.
func (m Mix) at(place uint64) (set int, nth uint64) {
	for ; place >= uint64(m.Components[set].Weight); set++ {
		place -= uint64(m.Components[set].Weight)
	}
	return set, place
}

// pick returns the set and number of the i-th training sequence.
func (m Mix) pick(seed wire.Hash, i uint64) (set int, sequence uint64) {
	var of order.Mix
	for _, c := range m.Components {
		of = append(of, order.Component{Weight: c.Weight, Manifest: c.Manifest})
	}
	return of.Pick(seed, i)
}

// mixed is the state of a Set made of several.
type mixed struct {
	mix  Mix
	sets []*Set
}

// openMix opens the sets of a mix, each by open, and combines them.
func openMix(m Mix, o Options, open func(c Component, o Options) (*Set, error)) (*Set, error) {
	s := &Set{mixed: &mixed{mix: m}, seed: o.Seed, first: o.First}
	for i, c := range m.Components {
		of := o
		of.component, of.Seed, of.First = true, order.MixSeed(o.Seed, i), 0
		of.CacheBytes /= len(m.Components)
		set, err := open(c, of)
		if err != nil {
			s.Close()
			return nil, fmt.Errorf("set %q of the mix: %w", c.Set, err)
		}
		s.mixed.sets = append(s.mixed.sets, set)
	}
	manifests := make([]Manifest, len(s.mixed.sets))
	for i, set := range s.mixed.sets {
		manifests[i] = set.manifest
	}
	var err error
	if s.manifest, err = m.summary(manifests); err != nil {
		s.Close()
		return nil, err
	}
	s.heldOut.mixed = s.mixed
	return s, nil
}

// summary returns the mix as one data set: its name and hash, the common tokenizer, and the total
// sizes. It has no shards.
func (m Mix) summary(sets []Manifest) (Manifest, error) {
	sum := Manifest{Version: Version, Name: m.Name, Tokenizer: sets[0].Tokenizer, Vocab: sets[0].Vocab, Chat: sets[0].Chat, mix: m.Bytes()}
	for i, of := range sets {
		if of.Tokenizer != sum.Tokenizer || of.Vocab != sum.Vocab {
			return Manifest{}, fmt.Errorf("sets %q and %q of the mix have different tokenizers, %q and %q: prepare them with the same one",
				m.Components[0].Set, m.Components[i].Set, sum.Tokenizer.Name, of.Tokenizer.Name)
		}
		if of.Chat != sum.Chat {
			sum.Chat = "" // nothing says which one is the model's
		}
		sum.Masked = sum.Masked || of.Masked
		sum.TokenBytes = max(sum.TokenBytes, of.TokenBytes)
		sum.ShardTokens = max(sum.ShardTokens, of.ShardTokens)
		if sum.Tokens > math.MaxUint64-of.Tokens {
			return Manifest{}, errors.New("the sets of the mix have more tokens than can be counted")
		}
		sum.Tokens += of.Tokens
		sum.HeldOutTokens += of.HeldOutTokens
	}
	return sum, nil
}

// errNested refuses a mix within a mix.
var errNested = errors.New("it is a mix: name its sets instead")

// readMix reads the manifests of the sets of the mix in dir.
func readMix(dir string, b []byte) (Manifest, error) {
	m, err := ParseMix(b)
	if err != nil {
		return Manifest{}, fmt.Errorf("%q: %w", filepath.Join(dir, manifestFile), err)
	}
	var sets []Manifest
	for _, c := range m.Components {
		of, err := ReadManifest(filepath.Join(dir, c.Set))
		if err != nil {
			return Manifest{}, fmt.Errorf("set %q of the mix: %w", c.Set, err)
		}
		if of.mix != nil {
			return Manifest{}, fmt.Errorf("set %q of the mix: %w", c.Set, errNested)
		}
		if of.Hash() != c.Manifest {
			return Manifest{}, fmt.Errorf("set %q of the mix has hash %s, want %s", c.Set, of.Hash(), c.Manifest)
		}
		sets = append(sets, of)
	}
	return m.summary(sets)
}

// componentsOf returns the manifests of the sets of the mix in dir, keyed by the prefix of their
// file names, or a plain set's own manifest.
func componentsOf(dir string, m Manifest) (map[string]Manifest, error) {
	if m.mix == nil {
		return map[string]Manifest{"": m}, nil
	}
	mix, err := ParseMix(m.mix)
	if err != nil {
		return nil, err
	}
	sets := make(map[string]Manifest)
	for _, c := range mix.Components {
		if sets[c.Set+"/"], err = ReadManifest(filepath.Join(dir, c.Set)); err != nil {
			return nil, err
		}
	}
	return sets, nil
}

// len returns the number of distinct sequences in the proportions of the weights, given each set's
// number.
func (x *mixed) len(of func(*Set) uint64) uint64 {
	blocks := uint64(math.MaxUint64)
	for i, c := range x.mix.Components {
		blocks = min(blocks, of(x.sets[i])/uint64(c.Weight))
	}
	return blocks * x.mix.total()
}

// ahead tells each set which of its sequences are among the n starting at number first.
func (x *mixed) ahead(seed wire.Hash, first, n uint64) {
	from, to := make([]uint64, len(x.sets)), make([]uint64, len(x.sets))
	for i := first; i < first+n; i++ {
		set, k := x.mix.pick(seed, i)
		if from[set] == to[set] {
			from[set], to[set] = k, k
		}
		from[set], to[set] = min(from[set], k), max(to[set], k+1)
	}
	for i, s := range x.sets {
		s.Ahead(from[i], to[i]-from[i])
	}
}

// prove implements Set.Prove for a mix: Var manifest of the mix, then the proof of the set's
// sequence.
func (x *mixed) prove(seed wire.Hash, i uint64) ([]byte, error) {
	set, k := x.mix.pick(seed, i)
	proof, err := x.sets[set].Prove(k)
	return append(wire.AppendVar(nil, x.mix.Bytes()), proof...), err
}

// addressBelow returns the address of a subdirectory.
func addressBelow(address, name string) (string, error) {
	if !bucket.IsLocation(address) {
		return strings.TrimSuffix(address, "/") + "/" + name, nil
	}
	l, err := bucket.ParseLocation(address)
	return l.Under(name).URL(), err
}

// MakeMix creates the directory of a mix, which must not exist, from the directories of prepared
// sets. It links their files, or copies them where the file system has no links. It returns the
// mix.
func MakeMix(ctx context.Context, dir, name string, weights []uint32, from []string) (Mix, error) {
	m := Mix{Version: Version, Name: name}
	var sets []Manifest
	for i, d := range from {
		of, err := ReadManifest(d)
		if err != nil {
			return Mix{}, err
		}
		if of.mix != nil {
			return Mix{}, fmt.Errorf("%q: %w", d, errNested)
		}
		sets = append(sets, of)
		m.Components = append(m.Components, Component{of.Name, weights[i], of.Hash()})
	}
	if err := m.Check(); err != nil {
		return Mix{}, err
	}
	if _, err := m.summary(sets); err != nil {
		return Mix{}, err
	}
	if err := os.Mkdir(dir, 0o777); err != nil {
		return Mix{}, err
	}
	for i, d := range from {
		if err := linkSet(ctx, d, filepath.Join(dir, sets[i].Name), sets[i]); err != nil {
			return Mix{}, err
		}
	}
	return m, os.WriteFile(filepath.Join(dir, manifestFile), m.Bytes(), 0o666)
}

// linkSet fills dir with the files of the set in from.
func linkSet(ctx context.Context, from, dir string, m Manifest) error {
	if err := os.Mkdir(dir, 0o777); err != nil {
		return err
	}
	for _, name := range m.files() {
		if err := ctx.Err(); err != nil {
			return err
		}
		source, err := filepath.EvalSymlinks(filepath.Join(from, name))
		if errors.Is(err, os.ErrNotExist) && (name == leavesFile || name == tokenizerFile) {
			continue
		}
		if err == nil {
			err = os.Link(source, filepath.Join(dir, name))
		}
		if err != nil {
			err = duplicate(filepath.Join(from, name), filepath.Join(dir, name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func duplicate(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, in)
	return err
}
