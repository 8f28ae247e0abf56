package lp2p

import "time"

// Limits on what peers can make a participant do. See also package p2p.
const (
	// connsLow and connsHigh are between how many connections the connection manager
	// keeps: beyond high it closes the least useful down to low.
	connsLow  = 256
	connsHigh = 320

	// connsMax is what the resource manager refuses beyond, handshakes included.
	connsMax = 512

	// connsPerPeer allows for both ends dialing at once over both transports.
	connsPerPeer = 8

	// connsPerIP is for a laboratory or a cloud behind one address; a stranger with
	// one address can take no more. Loopback is not limited.
	connsPerIP = 64

	// streamsMax and streamsPerPeer bound streams of all protocols.
	streamsMax     = 8192
	streamsPerPeer = 256

	// memoryMax bounds the transports' buffers, in bytes.
	memoryMax     = 512 << 20
	memoryPerPeer = 64 << 20

	// servedMax and servedPerPeer bound the requests being answered at once. Each
	// holds at most a request of p2p.MaxRequest or a chunk.
	servedMax     = 512
	servedPerPeer = 64

	// askedPerPeer bounds the requests to one peer in flight, below what it serves.
	askedPerPeer = 32

	// requestsPerSecond is how fast one peer is served, after a burst: a round of a
	// large run is hundreds of small blobs, a model of 4 GB 500 large requests.
	requestsPerSecond = 1024
	requestsBurst     = 2048

	// fetchesMax is how many fetches run at once; others wait, up to fetchesWaiting.
	fetchesMax     = 64
	fetchesWaiting = 4096

	// connectedMax is with how many members a connection is kept. In larger runs each
	// picks some by hash, and gossip reaches the others through them.
	connectedMax = 192

	// dialsMax is how many members are dialed at once.
	dialsMax = 8

	// addrsMax and addrBytesMax bound a member's addresses.
	addrsMax = 16
	// publicAddrsMax is how many of the own public ones are told before those through relays.
	publicAddrsMax = 4
	addrBytesMax   = 512

	// rpcBytesMax bounds a gossipsub frame: some messages and lists of what is known.
	rpcBytesMax = 256 << 10

	// subscriptionsMax bounds the topics a peer names in one frame; one is of interest.
	subscriptionsMax = 16

	// queueLength is how many gossip messages wait to be judged, and frames for one
	// neighbour to be sent: a round of a large run, whose results come at once.
	queueLength = 512

	// reservationsMax bounds the peers that a relay has places for, circuitsPerPeer the circuits
	// from or to each of them, and circuitBuffer the bytes between the two ends of one.
	reservationsMax = 256
	circuitsPerPeer = 64
	circuitBuffer   = 16 << 10

	// placesWanted is at how many relays a peer that cannot be reached has a place, so that one may
	// go, and addrsPerRelay how many addresses of each it tells others.
	placesWanted  = 2
	addrsPerRelay = 2

	// guestsMax is how many peers' request rates are remembered.
	guestsMax = 4096
)

// Times after which something is no longer waited for.
const (
	// dialTimeout is for a handshake across the world, retransmissions included.
	dialTimeout = 15 * time.Second

	// requestTimeout is for a request to arrive once its stream is open.
	requestTimeout = 10 * time.Second

	// lateAfter without a chunk, a fetch asks others too; stallAfter, it gives the
	// peer up: 13 kB/s is too slow to wait for.
	lateAfter  = 2 * time.Second
	stallAfter = 20 * time.Second

	// askTimeout is for a whole question and its answer.
	askTimeout = 30 * time.Second

	// yieldFor is how long the one of two peers that has the greater key leaves dialing
	// to the other.
	yieldFor = time.Second

	// joinPatience is how long a connected peer may take to join the gossip.
	joinPatience = 10 * time.Second

	// busyPause is the first pause before asking a busy peer again, doubled up to
	// busyPauseMax.
	busyPause    = 50 * time.Millisecond
	busyPauseMax = 5 * time.Second

	// reservationTime is how long a relay keeps a place; it is asked again after half of that.
	// placesEvery is how often is looked whether a place is missing. A relay that has none is asked
	// again after as long, doubled up to refusedFor.
	reservationTime = time.Hour
	placesEvery     = time.Second
	refusedFor      = 30 * time.Second

	// pingEvery is how often round trips are measured; an answer within pingTimeout counts.
	pingEvery   = 10 * time.Second
	pingTimeout = 5 * time.Second

	// backoffMin and backoffMax are the pauses between attempts to connect, doubled
	// at each failure. A connection that lasted stableAfter was a success.
	backoffMin  = time.Second
	backoffMax  = time.Minute
	stableAfter = 30 * time.Second
)
