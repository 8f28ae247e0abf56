package checkpoint

import (
	"errors"
	"fmt"
	"io"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// OptimizerSuffix is appended to the path of a checkpoint's directory to name the file of the
// writer's own optimizer state.
const OptimizerSuffix = ".optimizer"

// Optimizer is the optimizer state with which one member resumes from a checkpoint. It is private
// to the member and at least as large as the model, so it is stored beside the checkpoint, not in
// it. Training holds its hash, which identifies the right one.
type Optimizer struct {
	Run    wire.Hash  // the run
	Member key.Public // the owner
	Step   uint32     // steps that the checkpoint's parameters have seen
	Params wire.Hash  // merkle.BlobRoot of these parameters
	State  []float32
}

const (
	optimizerMagic       = "entropt1"
	optimizerDomain      = "entrain/optimizer"
	optimizerCheckedSize = 8 + 32 + 32 + 4 + 4 + 8 + 32 + 32
	optimizerRemedy      = "delete the file: the member then begins with a fresh optimizer"
)

// WriteOptimizer writes o, which ReadOptimizer reads. Use it with atomicfile.Write.
func WriteOptimizer(w io.Writer, o Optimizer) error {
	state := tensor.Bytes(o.State)
	b := append([]byte(optimizerMagic), o.Run[:]...)
	b = append(b, o.Member[:]...)
	b = wire.AppendU32(wire.AppendU32(b, o.Step), 0)
	b = wire.AppendU64(b, uint64(len(o.State)))
	b = wire.AppendHash(wire.AppendHash(b, o.Params), merkle.BlobRoot(state))
	b = wire.AppendHash(b, wire.Sum(optimizerDomain, b))
	for _, part := range [][]byte{b, state} {
		if _, err := w.Write(part); err != nil {
			return fmt.Errorf("write optimizer state: %w", err)
		}
	}
	return nil
}

// ReadOptimizer reads what WriteOptimizer wrote, to its end, and also returns the hash of the
// state. It refuses a file whose number of floats is not n before it allocates anything. A damaged
// file is a *CorruptError.
func ReadOptimizer(r io.Reader, n int) (o Optimizer, root wire.Hash, err error) {
	var b [optimizerCheckedSize + 32]byte
	fault := func(format string, args ...any) (Optimizer, wire.Hash, error) {
		return Optimizer{}, wire.Hash{}, &CorruptError{Reason: fmt.Sprintf(format, args...) + "; " + optimizerRemedy}
	}
	if _, err := io.ReadFull(r, b[:]); err != nil {
		if errors.Is(short(err), io.ErrUnexpectedEOF) {
			return fault("it ends inside its header")
		}
		return Optimizer{}, wire.Hash{}, fmt.Errorf("read optimizer state: %w", err)
	}
	if string(b[:len(optimizerMagic)]) != optimizerMagic {
		return fault("it begins with %q instead of %q", b[:len(optimizerMagic)], optimizerMagic)
	}
	if wire.Sum(optimizerDomain, b[:optimizerCheckedSize]) != wire.Hash(b[optimizerCheckedSize:]) {
		return fault("its header does not have its checksum")
	}
	in := wire.NewReader(b[len(optimizerMagic):optimizerCheckedSize])
	o.Run, o.Member, o.Step = in.Hash(), key.Public(in.Hash()), in.U32()
	reserved, count := in.U32(), in.U64()
	o.Params, root = in.Hash(), in.Hash()
	switch {
	case reserved != 0:
		return fault("its header has a field of a later version")
	case count != uint64(n):
		return Optimizer{}, wire.Hash{}, fmt.Errorf("it has %d numbers of optimizer state, this run needs %d: it belongs to another run; %s", count, n, optimizerRemedy)
	}
	if o.State, err = readFloats(r, n, root, "optimizer state"); err != nil {
		return Optimizer{}, wire.Hash{}, err
	}
	if n, err := io.ReadFull(r, make([]byte, 1)); n > 0 {
		return fault("it goes on after its end")
	} else if !errors.Is(err, io.EOF) {
		return Optimizer{}, wire.Hash{}, fmt.Errorf("read optimizer state: %w", err)
	}
	return o, root, nil
}
