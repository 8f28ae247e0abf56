package sim

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"

	"github.com/entrain-network/entrain/codec/all"
	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/data/source"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/tokenizer"
	"github.com/entrain-network/entrain/wire"
)

const (
	// vocab is the number of tokens.
	vocab = 64
	// textTokens is the size of the data set, which fits one chunk, so that evidence about it is
	// short.
	textTokens = 1 << 15
)

// markovText is a text that a model can learn: each token is likely to be followed by the next one
// or the one after. It is a data set with a manifest, from which a referee derives sequences.
func markovText() []byte {
	random := prng.New(wire.Sum("entrain/sim/babble"), "text")
	text := make([]byte, 0, 2*textTokens)
	t := uint64(0)
	for i := range textTokens {
		if i%64 == 0 {
			t = random.Uint64n(vocab)
		}
		text = binary.LittleEndian.AppendUint16(text, uint16(t))
		t = (t + 1 + random.Uint64n(2)) % vocab
	}
	return text
}

// letters is the text's tokenizer: bytes below vocab.
type letters struct{ tokenizer.Bytes }

// Vocab implements tokenizer.Tokenizer.
func (letters) Vocab() uint32 { return vocab }

// prepareData writes the data set into a temporary directory and opens it. done removes the
// directory.
func (n *network) prepareData(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "entrain-sim-")
	if err != nil {
		return err
	}
	n.clean = func() error { return os.RemoveAll(dir) }
	file := filepath.Join(dir, "babble")
	if err := os.WriteFile(file, markovText(), 0o600); err != nil {
		return errors.Join(err, n.clean())
	}
	m, err := data.Prepare(ctx, dir, []string{file}, data.PrepareOptions{Name: "babble", Tokenizer: letters{}, Format: source.Uint16, HeldOutPermille: 30, Workers: 1})
	if err != nil {
		return errors.Join(err, n.clean())
	}
	n.spec.Data.Manifest = m.Hash().String()
	n.set, err = data.Open(ctx, dir, m.Hash(), data.Options{SequenceTokens: uint32(n.spec.Data.Sequence), Seed: n.spec.DataSeed()})
	if err != nil {
		return errors.Join(err, n.clean())
	}
	n.text, err = n.spec.Append(nil)
	if err == nil {
		n.spec, err = spec.Parse(n.text, all.Kinds())
	}
	return err
}
