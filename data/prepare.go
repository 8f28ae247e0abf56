package data

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/tokenizer"
)

// A Format is what the source files contain.
type Format uint8

// The formats of source files.
const (
	Text   Format = iota // text, which the tokenizer cuts; each file is one document and is followed by the tokenizer's End
	Uint16               // little-endian tokens of 2 bytes, taken as they are
	Uint32               // little-endian tokens of 4 bytes, taken as they are
)

// tokenBytes is the size of a token in a token file, 0 for text.
func (f Format) tokenBytes() int {
	switch f {
	case Uint16:
		return 2
	case Uint32:
		return 4
	}
	return 0
}

// PrepareOptions say what Prepare makes.
type PrepareOptions struct {
	Name            string              // of the data set
	Tokenizer       tokenizer.Tokenizer // of the text; for token files, the one they were made with
	Format          Format              // of all sources
	HeldOutPermille uint32              // the share of each source that is held out, 0..500
	ShardTokens     uint64              // 0 means the constant ShardTokens
	Workers         int                 // that hash and write shards at once; 0 means GOMAXPROCS
	Progress        func(Progress)      // called now and then, never concurrently; may be nil
}

// Progress is how far Prepare has come.
type Progress struct {
	Bytes, BytesTotal uint64 // of the sources
	Tokens            uint64 // made so far
	Shards            int    // finished so far
	Kept              int    // of those, found on disk as they should be
}

// Prepare turns the source files into a data set in dir, which is created if need be, and returns its manifest. The result depends on
// the contents and the order of the sources and on o, not on their names, the machine or Workers.
//
// The held-out part is the end of every source, because a source's sequences resemble each other and each source should count; sequences of
// the two parts share no token. A text is cut after the first line that ends beyond the held-out share's begin.
//
// Run again, it repeats the work but keeps the shards that are already right, so an interrupted or damaged set is completed, and a whole
// one is only verified. The manifest is written last. If there is a manifest already, dir must come out as it says: another set's shards
// are never overwritten.
func Prepare(ctx context.Context, dir string, sources []string, o PrepareOptions) (Manifest, error) {
	m, err := o.manifest()
	if err != nil {
		return Manifest{}, fmt.Errorf("prepare data: %w", err)
	}
	if m, err = prepare(ctx, dir, sources, o, m); err != nil {
		return Manifest{}, fmt.Errorf("prepare data set %q: %w", o.Name, err)
	}
	return m, nil
}

// manifest is the manifest of a set without any shards, checked.
func (o PrepareOptions) manifest() (Manifest, error) {
	if o.Tokenizer == nil {
		return Manifest{}, errors.New("no tokenizer is named")
	}
	if o.HeldOutPermille > 500 {
		return Manifest{}, fmt.Errorf("held-out share of %d permille is more than 500", o.HeldOutPermille)
	}
	m := Manifest{
		Version:     Version,
		Name:        o.Name,
		Tokenizer:   Tokenizer{o.Tokenizer.Name(), o.Tokenizer.Hash()},
		Vocab:       o.Tokenizer.Vocab(),
		TokenBytes:  2,
		ShardTokens: o.ShardTokens,
	}
	if m.Vocab > math.MaxUint16+1 {
		m.TokenBytes = 4
	}
	if m.ShardTokens == 0 {
		m.ShardTokens = ShardTokens
	}
	return m, m.Check()
}

func prepare(ctx context.Context, dir string, sources []string, o PrepareOptions, m Manifest) (Manifest, error) {
	old, err := previous(dir, m)
	if err != nil {
		return Manifest{}, err
	}
	list, err := newSources(sources, o)
	if err != nil {
		return Manifest{}, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return Manifest{}, err
	}
	if o.Workers == 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	w := newShardWriter(dir, m, old, o)
	w.start(ctx, fail, o.Workers)
	for _, s := range list {
		w.total += s.size
	}
	for _, s := range list {
		if err = s.write(ctx, w); err != nil {
			break
		}
	}
	if m, err = w.finish(ctx, err); err != nil {
		return Manifest{}, err
	}
	if err := m.Check(); err != nil {
		return Manifest{}, err
	}
	if m.Tokens == 0 {
		return Manifest{}, errors.New("the sources hold nothing to train on")
	}
	if old != nil {
		if !bytes.Equal(old.Bytes(), m.Bytes()) {
			return Manifest{}, errOther(dir)
		}
		return m, nil
	}
	return m, atomicfile.WriteBytes(filepath.Join(dir, ManifestFile), 0o644, m.Bytes())
}

// previous is the manifest in dir, nil if there is none. It is an error if it is of a set that m will not be.
func previous(dir string, m Manifest) (*Manifest, error) {
	old, err := ReadManifest(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w; delete the manifest to prepare the data anew", err)
	}
	bare := old
	bare.Tokens, bare.HeldOutTokens, bare.Shards, bare.HeldOut = 0, 0, nil, nil
	if !bytes.Equal(bare.Bytes(), m.Bytes()) {
		return nil, errOther(dir)
	}
	return &old, nil
}

// errOther says that dir is taken.
func errOther(dir string) error {
	return fmt.Errorf("%q holds a data set made from other sources or with other options: choose another directory, or delete its %s", dir, ManifestFile)
}
