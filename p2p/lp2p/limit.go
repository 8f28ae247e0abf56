package lp2p

import "time"

// Limits on what peers can make a participant do. See also package p2p.
const (
	// Above connsHigh connections, the connection manager closes the least useful ones until
	// connsLow are left.
	connsLow  = 256
	connsHigh = 320

	// connsMax is the resource manager's limit of connections, including handshakes.
	connsMax = 512

	// fdPart is the part of the process's descriptors that connections may take.
	fdPart = 4

	// connsPerPeer lets both ends dial at once over both transports.
	connsPerPeer = 8

	// connsPerIP suffices for a laboratory or a cloud behind one address. Loopback is not limited.
	connsPerIP = 64

	// streamsMax and streamsPerPeer limit the streams of all protocols.
	streamsMax     = 8192
	streamsPerPeer = 256

	// memoryMax limits the transports' buffers, in bytes.
	memoryMax     = 512 << 20
	memoryPerPeer = 64 << 20

	// servedMax and servedPerPeer limit the requests served at once. Each holds at most a request
	// of p2p.MaxRequest, or a chunk.
	// Peers that are no members of the run, which anybody can be with any number of keys, share one in
	// strangersPart.
	servedMax     = 512
	servedPerPeer = 64
	strangersPart = 4

	// askedPerPeer limits the requests in flight to one peer. It is below what the peer serves.
	askedPerPeer = 32

	// requestsPerSecond limits requests of one peer after a burst. A round of a large run needs
	// hundreds of small blobs, a model of 4 GB 500 large requests.
	requestsPerSecond = 1024
	requestsBurst     = 2048

	// fetchesMax is the number of concurrent fetches. Up to fetchesWaiting more wait. Some hang: in a
	// large run a tenth of the members may serve nothing. Package client bounds those that move.
	fetchesMax     = 512
	fetchesWaiting = 4096

	// connectedMax is the number of members to stay connected with. In larger runs a hash of each pair
	// picks them, and gossip reaches the others through them.
	connectedMax = 192

	// dialsMax is the number of members dialed at once.
	dialsMax = 8

	// pingsAtOnce is the number of members to which round trips are measured at once.
	pingsAtOnce = 8

	// addrsMax and addrBytesMax limit a member's addresses.
	addrsMax = 16
	// publicAddrsMax is the number of own public addresses announced before those through relays.
	publicAddrsMax = 4
	addrBytesMax   = 512

	// rpcBytesMax is the size of a gossipsub frame: several messages, and lists of known ones.
	rpcBytesMax = 256 << 10

	// subscriptionsMax is the number of topics a peer may name in one frame. Only one matters.
	subscriptionsMax = 16

	// queueLength is the number of gossip messages that wait for validation, and of frames that
	// wait for one neighbour. The results of a round of a large run come at once.
	queueLength = 512

	// reservationsMax is the number of peers with a place at a relay, circuitsPerPeer the number of
	// circuits from or to each, and circuitBuffer the bytes buffered between the ends of one.
	reservationsMax = 256
	circuitsPerPeer = 64
	circuitBuffer   = 16 << 10

	// placesWanted is the number of relays at which an unreachable peer reserves places, so that
	// one may leave. addrsPerRelay is the number of addresses of each relay that it announces.
	placesWanted  = 2
	addrsPerRelay = 2

	// guestsMax is the number of peers whose request rates are remembered.
	guestsMax = 4096
)

// Timeouts and pauses.
const (
	// dialTimeout suffices for a handshake across the world, including retransmissions.
	dialTimeout = 15 * time.Second

	// requestTimeout limits the arrival of a request once its stream is open.
	requestTimeout = 10 * time.Second

	// After lateAfter without a chunk, a fetch asks other peers too; after stallAfter it gives the
	// peer up: 13 kB/s is too slow.
	lateAfter  = 2 * time.Second
	stallAfter = 20 * time.Second

	// askTimeout limits a question and its answer.
	askTimeout = 30 * time.Second

	// yieldFor is the time that the peer with the greater key leaves dialing to the other.
	yieldFor = time.Second

	// dialsTogether is the time within which dials of two peers, or to two addresses of one, may have
	// begun at once. A connection that a peer makes later replaces the ones before.
	dialsTogether = 3 * time.Second

	// joinPatience is the time in which a connected peer must join the gossip.
	joinPatience = 10 * time.Second

	// busyPause is the first pause before asking a busy peer again; it doubles up to busyPauseMax.
	busyPause    = 50 * time.Millisecond
	busyPauseMax = 5 * time.Second

	// reservationTime is the lifetime of a place at a relay, which is renewed after half of it.
	// placesEvery is the interval of checks for missing places. A relay without a free place is
	// asked again after placesEvery, doubled up to refusedFor.
	reservationTime = time.Hour
	placesEvery     = time.Second
	refusedFor      = 30 * time.Second

	// pingEvery is the interval between measurements of round trips to pingsAtOnce peers. An answer
	// within pingTimeout counts.
	pingEvery   = 10 * time.Second
	pingTimeout = 5 * time.Second

	// backoffMin and backoffMax bound the pause between attempts to connect, which doubles with
	// each failure. A connection that lasts stableAfter is a success.
	backoffMin  = time.Second
	backoffMax  = time.Minute
	stableAfter = 30 * time.Second
)
