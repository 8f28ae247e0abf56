package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// A State is what a participant keeps of a run between rounds, to resume after a crash.
type State struct {
	Run       wire.Hash // the run
	Epoch     uint32
	Round     uint32 // Params are those at the start of this round
	Step      uint32 // steps that Params have seen
	Params    []float32
	Optimizer []float32 // private: what codec.Codec.Encode carries from round to round
}

// A StateHeader is the front of a state file, checked only against its own checksum.
type StateHeader struct {
	Run          wire.Hash
	Epoch        uint32
	Round        uint32
	Step         uint32
	ParamsLen    uint64    // how many parameters follow
	OptimizerLen uint64    // how many numbers of optimizer state follow
	Params       wire.Hash // merkle.BlobRoot of the parameters: the hash the run agrees on
	Optimizer    wire.Hash // merkle.BlobRoot of the optimizer state
}

const (
	stateMagic       = "entrain1"
	stateDomain      = "entrain/state"
	stateCheckedSize = 136
	stateHeaderSize  = stateCheckedSize + 32

	// remedy is the advice for a state that cannot be used.
	remedy = "delete the file: the model comes back from the other members, only the optimizer's momentum is lost"
)

// Append appends the bytes of h, its checksum included.
func (h StateHeader) Append(dst []byte) []byte {
	at := len(dst)
	dst = append(dst, stateMagic...)
	dst = append(dst, h.Run[:]...)
	dst = wire.AppendU32(dst, h.Epoch)
	dst = wire.AppendU32(dst, h.Round)
	dst = wire.AppendU32(dst, h.Step)
	dst = wire.AppendU32(dst, 0)
	dst = wire.AppendU64(dst, h.ParamsLen)
	dst = wire.AppendU64(dst, h.OptimizerLen)
	dst = append(dst, h.Params[:]...)
	dst = append(dst, h.Optimizer[:]...)
	sum := wire.Sum(stateDomain, dst[at:])
	return append(dst, sum[:]...)
}

// WriteState writes s, which ReadState reads. Use it with atomicfile.Write, so that a crash leaves
// the previous state.
func WriteState(w io.Writer, s State) error {
	h := StateHeader{
		Run: s.Run, Epoch: s.Epoch, Round: s.Round, Step: s.Step,
		ParamsLen: uint64(len(s.Params)), OptimizerLen: uint64(len(s.Optimizer)),
		Params: merkle.BlobRoot(tensor.Bytes(s.Params)), Optimizer: merkle.BlobRoot(tensor.Bytes(s.Optimizer)),
	}
	for _, b := range [][]byte{h.Append(nil), tensor.Bytes(s.Params), tensor.Bytes(s.Optimizer)} {
		if _, err := w.Write(b); err != nil {
			return fmt.Errorf("write state: %w", err)
		}
	}
	return nil
}

// ReadStateHeader reads the front of a state file: enough to decide whether the rest is of use.
func ReadStateHeader(r io.Reader) (StateHeader, error) {
	var b [stateHeaderSize]byte
	n, err := io.ReadFull(r, b[:])
	if n >= len(stateMagic) && string(b[:len(stateMagic)]) != stateMagic {
		return StateHeader{}, &CorruptError{Reason: fmt.Sprintf("it begins with %q instead of %q: it is not a state file, or one of another version of entrain; %s", b[:len(stateMagic)], stateMagic, remedy)}
	}
	if err != nil {
		return StateHeader{}, ended(err, "inside its header")
	}
	if wire.Sum(stateDomain, b[:stateCheckedSize]) != wire.Hash(b[stateCheckedSize:]) {
		return StateHeader{}, &CorruptError{Reason: "its header does not have its checksum; " + remedy}
	}
	in := wire.NewReader(b[len(stateMagic):stateCheckedSize])
	h := StateHeader{Run: in.Hash(), Epoch: in.U32(), Round: in.U32(), Step: in.U32()}
	reserved := in.U32()
	h.ParamsLen, h.OptimizerLen, h.Params, h.Optimizer = in.U64(), in.U64(), in.Hash(), in.Hash()
	if err := in.Done().OrNil(); err != nil {
		panic("checkpoint: a state's header is " + err.Error())
	}
	if reserved != 0 {
		return StateHeader{}, &CorruptError{Reason: "its header has a field of a later version; " + remedy}
	}
	return h, nil
}

// ReadState reads a state to its end. paramsLen and optimizerLen are the numbers of the run's
// model; it refuses a file with others before it allocates anything. A damaged file is a
// *CorruptError.
func ReadState(r io.Reader, paramsLen, optimizerLen int) (State, error) {
	h, err := ReadStateHeader(r)
	if err != nil {
		return State{}, err
	}
	if h.ParamsLen != uint64(paramsLen) || h.OptimizerLen != uint64(optimizerLen) {
		return State{}, fmt.Errorf("state has %d parameters and %d numbers of optimizer state, the run's model has %d and %d: it is of another model; %s",
			h.ParamsLen, h.OptimizerLen, paramsLen, optimizerLen, remedy)
	}
	s := State{Run: h.Run, Epoch: h.Epoch, Round: h.Round, Step: h.Step}
	if s.Params, err = readFloats(r, paramsLen, h.Params, "parameters"); err != nil {
		return State{}, err
	}
	if s.Optimizer, err = readFloats(r, optimizerLen, h.Optimizer, "optimizer state"); err != nil {
		return State{}, err
	}
	if n, err := io.ReadFull(r, make([]byte, 1)); n > 0 {
		return State{}, &CorruptError{Reason: "it goes on after its end; " + remedy}
	} else if !errors.Is(err, io.EOF) {
		return State{}, fmt.Errorf("read state: %w", err)
	}
	return s, nil
}

// readFloats reads n floats whose bytes have the root want.
func readFloats(r io.Reader, n int, want wire.Hash, what string) ([]float32, error) {
	flat := exact.Make[float32](n)
	var blob merkle.Blob
	buf := make([]byte, min(pieceBytes, 4*n))
	for piece := range slices.Chunk(flat, pieceBytes/4) {
		b := buf[:4*len(piece)]
		if _, err := io.ReadFull(r, b); err != nil {
			return nil, ended(err, "inside its "+what)
		}
		blob.Write(b) // never fails
		tensor.SetBytes(piece, b)
	}
	if blob.Root() != want {
		return nil, &CorruptError{Reason: "its " + what + " do not have their hash; " + remedy}
	}
	return flat, nil
}

// ended converts an unexpected end of the file to a CorruptError.
func ended(err error, where string) error {
	if errors.Is(short(err), io.ErrUnexpectedEOF) {
		return &CorruptError{Reason: "it ends " + where + "; " + remedy}
	}
	return fmt.Errorf("read state: %w", err)
}
