package comet

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/ledger/comet/headers"
	"github.com/entrain-network/entrain/wire"
)

// The stream of a run's state is a sequence of frames; the package comment draws them.
const (
	frameBeat   = 0 // nothing new, the server lives
	frameState  = 1 // the state, or what has changed of it
	frameLight  = 2 // a header with its signatures
	framePacked = 3 // a state frame, compressed
	frameChange = 4 // a light state, or what has changed of it
	// what an elected member needs to make the filters of a round again
	frameReports = 5

	beatBytes        = 1 + 8 + 8
	stateHeaderBytes = 1 + 8 + 8 + 8 + 8 + 32 + 4 + 4
	proofBytesMax    = 1 << 10 // of a run's state
	frameBytesMax    = stateHeaderBytes + proofBytesMax + host.StateBytesMax + host.StateBytesMax/coordinator.PageBytes*4
)

func appendBeat(dst []byte, height, timeMs uint64) []byte {
	dst = wire.AppendU32(dst, beatBytes)
	dst = wire.AppendU8(dst, frameBeat)
	dst = wire.AppendU64(dst, height)
	return wire.AppendU64(dst, timeMs)
}

// appendPeersBeat appends the beat of a light stream, which also says what the addresses of the
// run's participants are known by.
func appendPeersBeat(dst []byte, height, timeMs, peers uint64) []byte {
	dst = wire.AppendU8(wire.AppendU32(dst, beatBytes+8), frameBeat)
	return wire.AppendU64(wire.AppendU64(wire.AppendU64(dst, height), timeMs), peers)
}

func appendLight(dst, block []byte) []byte {
	dst = wire.AppendU32(dst, uint32(1+len(block)))
	return append(wire.AppendU8(dst, frameLight), block...)
}

// encode returns the frame that takes a watcher from the state at height since to the present one.
// A watcher without a state, or with one older than the feed remembers, gets every page.
func (f *feed) encode(since uint64) []byte {
	state := f.view.State.Bytes()
	count := 0
	for _, changed := range f.changed {
		if changed > since {
			count++
		}
	}
	if count == len(f.changed) {
		since = 0
	}
	b := wire.AppendU32(nil, 0)
	b = wire.AppendU8(b, frameState)
	b = f.proof.Append(wire.AppendU64(b, f.header))
	b = wire.AppendU64(b, since)
	b = wire.AppendU64(b, f.view.Changed)
	b = wire.AppendU64(b, f.timeMs)
	b = wire.AppendHash(b, f.view.Hash)
	b = wire.AppendU32(b, uint32(len(state)))
	b = wire.AppendU32(b, uint32(count))
	for i, changed := range f.changed {
		if changed > since {
			from, to := page(i, len(state))
			b = append(wire.AppendU32(b, uint32(i)), state[from:to]...)
		}
	}
	copy(b, wire.AppendU32(nil, uint32(len(b)-4)))
	return b
}

// Compression of frames. One encoder and one decoder serve all streams.
var (
	packer = sync.OnceValues(func() (*zstd.Encoder, error) {
		return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	})
	unpacker = sync.OnceValues(func() (*zstd.Decoder, error) {
		return zstd.NewReader(nil, zstd.WithDecoderMaxMemory(frameBytesMax), zstd.WithDecoderConcurrency(1))
	})
)

// pack returns a frame compressed, or itself if that is not smaller. At a round's end the records
// of all members change in a few bytes, and their pages shrink to a quarter.
func pack(frame []byte) []byte {
	z, err := packer()
	if err != nil {
		return frame
	}
	b := z.EncodeAll(frame[4:], []byte{0, 0, 0, 0, framePacked})
	if len(b) >= len(frame) {
		return frame
	}
	copy(b, wire.AppendU32(nil, uint32(len(b)-4)))
	return b
}

// unpack returns what follows the length of a frame that pack compressed. It is bounded by
// frameBytesMax.
func unpack(packed []byte) ([]byte, error) {
	z, err := unpacker()
	if err != nil {
		return nil, err
	}
	b, err := z.DecodeAll(packed, nil)
	if err == nil && (len(b) == 0 || b[0] != frameState) {
		err = errors.New("a packed frame is not a state")
	}
	return b, err
}

// replica is a watcher's copy of a run's state.
type replica struct {
	run    string
	trust  *headers.Trust // what headers are known; nil believes everything
	height uint64         // 0: none yet
	state  []byte
	light  lightState
	// Of the stream that is read: whether a light one was asked for, and the server knows none.
	lightly, plain bool
	peers          uint64 // the hash of the addresses that it named last
	named          bool   // it has
}

// begin begins a stream, and returns the state that is there for it.
func (p *replica) begin(lightly bool) mark {
	p.lightly, p.named = lightly, false
	if lightly && !p.plain {
		return p.light.at
	}
	return mark{height: p.height}
}

// reached returns the height of the state that the stream has led to.
func (p *replica) reached() uint64 {
	if p.lightly && !p.plain {
		return p.light.at.height
	}
	return p.height
}

// errOutOfStep reports a frame that does not fit the replica's state, or that leads to a state with
// another hash than it claims.
var errOutOfStep = errors.New("state of the run does not fit what was sent before")

// readFrame reads one frame. It allocates as bytes arrive, so a false length costs its sender as
// much as the receiver.
func readFrame(r io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	lr := wire.NewReader(head[:])
	n := lr.U32()
	if n > frameBytesMax {
		return nil, fmt.Errorf("frame of %d bytes, at most %d", n, frameBytesMax)
	}
	const step = 64 << 10
	var b []byte
	for rest := int(n); rest > 0; {
		k := min(rest, step)
		b = append(b, make([]byte, k)...)
		if _, err := io.ReadFull(r, b[len(b)-k:]); err != nil {
			return nil, fmt.Errorf("frame of %d bytes: %w", n, err)
		}
		rest -= k
	}
	return b, nil
}

// apply takes a frame. It returns the new state, which is the caller's to keep, or nil for a frame
// that changes nothing. After an error the replica is as it was.
func (p *replica) apply(frame []byte) (*ledger.Snapshot, error) {
	r := wire.NewReader(frame)
	switch kind := r.U8(); kind {
	case frameBeat:
		r.Bytes(beatBytes - 1)
		if r.Err() == wire.OK && r.Len() > 0 {
			p.peers, p.named = r.U64(), true
		}
		return nil, r.Done().OrNil()
	case frameLight:
		return nil, p.trust.Learn(frame[1:], time.Now())
	case frameState:
		return p.applyState(&r)
	case framePacked:
		b, err := unpack(frame[1:])
		if err != nil {
			return nil, err
		}
		r = wire.NewReader(b[1:])
		return p.applyState(&r)
	case frameChange:
		next, s, err := p.light.change(&r, p.run, p.trust)
		if err == nil {
			p.light, p.plain, p.peers, p.named = next, false, next.peers, true
		}
		return s, err
	case frameReports:
		next, s, err := p.light.hear(&r)
		if err == nil {
			p.light = next
		}
		return s, err
	default:
		return nil, fmt.Errorf("frame of unknown kind %d", kind)
	}
}

func (p *replica) applyState(r *wire.Reader) (*ledger.Snapshot, error) {
	header, proof := r.U64(), host.ReadRunProof(r)
	since, height, timeMs := r.U64(), r.U64(), r.U64()
	hash, size, count := r.Hash(), r.U32(), r.U32()
	if err := r.Err().OrNil(); err != nil {
		return nil, err
	}
	pages := (uint64(size) + coordinator.PageBytes - 1) / coordinator.PageBytes
	full := since == 0
	switch {
	case size > host.StateBytesMax || uint64(count) > pages || full && uint64(r.Len()) != uint64(size)+4*pages:
		return nil, wire.ErrTooLong
	case height <= p.height && !full, !full && (since != p.height || int(size) != len(p.state)):
		return nil, errOutOfStep
	}
	state := make([]byte, size)
	if !full {
		copy(state, p.state)
	}
	next := uint32(0)
	for range count {
		i := r.U32()
		if r.Err() != wire.OK || i < next || uint64(i) >= pages {
			return nil, wire.ErrNotCanonical
		}
		from, to := page(int(i), len(state))
		copy(state[from:to], r.Bytes(to-from))
		next = i + 1
	}
	if err := r.Done().OrNil(); err != nil {
		return nil, err
	}
	s, err := coordinator.Open(state)
	if err != nil {
		return nil, fmt.Errorf("state of the run: %w", err)
	}
	if s.Hash() != hash {
		return nil, errOutOfStep
	}
	if err := p.prove(proof, header, height, hash); err != nil {
		return nil, err
	}
	p.height, p.state, p.plain = height, state, p.lightly
	return &ledger.Snapshot{Height: height, TimeMs: timeMs, State: s}, nil
}

// prove checks that the state of some height is in the state of the ledger that a known header has
// the hash of.
func (p *replica) prove(proof host.RunProof, header, height uint64, hash wire.Hash) error {
	if proof.State != hash || proof.Changed != height {
		return errOutOfStep
	}
	root, err := proof.Root(p.run)
	if err != nil {
		return err
	}
	return p.trust.Check(header, root)
}
