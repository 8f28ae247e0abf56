// Package learn creates tokenizers: it learns the merges of a byte-level BPE from text.
//
// The text is cut into words as in GPT-2, and occurrences of each distinct word are counted. The
// most frequent pair of neighbouring tokens is then merged into a new token, repeatedly, until the
// vocabulary is full (Sennrich et al. 2016). Among equally frequent pairs the one with the smaller
// ids is taken, comparing the left one first. So the result depends on the text alone, not on the
// order of its parts or the number of workers. It equals the result of BpeTrainer in Hugging Face's
// tokenizers library with the alphabet of all bytes.
package learn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"sync"

	"github.com/entrain-network/entrain/tokenizer"
)

// wordBytesMax bounds the words used for learning. Longer ones are not words of any language: data
// such as base64 would fill the vocabulary with noise.
const wordBytesMax = 1 << 10

// Options configure Learn.
type Options struct {
	// number of tokens, at least tokenizer.FirstMerged; a short text may yield fewer
	Vocab    uint32
	CountMin uint64         // pairs that occur less often are not merged; 0 means 2
	Workers  int            // 0 means GOMAXPROCS
	Progress func(Progress) // called now and then, never concurrently; may be nil
}

// Progress is the progress of Learn, which reads all text before it merges.
type Progress struct {
	Bytes              uint64 // of text, read so far
	Merges, MergesGoal int    // 0 while reading
}

// Learn creates a tokenizer from the texts that next returns, until it returns io.EOF. Words do not
// span two texts. next is called from one goroutine, and Learn may keep the texts.
func Learn(ctx context.Context, next func() ([]byte, error), o Options) (*tokenizer.BPE, error) {
	if o.Vocab < tokenizer.FirstMerged || o.Vocab > tokenizer.VocabMax {
		return nil, fmt.Errorf("learn a tokenizer: the vocabulary of %d is not in %d..%d", o.Vocab, tokenizer.FirstMerged, tokenizer.VocabMax)
	}
	if o.CountMin == 0 {
		o.CountMin = 2
	}
	if o.Workers == 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	counts, err := count(ctx, next, o)
	if err != nil {
		return nil, fmt.Errorf("learn a tokenizer: %w", err)
	}
	merges, err := newTable(counts, o.Workers).learn(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("learn a tokenizer: %w", err)
	}
	return tokenizer.New(merges)
}

// word is a distinct word.
type word struct {
	text  string
	count int64
}

// count counts the words of all texts, sorted by their bytes.
func count(ctx context.Context, next func() ([]byte, error), o Options) ([]word, error) {
	texts := make(chan []byte)
	found := make([]map[string]int64, o.Workers)
	var workers sync.WaitGroup
	for i := range found {
		found[i] = make(map[string]int64)
		workers.Go(func() { countWords(found[i], texts) })
	}
	err := feed(ctx, texts, next, o)
	close(texts)
	workers.Wait()
	if err != nil {
		return nil, err
	}
	all := found[0]
	for _, m := range found[1:] {
		for text, n := range m {
			all[text] += n
		}
	}
	if len(all) == 0 {
		return nil, errors.New("the sources hold no text")
	}
	words := make([]word, 0, len(all))
	for _, text := range slices.Sorted(maps.Keys(all)) {
		words = append(words, word{text, all[text]})
	}
	return words, nil
}

// feed passes the texts from next to the workers.
func feed(ctx context.Context, texts chan<- []byte, next func() ([]byte, error), o Options) error {
	var p Progress
	for {
		text, err := next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case texts <- text:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		p.Bytes += uint64(len(text))
		if o.Progress != nil {
			o.Progress(p)
		}
	}
}

func countWords(found map[string]int64, texts <-chan []byte) {
	for text := range texts {
		tokenizer.EachWord(text, func(w []byte) {
			if len(w) <= wordBytesMax {
				found[string(w)]++
			}
		})
	}
}
