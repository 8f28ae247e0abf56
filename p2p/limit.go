package p2p

// Limits on what crosses the network, checked before anything is allocated.
const (
	// MaxGossip bounds a gossip message. Commitments have a few hundred bytes;
	// each message is copied to several peers by each participant.
	MaxGossip = 8 << 10

	// MaxRequest bounds a question, and MaxAnswer an answer, a leaf list included.
	MaxRequest = 64 << 10
	MaxAnswer  = 1 << 20

	// MaxChunks is the number of leaves that fit into an answer: those of a blob of 8 GiB.
	MaxChunks = MaxAnswer / 32

	// PartChunks is the number of leaves in a part of a longer list. It is a power of two, so that a
	// part is a subtree, and leaves room for the part's proof.
	PartChunks = MaxChunks / 2

	// MaxBlob bounds a blob, as bucket.BlobBytesMax does: 64 billion parameters, whose leaves take
	// 32 MiB.
	MaxBlob = 256 << 30

	// MaxCount bounds the chunks of one request, 8 MiB: about what a link of
	// 1 Gbit/s and 70 ms holds, and little to lose when a peer is given up.
	MaxCount = 32
)

// Bounds of one fetch.
const (
	// activeMax is the number of peers asked at once. More would not use a participant's link
	// better, and would cost each of them a stream.
	activeMax = 8

	// requestsPerPeer lets the second request travel while the first is answered.
	requestsPerPeer = 2

	// missesMax is the number of times that a peer may lack a requested part and still be asked
	// again once another part of the blob is held, because it may be fetching the blob itself.
	missesMax = 32

	// stealMin is the number of chunks that must precede a part of a request before it is taken
	// over although its peer is not late. With fewer, the chunks are probably on their way.
	stealMin = 4
)
