package data

import "github.com/entrain-network/entrain/llama"

// Limits of a manifest and its shards. A manifest comes from the party that offers the data, so
// each number is checked before memory or time is spent on it.
const (
	ChatBytesMax     = 32 << 10 // of a chat template: evidence holds it with the manifest
	ManifestBytesMax = 16 << 20 // a manifest of ShardsMax shards has about 11 MB
	ShardsMax        = 1 << 16  // at the default shard size 10^12 tokens
	ComponentsMax    = 256      // sets in a mix
	WeightMax        = 1 << 16  // of a set in a mix; one order spans the sum of the weights
	MixBytesMax      = 64 << 10 // the manifest of a mix
	NameBytesMax     = 64       // a data set's name, which is shown in tables
	ShardTokensMin   = 1 << 10  // smaller shards would be all manifest
	// verifying reads a shard whole and keeps its leaves: 512 KiB at this size
	ShardTokensMax = 1 << 30
	SequenceMax    = 1 << 20 // tokens in a sequence; far beyond the contexts that can be trained on
)

// ShardTokens is the default number of tokens in a shard: 32 MiB of uint16, which is verified in a
// tenth of a second.
const ShardTokens = 16 << 20

// Masked is the bit of a token that is read and not learnt.
const Masked = llama.Masked
