package bucket

import "time"

const (
	// LocationBytesMax is what a member can register on the chain: ledger.AddrBytesMax.
	LocationBytesMax = 256

	// CredentialBytesMax bounds an access key and a secret. S3 providers give 20 and 40 characters, some twice as much.
	CredentialBytesMax = 128

	// PrefixBytesMax bounds what comes before an object's name: a key has at most 1024 bytes in S3, a name 240 at most.
	PrefixBytesMax = 512

	// ObjectBytesMax bounds the body of one object. The largest are slices of large models: 1 GiB is 1 % of 50 billion parameters in 16 bits.
	ObjectBytesMax = 1 << 30

	// ListMax is how many objects a listing returns at most: several for each of 256 members and some windows.
	ListMax = 1 << 14

	// pageMax is how many keys S3 returns at once.
	pageMax = 1000

	// replyBytesMax bounds what is read of an answer that is not an object: a page of a thousand keys of a kilobyte, and their dates.
	replyBytesMax = 2 << 20

	// headBytesMax bounds the header of an answer.
	headBytesMax = 64 << 10

	// PartChunks is how many chunks of a blob, of 256 KiB each, an object of kind part holds: 16 MiB are worth a request, and little to lose.
	PartChunks = 64

	// BlobBytesMax bounds a blob: parameters of 64 billion in 32 bits. Its leaves are 32 MiB.
	BlobBytesMax = 256 << 30
)

// What retries cost and save: a store that restarts is back in seconds, and a window lasts longer.
const (
	attempts   = 5
	backoff    = 200 * time.Millisecond // before the second attempt, doubled before each further one
	backoffMax = 5 * time.Second
)
