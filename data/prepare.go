package data

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/data/source"
	"github.com/entrain-network/entrain/tokenizer"
	"github.com/entrain-network/entrain/tokenizer/chat"
	"github.com/entrain-network/entrain/wire"
)

// PrepareOptions configure Prepare.
type PrepareOptions struct {
	Name            string              // of the data set
	Tokenizer       tokenizer.Tokenizer // of the text; for token files, the one they were made with
	Format          source.Format       // of all sources
	Field           string              // with the text or the conversation; "" finds it
	Chat            string              // the model's chat template, which conversations need
	HeldOutPermille uint32              // the share that is held out, 0..500
	ShardTokens     uint64              // 0 means the constant ShardTokens
	Workers         int                 // that encode, hash and write in parallel; 0 means GOMAXPROCS
	Progress        func(Progress)      // called now and then, never concurrently; may be nil
}

// Progress is the progress of Prepare.
type Progress struct {
	Bytes, BytesTotal uint64 // of the sources
	Tokens            uint64 // made so far
	Learnt            uint64 // of those to train on, if others are masked; else 0
	Shards            int    // finished so far
	Kept              int    // finished shards that were already on disk and correct
}

// Prepare turns the source files into a data set in dir, which it creates if necessary, and returns
// its manifest. The result depends on the contents and the order of the sources and on o, not on
// their names, the machine or Workers.
//
// The held-out part of a text or of a file of tokens is its end, because its sequences resemble
// each other and each source should count. The two parts share no token. A text is cut after the
// first line that ends beyond the start of the held-out share. In JSONL and Parquet, a hash of each
// document's text decides whether it is held out, so the same text is never in both parts. Every
// document is followed by the tokenizer's End; empty ones are left out.
//
// A conversation is rendered by the chat template and followed by nothing. What the assistant does
// not say is masked; conversations in which it says nothing are left out.
//
// After an interruption, a call with the same options and unchanged sources resumes the work.
// Otherwise Prepare repeats the work but keeps the shards that are already right, so it completes a
// damaged set and merely verifies a whole one. It writes the manifest last. If dir already has a
// manifest, the result must match it: another set's shards are never overwritten.
func Prepare(ctx context.Context, dir string, sources []string, o PrepareOptions) (Manifest, error) {
	m, err := o.manifest()
	if err != nil {
		return Manifest{}, fmt.Errorf("prepare data: %w", err)
	}
	list, err := source.Open(sources, o.Format, o.Field, o.HeldOutPermille)
	if err == nil {
		m, err = prepare(ctx, dir, list, o, m.of(list))
	}
	if err != nil {
		return Manifest{}, fmt.Errorf("prepare data set %q: %w", o.Name, err)
	}
	return m, nil
}

// manifest returns the checked manifest of a set without any shards.
func (o PrepareOptions) manifest() (Manifest, error) {
	if o.Tokenizer == nil {
		return Manifest{}, errors.New("name a tokenizer")
	}
	if o.HeldOutPermille > 500 {
		return Manifest{}, fmt.Errorf("held-out share of %d permille is more than 500", o.HeldOutPermille)
	}
	m := Manifest{
		Version:     Version,
		Name:        o.Name,
		Tokenizer:   Tokenizer{o.Tokenizer.Name(), o.Tokenizer.Hash()},
		Vocab:       o.Tokenizer.Vocab(),
		TokenBytes:  4,
		ShardTokens: o.ShardTokens,
		Chat:        o.Chat,
	}
	if m.ShardTokens == 0 {
		m.ShardTokens = ShardTokens
	}
	return m, m.Check()
}

// of returns m with how tokens of the sources are kept.
func (m Manifest) of(sources []source.File) Manifest {
	m.Masked = slices.ContainsFunc(sources, func(s source.File) bool { return s.IsChat() })
	if m.Vocab <= m.vocabMax2() {
		m.TokenBytes = 2
	}
	return m
}

func prepare(ctx context.Context, dir string, list []source.File, o PrepareOptions, m Manifest) (Manifest, error) {
	old, err := previous(dir, m)
	if err != nil {
		return Manifest{}, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return Manifest{}, err
	}
	if err := atomicfile.RemoveTemps(dir, tempsAge); err != nil {
		return Manifest{}, err
	}
	// an existing set has the same one: previous compared the hashes
	if err := writeTokenizer(dir, o.Tokenizer); err != nil {
		return Manifest{}, err
	}
	if o.Workers == 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if m, err = writeShards(ctx, dir, list, o, m, old); err != nil {
		return Manifest{}, err
	}
	if old != nil {
		return m, nil
	}
	if err := atomicfile.WriteBytes(filepath.Join(dir, manifestFile), 0o644, m.Bytes()); err != nil {
		return Manifest{}, err
	}
	for _, name := range []string{resumeFile, learntFile} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return Manifest{}, err
		}
	}
	return m, nil
}

// format returns what renders conversations.
func (o PrepareOptions) format() (*chat.Format, error) {
	if o.Chat == "" {
		return nil, errors.New("the files hold conversations, and the tokenizer comes without a chat template: name the directory of a model that has one, or put a chat_template.jinja beside the tokenizer.json")
	}
	return chat.NewFormat(o.Chat, o.Tokenizer)
}

// writeShards writes the missing shards and their leaves, and returns the manifest.
func writeShards(ctx context.Context, dir string, sources []source.File, o PrepareOptions, m Manifest, old *Manifest) (Manifest, error) {
	failed, fail := context.WithCancelCause(context.WithoutCancel(ctx))
	defer fail(nil)
	w := newShardWriter(dir, m, old, o)
	l := &pipeline{sources: sources, writer: w, encoder: o.Tokenizer, plan: planOf(m, sources), resumes: old == nil}
	if m.Masked {
		var err error
		if l.chat, err = o.format(); err != nil {
			return Manifest{}, err
		}
	}
	for _, s := range sources {
		l.before = append(l.before, w.total)
		w.total += s.Size
	}
	var i int
	var at source.Position
	if l.resumes {
		var err error
		if i, at, err = w.resume(ctx, l.plan, sources); err != nil {
			return Manifest{}, err
		}
	}
	w.start(failed, fail)
	m, err := w.finish(failed, l.run(ctx, failed, i, at))
	if err == nil {
		err = m.Check()
		for _, s := range sources {
			err = errors.Join(err, s.CheckUnchanged())
		}
	}
	switch {
	case err != nil:
		return Manifest{}, err
	case m.Tokens == 0:
		return Manifest{}, errors.New("the sources hold no tokens to train on")
	case old != nil && !bytes.Equal(old.Bytes(), m.Bytes()):
		return Manifest{}, errOther(dir)
	}
	return m, w.writeLeaves()
}

// tempsAge is the age at which a partly written file is deleted: younger files may belong to a
// running process.
const tempsAge = time.Hour

// tokenizerFile is the name of the tokenizer's definition in the directory of a data set. The
// manifest has its SHA-256.
const tokenizerFile = "tokenizer.json"

// writeTokenizer stores the tokenizer beside the shards, so that the set can be decoded.
func writeTokenizer(dir string, t tokenizer.Tokenizer) error {
	path := filepath.Join(dir, tokenizerFile)
	if b, err := os.ReadFile(path); err == nil && wire.SHA256(b) == t.Hash() {
		return nil
	}
	return atomicfile.WriteBytes(path, 0o644, t.JSON())
}

// previous returns the manifest in dir, nil if there is none. It is an error if the manifest
// belongs to a set that m cannot become.
func previous(dir string, m Manifest) (*Manifest, error) {
	old, err := ReadManifest(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w; delete the manifest to prepare the data again", err)
	}
	bare := old
	bare.Tokens, bare.HeldOutTokens, bare.Shards, bare.HeldOut = 0, 0, nil, nil
	if !bytes.Equal(bare.Bytes(), m.Bytes()) {
		return nil, errOther(dir)
	}
	return &old, nil
}

// errOther returns the error for a directory that holds another set.
func errOther(dir string) error {
	return fmt.Errorf("%q holds a data set made from other sources or with other options: choose another directory, or delete its %s", dir, manifestFile)
}
