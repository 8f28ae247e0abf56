package trainer

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/model"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/tokenizer"
	"github.com/entrain-network/entrain/wire"
)

// SameTokenizer returns an error if a data set's tokenizer is not that of the checkpoint that the
// run continues. Either tokenizer may be nil if only its hash is known.
func SameTokenizer(s spec.Spec, m data.Manifest, ofData, ofModel tokenizer.Tokenizer) error {
	if s.Model.Tokenizer == "" || s.Model.Tokenizer == m.Tokenizer.Hash.String() {
		return nil
	}
	is, name := "", "has the hash "+s.Model.Tokenizer
	if ofModel != nil {
		name = fmt.Sprintf("is %q", ofModel.Name())
		if ofData != nil {
			is = "; " + TokenizersDiffer(ofData, ofModel)
		}
	}
	return fmt.Errorf("data set %q was prepared with the tokenizer %q, %s, but that of the checkpoint %s%s: "+
		"its ids would mean other words to the model. Prepare the text with the checkpoint's: entrain data prepare --tokenizer CHECKPOINT/%s",
		m.Name, m.Tokenizer.Name, m.Tokenizer.Hash, name, is, checkpoint.TokenizerFile)
}

// TokenizersDiffer describes how two tokenizers differ.
func TokenizersDiffer(a, b tokenizer.Tokenizer) string {
	if a.Vocab() != b.Vocab() {
		return fmt.Sprintf("they have %d and %d tokens", a.Vocab(), b.Vocab())
	}
	for id := range a.Vocab() {
		x, fault := a.Decode(nil, []uint32{id})
		y, other := b.Decode(nil, []uint32{id})
		if string(x) != string(y) || (fault == nil) != (other == nil) {
			return fmt.Sprintf("the first token that differs is %d, %q and %q", id, x, y)
		}
	}
	return "they have the same tokens, but join or cut them otherwise, or only their files differ"
}

// FindOrigin returns the directory of the checkpoint that the run continues, "" if there is none or
// the run begins with a seed. The checkpoint in asked must be the one; the one that the
// specification names may be elsewhere.
func FindOrigin(s spec.Spec, asked string, log *slog.Logger) (string, error) {
	want, ok := s.From()
	if !ok {
		if asked != "" {
			return "", errors.New("--from: the run does not go on from a checkpoint, its first parameters follow from a seed")
		}
		return "", nil
	}
	dir := asked
	if dir == "" {
		dir = s.Model.FromLocation
	}
	if dir == "" {
		return "", nil
	}
	path, err := OriginIn(dir, want)
	if err == nil {
		return path, nil
	}
	if asked != "" {
		return "", fmt.Errorf("--from: the run goes on from %s: %w", want, err)
	}
	if log != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("the model comes from peers", "from_location", dir, "error", err)
	}
	return "", nil
}

// OriginIn returns the checkpoint in dir, or in the state directory dir, whose parameters have the
// hash want.
func OriginIn(dir string, want wire.Hash) (string, error) {
	if path, err := model.Dir(filepath.Join(dir, model.CheckpointsDir)).Find(want.String()); path != "" || err != nil {
		return path, err
	}
	saved, err := checkpoint.OpenLocal(os.DirFS(dir))
	if err != nil {
		return "", fmt.Errorf("%q: %w", dir, err)
	}
	has := saved.Manifest.Params
	if saved.Manifest.DType != checkpoint.F32.String() {
		m, err := model.Open(dir)
		if err != nil {
			return "", err
		}
		has = m.Hash()
	}
	if has != want {
		return "", fmt.Errorf("the checkpoint %q has the parameters %s", dir, has)
	}
	return dir, nil
}
