package depot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/tokenizer"
)

// FetchModel downloads a model that is not a checkpoint of entrain, in Hugging Face's layout, into
// the directory dir, which must not exist: config.json, tokenizer.json, what there is of its chat
// template, and the weights, in one file or in those that the index names. Nothing vouches for
// their bytes but the server. It leaves nothing of an incomplete model.
func (d *Depot) FetchModel(ctx context.Context, dir string) error {
	err := d.fetchModel(ctx, dir)
	if err != nil {
		return fmt.Errorf("fetch model from %s: %w", d, err)
	}
	return nil
}

func (d *Depot) fetchModel(ctx context.Context, dir string) error {
	from, err := d.place.source(ctx)
	if err != nil {
		return err
	}
	f := &fetching{from: from, options: d.options}
	small := make(map[string][]byte)
	for _, file := range []struct {
		name string
		most int
	}{{checkpoint.ConfigFile, checkpoint.ConfigBytesMax}, {checkpoint.IndexFile, checkpoint.IndexBytesMax}, {checkpoint.TokenizerFile, tokenizer.JSONBytesMax},
		{checkpoint.TokenizerConfigFile, tokenizer.JSONBytesMax}, {checkpoint.ChatFile, checkpoint.ChatBytesMax}} {
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
	return atomicfile.WriteDir(ctx, dir, func(create atomicfile.Create) error {
		for name, b := range small {
			if err := save(create, name, b); err != nil {
				return err
			}
		}
		for _, name := range weights {
			if err := f.unknown(ctx, create, name); err != nil {
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
		n := min(pieceBytes, int64(most+1-len(all)))
		b, size, err := f.piece(ctx, file, int64(len(all)), n)
		if err != nil {
			return nil, err
		}
		all = append(all, b...)
		switch {
		case len(all) > most:
			return nil, fmt.Errorf("%s has more than %d bytes", file, most)
		case int64(len(b)) < n || int64(len(all)) == size:
			return all, nil
		}
	}
}

// unknown fetches a file whose size and hash nobody stated.
func (f *fetching) unknown(ctx context.Context, create atomicfile.Create, file string) error {
	return f.unknownAs(ctx, create, file, file)
}

// unknownAs is unknown that writes the file under another name.
func (f *fetching) unknownAs(ctx context.Context, create atomicfile.Create, file, as string) (err error) {
	out, err := create(as)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	for at := int64(0); ; {
		b, size, err := f.piece(ctx, file, at, pieceBytes)
		if err != nil {
			return err
		}
		if at == 0 && size > 0 {
			f.total += uint64(size)
		}
		at += int64(len(b))
		if f.done += uint64(len(b)); f.done > f.options.BytesMax {
			return fmt.Errorf("its files have more than %d bytes", f.options.BytesMax)
		}
		if _, err := out.Write(b); err != nil {
			return err
		}
		if f.options.Progress != nil {
			f.options.Progress(f.done, max(f.done, f.total))
		}
		if len(b) < pieceBytes || at == size {
			if size >= 0 && at != size {
				return fmt.Errorf("%s after %d of %d bytes: %w", file, at, size, io.ErrUnexpectedEOF)
			}
			return nil
		}
	}
}
