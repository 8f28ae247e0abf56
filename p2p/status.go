package p2p

import (
	"time"

	"github.com/entrain-network/entrain/key"
)

// PeerStatus holds a participant's measurements of a peer, and its offences.
type PeerStatus struct {
	Key key.Public `json:"key"`
	// Way is the kind of connection: "direct", "relay", or "" for none.
	Way string `json:"way"`
	// RTT is a smoothed round trip; 0 until it is known.
	RTT time.Duration `json:"rtt_ns"`
	// Down and Up are bytes a second of blobs and answers, received from the peer and sent to it,
	// over the time in which some were asked for, the last minutes counting most; 0 until there
	// were any.
	Down float64 `json:"down"`
	Up   float64 `json:"up"`
	// Received and Sent are those bytes, in all.
	Received uint64 `json:"received"`
	Sent     uint64 `json:"sent"`
	// Weight is the weight of its offences; see Standing.Weight.
	Weight float64 `json:"weight"`
	Banned bool    `json:"banned"`
}

// Traffic measures what goes one way between two peers: bytes, and their rate while something is
// under way. Its zero value is ready. It belongs to one goroutine; what time it is, it is told.
type Traffic struct {
	total   uint64
	running int       // transfers
	since   time.Time // when bytes and busy were right
	bytes   float64   // decayed
	busy    float64   // seconds with a transfer running, decayed
}

// trafficMemory is after how long of transfers what was measured counts half.
const trafficMemory = 60.0 // seconds of transfers

// Begin reports that a transfer has begun.
func (t *Traffic) Begin(now time.Time) {
	t.advance(now)
	t.running++
}

// Move reports bytes received or sent.
func (t *Traffic) Move(n int, now time.Time) {
	t.advance(now)
	t.total += uint64(n)
	t.bytes += float64(n)
}

// End reports that a transfer has ended.
func (t *Traffic) End(now time.Time) {
	t.advance(now)
	t.running--
}

// advance counts the time since the last event as busy if a transfer ran, and lets the past fade.
func (t *Traffic) advance(now time.Time) {
	if t.running > 0 {
		if d := now.Sub(t.since).Seconds(); d > 0 {
			fade := trafficMemory / (trafficMemory + d)
			t.bytes, t.busy = t.bytes*fade, t.busy*fade+d
		}
	}
	t.since = now
}

// Total is all bytes so far.
func (t *Traffic) Total() uint64 { return t.total }

// busyLeast is the least time in seconds of transfers whose speed is known.
const busyLeast = 0.05

// Rate is bytes a second while a transfer runs; 0 before there was one that takes time: what fits
// into the system's buffers is gone at once.
func (t *Traffic) Rate() float64 {
	if t.busy < busyLeast {
		return 0
	}
	return t.bytes / t.busy
}
