package data

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/data/source"
	"github.com/entrain-network/entrain/tokenizer"
	"github.com/entrain-network/entrain/tokenizer/learn"
	"github.com/entrain-network/entrain/wire"
)

// LearnOptions configure LearnTokenizer.
type LearnOptions struct {
	Vocab           uint32        // tokens
	Format          source.Format // of all sources
	Field           string        // the field or column with the text; "" means source.DefaultField
	HeldOutPermille uint32        // as in PrepareOptions: held-out text is not used
	// text to use, the same share of the front of each source; 0 means 1 GiB
	SampleBytes uint64
	Workers     int                  // 0 means GOMAXPROCS
	Progress    func(learn.Progress) // called now and then, never concurrently; may be nil
}

// sampleBytes is the default amount of text to learn from. More text changes few merges, and all
// distinct words of the text are in memory.
const sampleBytes = 1 << 30

// learntFile records, in the directory of a set in preparation, the hash of the plan that its
// tokenizer was learnt by and the tokenizer's hash.
const learntFile = ".entrain-tokenizer"

// LearnTokenizer learns a tokenizer from the sources of a data set to be prepared in dir, and
// stores its definition there. If an interrupted call stored one for the same options and unchanged
// sources, LearnTokenizer returns it.
func LearnTokenizer(ctx context.Context, dir string, sources []string, o LearnOptions) (*tokenizer.BPE, error) {
	t, err := learnTokenizer(ctx, dir, sources, o)
	if err != nil {
		return nil, fmt.Errorf("make a tokenizer: %w", err)
	}
	return t, nil
}

func learnTokenizer(ctx context.Context, dir string, sources []string, o LearnOptions) (*tokenizer.BPE, error) {
	list, err := source.Open(sources, o.Format, o.Field, o.HeldOutPermille)
	if err != nil {
		return nil, err
	}
	if o.SampleBytes == 0 {
		o.SampleBytes = sampleBytes
	}
	plan := planOf(Manifest{Vocab: o.Vocab, Tokens: o.SampleBytes}, list)
	if t := learnt(dir, plan); t != nil {
		return t, nil
	}
	t, err := learnFrom(ctx, list, o)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	// If dir holds a complete set, keep its tokenizer: Prepare reports any difference.
	if _, err := os.Stat(filepath.Join(dir, manifestFile)); err == nil {
		return t, nil
	}
	if err := writeTokenizer(dir, t); err != nil {
		return nil, err
	}
	hash := t.Hash()
	return t, atomicfile.WriteBytes(filepath.Join(dir, learntFile), 0o644, append(plan[:], hash[:]...))
}

// learnt returns the tokenizer in dir if it was learnt by a plan, or nil.
func learnt(dir string, plan wire.Hash) *tokenizer.BPE {
	b, err := os.ReadFile(filepath.Join(dir, learntFile))
	if err != nil || len(b) != 2*len(wire.Hash{}) || wire.Hash(b[:32]) != plan {
		return nil
	}
	t, err := readTokenizer(dir)
	if err != nil || t.Hash() != wire.Hash(b[32:]) {
		return nil
	}
	bpe, _ := t.(*tokenizer.BPE)
	return bpe
}

func readTokenizer(dir string) (tokenizer.Tokenizer, error) {
	b, err := os.ReadFile(filepath.Join(dir, tokenizerFile))
	if err != nil {
		return nil, err
	}
	return tokenizer.Parse(b)
}

// learnFrom learns from the sources.
func learnFrom(ctx context.Context, sources []source.File, o LearnOptions) (*tokenizer.BPE, error) {
	var total uint64
	for _, s := range sources {
		if s.HasTokens() {
			return nil, fmt.Errorf("%q holds tokens; a tokenizer is learned from text", s.Path)
		}
		if s.IsChat() {
			return nil, fmt.Errorf("%q holds conversations, which need a model's tokenizer, with a chat template; a tokenizer is learned from text", s.Path)
		}
		total += s.Size
	}
	ctx, cancel := context.WithCancel(ctx)
	texts := make(chan []byte)
	var readErr error
	var reading sync.WaitGroup
	defer reading.Wait()
	defer cancel()
	reading.Go(func() {
		defer close(texts)
		for i := range sources {
			// The share is taken of the file's size: for a compressed file, limit counts compressed
			// bytes.
			limit := sources[i].Size
			if total > o.SampleBytes {
				limit = uint64(float64(limit) / float64(total) * float64(o.SampleBytes))
			}
			if readErr = sources[i].Sample(ctx, limit, texts); readErr != nil {
				return
			}
		}
	})
	next := func() ([]byte, error) {
		text, ok := <-texts
		if ok {
			return text, nil
		}
		if readErr != nil {
			return nil, readErr
		}
		return nil, io.EOF
	}
	return learn.Learn(ctx, next, learn.Options{Vocab: o.Vocab, Workers: o.Workers, Progress: o.Progress})
}

// Tokenizer returns the tokenizer of the set: a built-in one, or the one defined in the set's
// directory, whose hash must match the manifest.
func (s *Set) Tokenizer() (tokenizer.Tokenizer, error) {
	if s.mixed != nil {
		return s.mixed.sets[0].Tokenizer()
	}
	if s.remote != nil {
		return s.remote.tokenizer(s.manifest)
	}
	return TokenizerOf(s.dir, s.manifest)
}

// TokenizerOf returns the tokenizer of the data set in dir, whose manifest is m.
func TokenizerOf(dir string, m Manifest) (tokenizer.Tokenizer, error) {
	if m.mix != nil {
		mix, err := ParseMix(m.mix)
		if err != nil {
			return nil, err
		}
		dir = filepath.Join(dir, mix.Components[0].Set)
	}
	b, err := os.ReadFile(filepath.Join(dir, tokenizerFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	t, err := tokenizer.Resolve(m.Tokenizer.Name, m.Tokenizer.Hash, b)
	if err != nil {
		return nil, fmt.Errorf("tokenizer of the data set in %q: %w", dir, err)
	}
	return t, nil
}
