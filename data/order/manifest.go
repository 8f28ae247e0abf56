package order

import (
	"github.com/entrain-network/entrain/wire"
)

// Component is a set of a mix.
type Component struct {
	Weight   uint32
	Manifest wire.Hash
}

// Mix is what of a mix's manifest says which set a sequence is of.
type Mix []Component

// Pick returns the set and number of the i-th training sequence.
func (m Mix) Pick(seed wire.Hash, i uint64) (set int, sequence uint64) {
	total := uint64(0)
	for _, c := range m {
		total += uint64(c.Weight)
	}
	place := Place(wire.Sum("entrain/mix/order", seed[:]), i, total)
	for ; place >= uint64(m[set].Weight); set++ {
		place -= uint64(m[set].Weight)
	}
	return set, i/total*uint64(m[set].Weight) + place
}

// MixSeed returns the seed of one of the sets of a mix.
func MixSeed(seed wire.Hash, set int) wire.Hash {
	return wire.Sum("entrain/mix", seed[:], wire.AppendU32(nil, uint32(set)))
}

// manifestBytesMax is the most bytes of a manifest.
const manifestBytesMax = 16 << 20

// Proven is data.Proven for a host that cannot parse JSON: it reads the manifest line by line, and
// relies on the hash being that of canonical bytes, as members do that parse them when they join.
func Proven(dst []uint32, want, seed wire.Hash, i uint64, proof []byte) error {
	r := wire.NewReader(proof)
	text := r.Var(manifestBytesMax)
	if got := wire.SHA256(text); r.Err() != wire.OK || got != want {
		return Error("the proof is of another data set")
	}
	set, mix := Read(text)
	if len(mix) > 0 {
		n, k := mix.Pick(seed, i)
		want, seed, i = mix[n].Manifest, MixSeed(seed, n), k
		text = r.Var(manifestBytesMax)
		if got := wire.SHA256(text); r.Err() != wire.OK || got != want {
			return Error("the proof is of another data set")
		}
		set, _ = Read(text)
	}
	if len(set.Shards) == 0 || set.ShardTokens == 0 {
		return Error("the manifest is not one of a data set")
	}
	return set.Proven(dst, seed, i, &r)
}

// Read reads the canonical bytes of a manifest, of a data set or of a mix.
func Read(b []byte) (t Text, mix Mix) {
	shards := false
	for len(b) > 0 {
		line := b
		for i, c := range b {
			if c == '\n' {
				line = b[:i]
				break
			}
		}
		b = b[min(len(line)+1, len(b)):]
		key, value, depth := field(line)
		switch {
		case depth == 2:
			shards = key == "shards"
			switch key {
			case "vocab":
				t.Vocab = uint32(decimal(value))
			case "token_bytes":
				t.TokenBytes = int(decimal(value))
			case "shard_tokens":
				t.ShardTokens = decimal(value)
			case "tokens":
				t.Tokens = decimal(value)
			case "masked":
				t.Masked = value[0] == 't'
			}
		case depth == 6 && shards && key == "bytes":
			t.Shards = append(t.Shards, Shard{Bytes: decimal(value)})
		case depth == 6 && shards && key == "root" && len(t.Shards) > 0:
			t.Shards[len(t.Shards)-1].Root = hash(value)
		case depth == 6 && key == "weight":
			mix = append(mix, Component{Weight: uint32(decimal(value))})
		case depth == 6 && key == "manifest" && len(mix) > 0:
			mix[len(mix)-1].Manifest = hash(value)
		}
	}
	return t, mix
}

// field returns the key and the value of a line, and its indentation, 0 if it has no key.
func field(line []byte) (key string, value []byte, depth int) {
	for depth < len(line) && line[depth] == ' ' {
		depth++
	}
	rest := line[depth:]
	if len(rest) < 2 || rest[0] != '"' {
		return "", nil, 0
	}
	end := 1
	for end < len(rest) && rest[end] != '"' {
		end++
	}
	if end+3 >= len(rest) || rest[end+1] != ':' {
		return "", nil, 0
	}
	return string(rest[1:end]), rest[end+3:], depth
}

// decimal returns the number that b begins with.
func decimal(b []byte) (n uint64) {
	for _, c := range b {
		if c < '0' || c > '9' {
			break
		}
		n = 10*n + uint64(c-'0')
	}
	return n
}

// hash returns the hash in a string of JSON, zeros where it is none.
func hash(b []byte) (h wire.Hash) {
	if len(b) < 1+2*len(h) {
		return h
	}
	digit := func(c byte) byte {
		if c >= 'a' {
			return c - 'a' + 10
		}
		return c - '0'
	}
	for i := range h {
		h[i] = digit(b[1+2*i])<<4 | digit(b[2+2*i])
	}
	return h
}
