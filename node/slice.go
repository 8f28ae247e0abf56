package node

import (
	"errors"
	"fmt"

	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

// revealKey returns the name under which blobs has the slice that a seed draws of a payload.
// Without slices it is the payload's root.
func (n *Node) revealKey(payload, seed wire.Hash) wire.Hash {
	if seed.IsZero() || n.slicer == nil {
		return payload
	}
	return wire.Sum("entrain/node/reveal", payload[:], seed[:])
}

var errOtherSlice = errors.New("it opens another commitment, or is of another slice")

// opens returns an error unless body is the slice that a seed draws of a committed payload. It may
// be called off the loop.
func (n *Node) opens(body []byte, payload, seed wire.Hash) error {
	if n.slicer == nil {
		if merkle.BlobRoot(body) != payload {
			return errOtherSlice
		}
		return nil
	}
	root, of, err := n.slicer.Open(body)
	if err == nil && (root != payload || of != seed) {
		err = errOtherSlice
	}
	return err
}

// promise returns what is committed to for a computed update: its root, and the length of the part
// of it that will be sent. It is called off the loop.
func (n *Node) promise(update []byte) (root wire.Hash, bytes uint32) {
	if n.slicer == nil {
		return codec.PayloadRoot(update, n.slices()), uint32(len(update))
	}
	return n.slicer.Root(update), uint32(n.slicer.RevealLen())
}

// put keeps a computed update: it is served at once, or sealed until it is revealed.
func (n *Node) put(round coordinator.Round, update []byte) {
	if _, later := n.exchange.(publisher); later {
		n.sealed[round] = update
		return
	}
	if n.slices() {
		n.blobs.PutPieces(round, update)
		return
	}
	n.blobs.PutPayload(round, update)
}

// reveal uploads the slice that the window's seed draws of this member's update.
func (n *Node) reveal(a client.Reveal) {
	update, ok := n.sealed[a.Round]
	if !ok {
		n.note(fmt.Sprintf("the result of round %d cannot be revealed: it was made before this program was started, and not kept", a.Round))
		n.cfg.Loop.Post(func() { n.step(client.Revealed{Round: a.Round, Lost: true}) })
		return
	}
	var body []byte
	n.cfg.Loop.Work(0, func() {
		if body = update; n.slicer != nil {
			body = n.slicer.Reveal(nil, update, a.Seed)
		}
	}, func() {
		n.exchange.(publisher).reveal(a, body, func(err error) {
			if err != nil {
				n.step(client.Revealed{Round: a.Round})
				return
			}
			n.blobs.PutReveal(a.Round, n.revealKey(a.Payload, a.Seed), body)
			n.observe(event.Revealed{Round: a.Round, Bytes: uint64(len(body))})
			n.step(client.Revealed{Round: a.Round, OK: true})
		})
	})
}

// entered notes that a round has opened.
func (n *Node) entered(round coordinator.Round) {
	n.commitments.Enter(round)
	for r := range n.sealed {
		if r+1 < round {
			delete(n.sealed, r)
		}
	}
	if x, ok := n.exchange.(publisher); ok {
		x.entered(round)
	}
}
