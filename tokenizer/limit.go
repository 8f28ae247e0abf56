package tokenizer

// What a tokenizer.json may ask for. Files come from strangers; each number is checked before memory or time is spent on it.
const (
	JSONBytesMax  = 64 << 20 // the largest known files have 34 MB
	VocabMax      = 1 << 24  // ids fit in 24 bits; an embedding that large is beyond every known model
	TokenBytesMax = 1 << 16  // of one token's text
	gapMax        = 1 << 16  // ids that no token has: a small file asks for no large table
	addedMax      = 1 << 12  // added tokens, each of which is looked for at every place of a text; the largest known number is below 1100
)
