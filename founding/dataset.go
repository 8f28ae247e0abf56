package founding

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/data/source"
	"github.com/entrain-network/entrain/tokenizer"
	"github.com/entrain-network/entrain/tokenizer/learn"
	"github.com/entrain-network/entrain/view"
)

// Dataset says how a data set is made, in the words of the command line.
type Dataset struct {
	Out     string   // directory
	Name    string   // "": the directory's
	Mix     []string // WEIGHT:SET: prepared sets that the directory stands for, in place of files
	Format  string   // of the files
	Field   string   // of a row, with the text or the conversation; "" finds it
	Split   string   // of directories
	HeldOut float64  // share that is not trained on
	// Tokenizer is "bytes", "train:VOCAB" for one that is learnt from the files, or a tokenizer.json.
	Tokenizer string
	Say       func(format string, args ...any) // tells the progress
	// Fetch brings files of the split from an address here; nil leaves paths as they are.
	Fetch func(ctx context.Context, path, split string) (string, error)
}

// Prepare makes the data set of files at paths, which it changes to where they are.
func (d Dataset) Prepare(ctx context.Context, paths []string) (m data.Manifest, err error) {
	for i := range paths {
		if d.Fetch == nil {
			break
		}
		if paths[i], err = d.Fetch(ctx, paths[i], d.Split); err != nil {
			return m, err
		}
	}
	if d.Out == "" {
		return m, errors.New("say where the data set goes with -o DIR")
	}
	if d.Name == "" {
		abs, err := filepath.Abs(d.Out)
		if err != nil {
			return m, err
		}
		d.Name = data.PlainName(filepath.Base(abs))
	}
	if len(d.Mix) > 0 {
		return d.mix(ctx)
	}
	format, err := source.ParseFormat(d.Format)
	if err != nil {
		return m, fmt.Errorf("--format: %w", err)
	}
	if !(d.HeldOut >= 0 && d.HeldOut <= 0.5) {
		return m, fmt.Errorf("--held-out %v: want 0 to 0.5", d.HeldOut)
	}
	permille := uint32(d.HeldOut*1000 + 0.5)
	files, err := source.Expand(paths, d.Split)
	if err != nil {
		return m, err
	}
	t, err := d.findTokenizer(ctx, files, format, permille)
	if err != nil {
		return m, err
	}
	template := ""
	if _, read := t.(*tokenizer.BPE); read && !strings.HasPrefix(d.Tokenizer, "train:") {
		if template, err = data.ReadChat(d.Tokenizer); err != nil {
			return m, fmt.Errorf("--tokenizer: %w", err)
		}
	}
	var meter view.Meter
	var last data.Progress
	m, err = data.Prepare(ctx, d.Out, files, data.PrepareOptions{
		Name: d.Name, Tokenizer: t, Chat: template, Format: format, Field: d.Field, HeldOutPermille: permille,
		Progress: func(p data.Progress) {
			last = p
			if left, ok := meter.Tick(p.Bytes, p.BytesTotal); ok {
				d.Say("%s of %s read, %s tokens%s", view.Bytes(p.Bytes), view.Bytes(p.BytesTotal), view.Thousands(p.Tokens), left)
			}
		},
	})
	if err == nil && m.Masked {
		d.Say("the assistant says %s of the tokens to train on; the others are read and not learnt", view.Thousands(last.Learnt))
	}
	return m, err
}

// mix makes a directory that stands for several data sets.
func (d Dataset) mix(ctx context.Context) (m data.Manifest, err error) {
	var weights []uint32
	var sets []string
	for _, arg := range d.Mix {
		text, set, ok := strings.Cut(arg, ":")
		weight, err := strconv.ParseUint(text, 10, 32)
		if !ok || err != nil || set == "" {
			return m, fmt.Errorf("--mix %q is not of the form WEIGHT:SET, such as 3:./web", arg)
		}
		weights, sets = append(weights, uint32(weight)), append(sets, set)
	}
	if _, err := data.MakeMix(ctx, d.Out, d.Name, weights, sets); err != nil {
		return m, err
	}
	return data.ReadManifest(d.Out)
}

// findTokenizer returns the tokenizer, which may have to be learnt first.
func (d Dataset) findTokenizer(ctx context.Context, files []string, format source.Format, permille uint32) (tokenizer.Tokenizer, error) {
	if d.Tokenizer == (tokenizer.Bytes{}).Name() {
		return tokenizer.Bytes{}, nil
	}
	number, learns := strings.CutPrefix(d.Tokenizer, "train:")
	if !learns {
		t, err := data.ReadTokenizer(d.Tokenizer)
		if err != nil {
			return nil, fmt.Errorf("--tokenizer: %w", err)
		}
		return t, nil
	}
	vocab, err := strconv.ParseUint(number, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("--tokenizer %q: want a number of tokens, such as train:32000", d.Tokenizer)
	}
	var meter view.Meter
	t, err := data.LearnTokenizer(ctx, d.Out, files, data.LearnOptions{
		Vocab: uint32(vocab), Format: format, Field: d.Field, HeldOutPermille: permille,
		Progress: func(p learn.Progress) {
			if _, ok := meter.Tick(0, 0); !ok {
				return
			}
			if p.MergesGoal == 0 {
				d.Say("making a tokenizer: %s of text read", view.Bytes(p.Bytes))
			} else {
				d.Say("making a tokenizer: %d of %d merges", p.Merges, p.MergesGoal)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	if uint64(t.Vocab()) < vocab {
		d.Say("the text has pairs for a vocabulary of %d only", t.Vocab())
	}
	return t, nil
}
