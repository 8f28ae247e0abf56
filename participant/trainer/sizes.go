package trainer

import (
	"fmt"
	"math"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/engine/vulkan"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/node/blobs"
	"github.com/entrain-network/entrain/optim"
	"github.com/entrain-network/entrain/spec"
)

// Sizes estimates what a run takes of a member's machine and connection.
type Sizes struct {
	Parameters uint64 `json:"parameters"`    // trained
	Frozen     uint64 `json:"frozen"`        // parameters of the frozen model, in a run of adapters
	Model      uint64 `json:"model_bytes"`   // fetched once
	Memory     uint64 `json:"memory_bytes"`  // checkpoints and disputes come on top
	State      uint64 `json:"state_bytes"`   // on disk, of one round; checkpoints come on top
	Checked    uint64 `json:"checked_bytes"` // fetched to check a result: its author's optimizer state
	Payload    uint64 `json:"payload_bytes"` // a result in one round, at most
	// Update is about the size of what all results of a round do to the parameters, 0 if the codec
	// cannot write it down.
	Update uint64 `json:"update_bytes,omitempty"`
	// SlicesMax is the most slices that an update can be made of, 0 if it cannot be written down.
	SlicesMax uint64 `json:"slices_max,omitempty"`
	// Slice is the slice of the agreed parameters that members of a run by buckets write beside a
	// result, at most; 0 in others.
	Slice uint64 `json:"state_slice_bytes,omitempty"`
	// DeviceMemory is what --device takes of a GPU's memory besides, and DeviceLeast what it takes at
	// least, for one sequence at a time.
	DeviceMemory uint64 `json:"device_memory_bytes"`
	DeviceLeast  uint64 `json:"device_memory_least_bytes"`
}

// SizesOf estimates what a run takes.
func SizesOf(s spec.Spec) (z Sizes, err error) {
	model, err := s.Llama()
	if err != nil {
		return z, err
	}
	made, err := s.Optimizer.New(model.Layout(), nil)
	if err != nil {
		return z, fmt.Errorf("the run's codec: %w", err)
	}
	n := uint64(model.Layout().Len())
	state, work := uint64(made.StateLen()), n
	if inner := s.Inner(); inner != nil {
		state += uint64(inner.StateLen(int(n)))
		work = 4 * n // the gradient, the parameters on the way, and the optimizer's moments
		if inner.Muon {
			work += uint64(optim.MuonWork(model.Matrices()))
		}
	}
	// Parameters: of this round, of the one before, which peers may still ask for, and of the
	// next; with overlap one more. States: before and after a step, and with verification
	// also of the rounds whose checks are not drawn yet; by buckets, where no states are recomputed,
	// instead the parameters of rounds whose checks are open. And the memory of a step. Of a large
	// model old versions are in files, and so is what comes for checks.
	params, states := 3+uint64(s.Members.Overlap), uint64(2)
	switch {
	case 4*n >= blobs.FileFrom && s.Inner() == nil && !s.Buckets():
		params, states = 2, 1 // the current ones, and a buffer for what is made next, or again
	case s.Trust.VerificationPercent == 0:
	case s.Buckets():
		params += 2
	default:
		states += 2
	}
	device := func(most int) uint64 { return vulkan.Memory(model, s.Data.Sequence, most, s.Inner() != nil, made) }
	z.DeviceMemory, z.DeviceLeast = device(MicroBatch), device(1)
	// The frozen model, itself and merged, and the merged one's gradient.
	var frozen, merged uint64
	if whole := model.Base(); whole != model {
		frozen = uint64(whole.Layout().Len())
		merged, model = 3*frozen, whole
	}
	if size := uint64(made.PayloadMax()); size > math.MaxUint32 {
		return z, fmt.Errorf("optimizer.%s: a result takes %.1f GB, and members can commit to %.1f GB at most: have less of each block sent",
			s.Optimizer.Kind().Name, float64(size)/1e9, math.MaxUint32/1e9)
	}
	z.Parameters, z.Frozen, z.Model, z.Payload = n, frozen, 4*(n+frozen), uint64(made.PayloadMax())
	z.State, z.Checked = 4*(n+state), 4*uint64(made.StateLen())
	if c, ok := made.(codec.Sliceable); ok && s.Buckets() {
		z.Slice = uint64(c.StateSliceLen())
	}
	if f, ok := made.(codec.Followable); ok {
		z.Update, z.SlicesMax = uint64(f.UpdateLen()), uint64(f.SlicesMax())
	}
	z.Memory = 4*(params*n+states*state+work+merged) + stepBytes(model, MicroBatch*s.Data.Sequence)
	return z, nil
}

// Disk returns about how many bytes a member keeps in its state directory: its state and the next
// one, which replaces it, the checkpoints that it keeps and the next one, and the frozen model.
func (z Sizes) Disk(checkpoints int) uint64 {
	return 2*z.State + 4*z.Parameters*uint64(max(checkpoints, 1)+1) + 4*z.Frozen
}

// stepBytes estimates what a backward pass over rows tokens holds of each layer, and the logits.
func stepBytes(c llama.Config, rows int) uint64 {
	d, heads := c.Hidden, (c.Heads+2*c.KVHeads)*c.HeadDim
	layer := rows * (2*d + heads + c.Heads*c.HeadDim + 2*c.FFN + 2*c.Heads)
	rest := rows * (4*d + 2*heads + 2*c.FFN)
	return 4 * (uint64(c.Layers)*uint64(layer) + uint64(rest))
}
