package data

import "github.com/entrain-network/entrain/llama"

// Limits of a manifest and its shards. A manifest comes from the party that offers the data, so
// each number is checked before memory or time is spent on it.
const (
	chatBytesMax     = 32 << 10 // of a chat template: evidence holds it with the manifest
	manifestBytesMax = 16 << 20 // a manifest of shardsMax shards has about 11 MB
	shardsMax        = 1 << 16  // at the default shard size 10^12 tokens
	componentsMax    = 256      // sets in a mix
	weightMax        = 1 << 16  // of a set in a mix; one order spans the sum of the weights
	mixBytesMax      = 64 << 10 // the manifest of a mix
	nameBytesMax     = 64       // a data set's name, which is shown in tables
	ShardTokensMin   = 1 << 10  // smaller shards would be all manifest
	// verifying reads a shard whole and keeps its leaves: 512 KiB at this size
	shardTokensMax = 1 << 30
	sequenceMax    = 1 << 20 // tokens in a sequence; far beyond the contexts that can be trained on
)

// ShardTokens is the default number of tokens in a shard: 32 MiB of uint16, which is verified in a
// tenth of a second.
const ShardTokens = 16 << 20

// Masked is the bit of a token that is read and not learnt.
const Masked = llama.Masked
