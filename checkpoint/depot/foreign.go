package depot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/tokenizer"
)

// FetchModel downloads a model that is not a checkpoint of entrain, in Hugging Face's layout, into
// the directory dir, which must not exist: config.json, tokenizer.json, what there is of its chat
// template, and the weights, in one file or in those that the index names. Nothing vouches for
// their bytes but the server. It leaves nothing of an incomplete model in dir.
func (d *Depot) FetchModel(ctx context.Context, dir string) error {
	err := d.fetchModel(ctx, dir)
	if err != nil {
		return fmt.Errorf("fetch model from %s: %w", d, err)
	}
	return nil
}

func (d *Depot) fetchModel(ctx context.Context, dir string) error {
	from, err := d.place.source(ctx, true)
	if err != nil {
		return err
	}
	defer from.close()
	f := &fetching{from: from, options: d.options}
	small := make(map[string][]byte)
	for _, file := range []struct {
		name string
		most int
	}{{checkpoint.ConfigFile, checkpoint.ConfigBytesMax}, {checkpoint.IndexFile, checkpoint.IndexBytesMax}, {checkpoint.TokenizerFile, tokenizer.JSONBytesMax},
		{checkpoint.TokenizerConfigFile, tokenizer.JSONBytesMax}, {checkpoint.ChatFile, checkpoint.ChatBytesMax}, {checkpoint.GenerationFile, checkpoint.ConfigBytesMax}} {
		b, err := f.small(ctx, file.name, file.most)
		if missing(err) && file.name != checkpoint.ConfigFile && file.name != checkpoint.TokenizerFile {
			continue
		}
		if err != nil {
			return err
		}
		small[file.name] = b
	}
	if _, err := checkpoint.ParseConfig(small[checkpoint.ConfigFile]); err != nil {
		return err // before gigabytes travel in vain
	}
	weights := []string{checkpoint.WeightsFile}
	if index, ok := small[checkpoint.IndexFile]; ok {
		if weights, err = checkpoint.Shards(index); err != nil {
			return err
		}
	}
	return f.writeDir(ctx, d.String(), dir, func(into *partialDir) error {
		for name, b := range small {
			if err := into.save(name, b); err != nil {
				return err
			}
		}
		for _, name := range weights {
			if err := f.file(ctx, into, name, name, nil); err != nil {
				return err
			}
		}
		return nil
	})
}

// missing reports whether err says that there is no such file.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, bucket.ErrMissing)
}

// small fetches a file of at most the given number of bytes.
func (f *fetching) small(ctx context.Context, file string, most int) ([]byte, error) {
	var all []byte
	for {
		n := min(f.options.piece, int64(most+1-len(all)))
		got, err := f.piece(ctx, file, int64(len(all)), n)
		if err != nil {
			return nil, err
		}
		all = append(all, got.bytes...)
		switch {
		case len(all) > most:
			return nil, fmt.Errorf("%s has more than %d bytes", file, most)
		case int64(len(got.bytes)) < n || int64(len(all)) == got.size:
			return all, nil
		}
	}
}
