package data

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/tokenizer"
	"github.com/entrain-network/entrain/tokenizer/chat"
)

// ReadTokenizer reads a tokenizer.json, or the one in a directory, such as that of a checkpoint.
func ReadTokenizer(path string) (tokenizer.Tokenizer, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, tokenizerFile)
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

// ReadChat reads the chat template of the model in a directory, or in that of a tokenizer.json. It
// returns "" if there is none.
func ReadChat(path string) (string, error) {
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		path = filepath.Dir(path)
	}
	var files [2][]byte
	for i, name := range []string{"chat_template.jinja", "tokenizer_config.json"} {
		b, err := atomicfile.ReadBounded(filepath.Join(path, name), tokenizer.JSONBytesMax)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		files[i] = b
	}
	text, err := chat.Source(files[0], files[1])
	if err == nil && len(text) > chatBytesMax {
		err = fmt.Errorf("the chat template has %d bytes, a data set's at most %d", len(text), chatBytesMax)
	}
	if err != nil {
		return "", fmt.Errorf("%q: %w", path, err)
	}
	return text, nil
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
