package node

import (
	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/node/blobs"
	"github.com/entrain-network/entrain/wire"
)

// resume returns the optimizer state to begin the run with when none of this run is saved: that of
// the run which it resumes, or the fresh one. text, if not empty, tells a person about it.
func (n *Node) resume() (state []float32, text string) {
	want, named := n.cfg.States[n.self]
	if n.cfg.Resume != nil {
		state = n.cfg.Resume()
	}
	switch {
	case len(state) != n.cfg.Engine.StateLen() && named:
		text = "this member could continue from the optimizer state " + want.String() + " of the checkpoint, but it is not here; beginning afresh"
	// no list names the members that had one
	case len(state) != n.cfg.Engine.StateLen() && n.slicer != nil && n.cfg.Resume != nil:
		text = "the run resumes another, and an optimizer state of this member's from there would lie beside the checkpoint or in the state directory, " +
			"but it is not here; beginning afresh"
	case len(state) != n.cfg.Engine.StateLen():
	case n.slicer != nil || n.params.Measured(n.cfg.Engine.Load(state)).Root == want:
		return state, "the optimizer goes on from the checkpoint's state"
	default:
		text = "the optimizer state beside the checkpoint is not the one that the run's specification names; beginning afresh"
	}
	return make([]float32, n.cfg.Engine.StateLen()), text
}

// begins reports whether the run may begin with an optimizer state other than the fresh one.
func (n *Node) begins(root, fresh wire.Hash) bool {
	want, ok := n.cfg.States[n.self]
	return root != fresh && (n.slicer != nil || ok && root == want)
}

// settled returns the optimizer state with which this member continues from a checkpoint, nil if it
// is the fresh one. It runs off the loop.
func (n *Node) settled(own *blobs.Version, a client.Save) ([]float32, error) {
	if own == nil || n.slicer == nil || a.Settle.IsZero() {
		return n.optim.Floats(own)
	}
	values := n.cfg.Engine.NewVector(n.optim.Len())
	if err := n.optim.Fill(values, own); err != nil {
		return nil, err
	}
	n.slicer.Settle(values, a.Settle)
	return engine.Values(values), nil
}
