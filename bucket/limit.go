package bucket

import "time"

const (
	// LocationBytesMax bounds what a member can register on the chain: ledger.AddrBytesMax.
	LocationBytesMax = 256

	// credentialBytesMax bounds an access key and a secret. S3 providers give 20 and 40 characters,
	// some twice as much.
	credentialBytesMax = 128

	// prefixBytesMax bounds the prefix before an object's name: an S3 key has at most 1024 bytes, a
	// name at most 240.
	prefixBytesMax = 512

	// ObjectBytesMax bounds the body of one object. The largest are slices of large models: 1 GiB
	// is 1 % of 50 billion parameters in 16 bits.
	ObjectBytesMax = 1 << 30

	// LackBytesMax bounds the body of an object of kind lack, a bit for each member.
	LackBytesMax = 2 << 10

	// listMax is the most objects that a listing returns: several for each of 256 members over
	// several windows.
	listMax = 1 << 14

	// pageMax is the most keys that S3 returns at once.
	pageMax = 1000

	// replyBytesMax bounds a response that is not an object: a page of a thousand keys of a
	// kilobyte each, and their dates.
	replyBytesMax = 2 << 20

	// headBytesMax bounds the header of an answer.
	headBytesMax = 64 << 10

	// PartChunks is the number of 256 KiB chunks in an object of kind part. Its 16 MiB justify a
	// request and cost little to retry.
	PartChunks = 64

	// BlobBytesMax bounds a blob: 64 billion parameters in 32 bits. Its leaves take 32 MiB.
	BlobBytesMax = 256 << 30
)

// Retry limits: a store that restarts is back in seconds, and a window lasts longer.
const (
	attempts   = 5
	backoff    = 200 * time.Millisecond // before the second attempt, doubled before each further one
	backoffMax = 5 * time.Second
)
