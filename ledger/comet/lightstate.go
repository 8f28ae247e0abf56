package comet

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"io"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/change"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/ledger/comet/headers"
	"github.com/entrain-network/entrain/wire"
)

// headersBytesMax is the most bytes of the headers in a change, and of the proof.
const headersBytesMax = 1 << 20

// peersOf returns by what a beat names the addresses of a run's participants.
func peersOf(p host.RunProof) uint64 { return binary.LittleEndian.Uint64(p.Peers[:]) }

// encodeChange returns the frame with the change from one picture of a run, known by a mark, to the
// one that is seen now. The zero mark is that of a blank picture. The blocks are headers that lead
// to the one that proves it, compressed by the context of the former.
func encodeChange(now sight, blocks [][]byte, since mark, context []byte, from, to *change.Picture) ([]byte, error) {
	b := wire.AppendU8(wire.AppendU32(nil, 0), frameChange)
	b = wire.AppendU64(wire.AppendU64(b, since.height), since.sum)
	if since == (mark{}) {
		b = now.view.State.Limits().Append(b)
	}
	content := wire.AppendU32(nil, uint32(len(blocks)))
	for _, block := range blocks {
		content = wire.AppendVar(content, block)
	}
	content = now.proof.Append(wire.AppendU64(content, now.header))
	content = change.Append(content, from, to)
	return deflated(b, content, context)
}

// deflated returns the frame of a head, and of content, compressed.
func deflated(head, content, context []byte) ([]byte, error) {
	out := bytes.NewBuffer(head)
	z, err := flate.NewWriterDict(out, flate.BestCompression, context)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(content); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	b := out.Bytes()
	copy(b, wire.AppendU32(nil, uint32(len(b)-4)))
	return b, nil
}

// contextOf returns what the step after a state is compressed by: what resembles its header and its
// proof.
func contextOf(block []byte, proof host.RunProof) []byte { return proof.Append(bytes.Clone(block)) }

func sumOf(context []byte) uint64 {
	sum := wire.Sum("entrain/ledger/comet/context", context)
	return binary.LittleEndian.Uint64(sum[:]) >> 1 // as number reads it
}

// lightState is a light watcher's copy of a run's state.
type lightState struct {
	at      mark // zero: no state yet
	picture *change.Picture
	context []byte
	peers   uint64          // peersOf the proof
	shown   ledger.Snapshot // of picture
}

// change returns the state that a frame makes of this one, which stays as it is.
func (p lightState) change(r *wire.Reader, run string, t *headers.Trust) (lightState, *ledger.Snapshot, error) {
	since := mark{height: r.U64(), sum: r.U64()}
	from, context := p.picture, p.context
	switch {
	case since == (mark{}):
		limits := coordinator.ReadLimits(r)
		if err := r.Err().OrNil(); err != nil {
			return p, nil, err
		}
		if coordinator.Size(limits) > host.StateBytesMax {
			return p, nil, wire.ErrTooLong
		}
		from, context = change.Blank(limits), nil
	case since != p.at:
		return p, nil, errOutOfStep
	}
	if err := r.Err().OrNil(); err != nil {
		return p, nil, err
	}
	content, err := inflate(r.Rest(), context, 2*len(from.State())+headersBytesMax)
	if err != nil {
		return p, nil, err
	}
	c := wire.NewReader(content)
	var block []byte
	for range c.U32() {
		if block = c.Var(headers.BytesMax); c.Err() != wire.OK {
			break
		}
		if err := t.Learn(block, time.Now()); err != nil {
			return p, nil, err
		}
	}
	header, proof := c.U64(), host.ReadRunProof(&c)
	if err := c.Err().OrNil(); err != nil {
		return p, nil, err
	}
	if since != (mark{}) && proof.Changed < p.at.height {
		return p, nil, errOutOfStep
	}
	picture, err := change.Read(from, c.Rest())
	if err != nil {
		return p, nil, err
	}
	s, err := stateOf(picture.State(), picture.Hash(), proof, run, t, header)
	if err != nil {
		return p, nil, err
	}
	next := lightState{picture: picture, context: contextOf(block, proof), peers: peersOf(proof)}
	next.at = mark{height: proof.Changed, sum: sumOf(next.context)}
	next.shown = ledger.Snapshot{Height: proof.Changed, TimeMs: proof.ChangedMs, State: s, Light: picture.Light()}
	for _, r := range p.shown.Reports {
		if picture.Proves(r) {
			next.shown.Reports = append(next.shown.Reports, r)
		}
	}
	shown := next.shown
	return next, &shown, nil
}

// stateOf returns the state of these bytes, of which the hash is proven by the header.
func stateOf(b []byte, hash wire.Hash, proof host.RunProof, run string, t *headers.Trust, header uint64) (coordinator.State, error) {
	if hash != proof.State {
		return coordinator.State{}, errOutOfStep
	}
	root, err := proof.Root(run)
	if err == nil {
		err = t.Check(header, root)
	}
	if err != nil {
		return coordinator.State{}, err
	}
	return coordinator.Open(b)
}

// inflate returns what encodeChange compressed, at most most bytes. It allocates as they come.
func inflate(b, context []byte, most int) ([]byte, error) {
	r := bytes.NewReader(b)
	content, err := io.ReadAll(io.LimitReader(flate.NewReaderDict(r, context), int64(most)+1))
	if err == nil && (len(content) > most || r.Len() > 0) {
		err = wire.ErrTooLong
	}
	return content, err
}
