package data

// What a manifest and its shards may ask for. A manifest comes from whoever offers the data, so each number is checked before memory or
// time is spent on it.
const (
	ManifestBytesMax = 16 << 20 // a manifest of ShardsMax shards has about 11 MB
	ShardsMax        = 1 << 16  // at the default shard size 10^12 tokens
	ComponentsMax    = 256      // sets in a mix
	WeightMax        = 1 << 16  // of a set in a mix; their sum is what an order is drawn for at once
	MixBytesMax      = 64 << 10 // the manifest of a mix
	NameBytesMax     = 64       // a data set's name, which is shown in tables
	ShardTokensMin   = 1 << 10  // smaller shards would be all manifest
	ShardTokensMax   = 1 << 30  // a shard is read whole once, to verify it, and its leaves are kept: 512 KiB of them at this size
	SequenceMax      = 1 << 20  // tokens in a sequence; far beyond the contexts that can be trained on

	LineBytesMax  = 64 << 20  // a line of JSONL or a text in a table, held in memory a few times over; the longest books have 20 MB
	ZstdWindowMax = 256 << 20 // memory that a .zst may ask for: zstd --long=27 needs half of it
)

// ShardTokens is how many tokens a shard holds unless told otherwise: 32 MiB of uint16, which is verified in a tenth of a second.
const ShardTokens = 16 << 20
