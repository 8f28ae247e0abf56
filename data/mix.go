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
	"github.com/entrain-network/entrain/wire"
)

// A Mix is several data sets of one tokenizer that are trained on in proportion to weights. Its manifest lies where that of a set would, and its
// hash, which is that of the canonical bytes, identifies the mix; each set is in the directory below that is named after it:
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
// Let W be the sum of the weights w. Of every W sequences in a row exactly w come from each set, in an order within the W that the seed draws; each set
// gives its own sequences as it does alone, every one once in a pass, in an order of its own seed. So which sequence of which set is the i-th follows
// from i and the weights in a few operations, and a proof of a sequence (Set.Prove) holds the mix's manifest before the set's.
type Mix struct {
	Version    int         `json:"version"`
	Name       string      `json:"name"` // as that of a data set
	Components []Component `json:"mix"`
}

// Component is a set of a mix.
type Component struct {
	Set      string    `json:"set"`      // the directory's name, as that of a data set
	Weight   uint32    `json:"weight"`   // 1 to WeightMax
	Manifest wire.Hash `json:"manifest"` // Manifest.Hash
}

// Bytes are the canonical bytes of m: JSON indented by two spaces, the fields in the order of the structs, and a newline.
func (m Mix) Bytes() []byte { return canonical.JSON(m) }

// Hash is the SHA-256 of Bytes.
func (m Mix) Hash() wire.Hash { return wire.SHA256(m.Bytes()) }

// isMix tells whether the bytes of a manifest are meant to be those of a mix.
func isMix(b []byte) bool {
	var of struct {
		Mix json.RawMessage `json:"mix"`
	}
	return len(b) <= MixBytesMax && json.Unmarshal(b, &of) == nil && of.Mix != nil
}

// ParseMix reads canonical bytes, and refuses all others and what Check refuses.
func ParseMix(b []byte) (Mix, error) {
	return canonical.Parse[Mix](b, "manifest of a mix", MixBytesMax)
}

// Check returns what is wrong with m, or nil.
func (m Mix) Check() error {
	switch {
	case m.Version != Version:
		return fmt.Errorf("version %d is not known, only %d", m.Version, Version)
	case !plainName(m.Name):
		return fmt.Errorf("name %q is not made of 1 to %d lower-case letters, digits, '-', '_' and '.'", m.Name, NameBytesMax)
	case len(m.Components) == 0 || len(m.Components) > ComponentsMax:
		return fmt.Errorf("%d sets are not 1 to %d", len(m.Components), ComponentsMax)
	}
	seen := make(map[string]bool)
	for i, c := range m.Components {
		switch {
		case !plainName(c.Set):
			return fmt.Errorf("mix[%d]: %q is not the name of a directory made of lower-case letters, digits, '-', '_' and '.'", i, c.Set)
		case seen[c.Set]:
			return fmt.Errorf("mix[%d]: set %q is listed twice", i, c.Set)
		case c.Weight == 0 || c.Weight > WeightMax:
			return fmt.Errorf("mix[%d]: weight %d is not in 1..%d", i, c.Weight, WeightMax)
		}
		seen[c.Set] = true
	}
	return nil
}

// total is the sum of the weights.
func (m Mix) total() uint64 {
	sum := uint64(0)
	for _, c := range m.Components {
		sum += uint64(c.Weight)
	}
	return sum
}

// at returns which set a place among total consecutive ones belongs to, and which of the set's among them it is.
func (m Mix) at(place uint64) (set int, nth uint64) {
	for ; place >= uint64(m.Components[set].Weight); set++ {
		place -= uint64(m.Components[set].Weight)
	}
	return set, place
}

// pick returns which sequence of which set is the i-th of training.
func (m Mix) pick(seed wire.Hash, i uint64) (set int, sequence uint64) {
	total := m.total()
	set, nth := m.at(NewPermutation(wire.Sum("entrain/mix/order", seed[:]), i/total, total).At(i % total))
	return set, i/total*uint64(m.Components[set].Weight) + nth
}

// mixSeed is the seed of one of the sets of a mix.
func mixSeed(seed wire.Hash, set int) wire.Hash {
	return wire.Sum("entrain/mix", seed[:], wire.AppendU32(nil, uint32(set)))
}

// mixed is what a Set of several has.
type mixed struct {
	mix  Mix
	sets []*Set
}

// openMix opens the sets of a mix, each by open, and makes one of them.
func openMix(m Mix, o Options, open func(c Component, o Options) (*Set, error)) (*Set, error) {
	s := &Set{mixed: &mixed{mix: m}, seed: o.Seed, first: o.First}
	for i, c := range m.Components {
		of := o
		of.component, of.Seed, of.First = true, mixSeed(o.Seed, i), 0
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

// summary is what a mix is as one data set: its name and hash, the tokenizer that all have, and how much there is of all together. It has no shards.
func (m Mix) summary(sets []Manifest) (Manifest, error) {
	sum := Manifest{Version: Version, Name: m.Name, Tokenizer: sets[0].Tokenizer, Vocab: sets[0].Vocab, mix: m.Bytes()}
	for i, of := range sets {
		if of.Tokenizer != sum.Tokenizer || of.Vocab != sum.Vocab {
			return Manifest{}, fmt.Errorf("sets %q and %q of the mix were made with different tokenizers, %q and %q: a token would mean two things",
				m.Components[0].Set, m.Components[i].Set, sum.Tokenizer.Name, of.Tokenizer.Name)
		}
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

// errNested is what a mix in a mix is refused with.
var errNested = errors.New("it is a mix itself: name the sets it is made of")

// readMix reads the manifests of the sets of the mix in dir.
func readMix(dir string, b []byte) (Manifest, error) {
	m, err := ParseMix(b)
	if err != nil {
		return Manifest{}, fmt.Errorf("%q: %w", filepath.Join(dir, ManifestFile), err)
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
			return Manifest{}, fmt.Errorf("set %q of the mix is %s, not %s", c.Set, of.Hash(), c.Manifest)
		}
		sets = append(sets, of)
	}
	return m.summary(sets)
}

// componentsOf returns the manifests of the sets of the mix in dir by what their files' names begin with; of a set that is one, its own.
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

// len is how many sequences are different in the proportions of the weights, of which each set has so many.
func (x *mixed) len(of func(*Set) uint64) uint64 {
	blocks := uint64(math.MaxUint64)
	for i, c := range x.mix.Components {
		blocks = min(blocks, of(x.sets[i])/uint64(c.Weight))
	}
	return blocks * x.mix.total()
}

// ahead says of each set which of its sequences are among n from number first on.
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

// prove is Set.Prove of a mix: Var manifest of the mix, then the proof of the set's sequence.
func (x *mixed) prove(seed wire.Hash, i uint64) ([]byte, error) {
	set, k := x.mix.pick(seed, i)
	proof, err := x.sets[set].Prove(k)
	return append(wire.AppendVar(nil, x.mix.Bytes()), proof...), err
}

// addressBelow is the address of a directory below one.
func addressBelow(address, name string) (string, error) {
	if !bucket.IsLocation(address) {
		return strings.TrimSuffix(address, "/") + "/" + name, nil
	}
	l, err := bucket.ParseLocation(address)
	return l.Under(name).URL(), err
}

// MakeMix makes the directory of a mix, which must not exist, from the directories of prepared sets: links to their files, or copies where the file
// system has no links. It returns the mix.
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
	return m, os.WriteFile(filepath.Join(dir, ManifestFile), m.Bytes(), 0o666)
}

// linkSet makes dir a directory with the files of the set in from.
func linkSet(ctx context.Context, from, dir string, m Manifest) error {
	if err := os.Mkdir(dir, 0o777); err != nil {
		return err
	}
	for _, name := range m.files() {
		if err := ctx.Err(); err != nil {
			return err
		}
		source, err := filepath.EvalSymlinks(filepath.Join(from, name))
		if errors.Is(err, os.ErrNotExist) && (name == LeavesFile || name == TokenizerFile) {
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
