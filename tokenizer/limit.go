package tokenizer

// Limits of a tokenizer.json. Files come from strangers, so each number is checked before memory or
// time is spent on it.
const (
	JSONBytesMax  = 64 << 20 // the largest known files have 34 MB
	VocabMax      = 1 << 24  // ids fit in 24 bits; an embedding that large is beyond every known model
	tokenBytesMax = 1 << 16  // of one token's text
	gapMax        = 1 << 16  // unused ids, so that a small file cannot demand a large table
	// added tokens, each matched at every position; known files have below 1100
	addedMax = 1 << 12
)
