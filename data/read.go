package data

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/tokenizer"
)

// ReadTokenizer reads a tokenizer.json, or the one in a directory, such as that of a checkpoint.
func ReadTokenizer(path string) (tokenizer.Tokenizer, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, TokenizerFile)
	}
	b, err := atomicfile.ReadBounded(path, tokenizer.JSONBytesMax)
	if err != nil {
		return nil, err
	}
	t, err := tokenizer.Parse(b)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", path, err)
	}
	return t, nil
}

// Verify reads every shard of the data set in dir and compares it with the manifest.
func Verify(ctx context.Context, dir string, m Manifest) error {
	// Any sequence length will do: no sequence is read.
	set, err := Open(ctx, dir, m.Hash(), Options{SequenceTokens: 1})
	if err != nil {
		return err
	}
	return set.Verify(ctx)
}
