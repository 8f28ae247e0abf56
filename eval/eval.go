// Package eval scores a language model on multiple-choice tasks as EleutherAI's
// lm-evaluation-harness does, so that the results are comparable with published ones.
//
// An item is a context and several choices. The model's score of a choice is the log-likelihood of
// its text after the context, the sum over its tokens. An item counts as correct for
//
//	acc        if the choice of the greatest log-likelihood is the right one
//	acc_norm   if the choice of the greatest log-likelihood per character of its text is
//
// Ties go to the first choice. Context and choice are tokenized as one text; white space at the end
// of the context belongs to the choice (the harness's TemplateLM._encode_pair). A text longer than
// the model's context loses its beginning.
//
// File tasks.go converts each task's records to items. Records are lines of JSON in the form of
// Hugging Face's data sets.
package eval

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf8"

	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/tokenizer"
)

// An Item is one question. Its prompt is Head, Shots and Context.
type Item struct {
	Head    string // what the task is, for each subject; "" of most tasks
	Shots   string // solved examples: see [Shots]
	Context string
	// Before holds a context for each choice in place of Context, where choices differ there; else
	// it is nil.
	Before  []string
	Choices []string // continuations of the context, with a leading space if there is one
	Gold    int      // the right one
}

// A Result is the outcome of a task.
type Result struct {
	Task  string  `json:"task"`
	Items int     `json:"items"`
	Acc   float64 `json:"acc"`
	// standard error of the mean over a sample of items: sqrt(acc(1-acc)/(n-1))
	AccErr  float64     `json:"acc_stderr"`
	Norm    float64     `json:"acc_norm"`
	NormErr float64     `json:"acc_norm_stderr"`
	Scores  [][]float64 `json:"scores,omitempty"` // of each item's choices, in nats
}

// A Scorer computes log-likelihoods with one model. It must not be used concurrently.
type Scorer struct {
	Model     Model
	Tokenizer tokenizer.Tokenizer
	Context   int // tokens that the model can see
}

// A Model reads texts; llama.Generator is one.
type Model interface {
	// Follow reads a text from its beginning, and calls f with the logits after tokens i, i+1 and
	// so on, until f returns false.
	Follow(text []uint32, i int, f func(i int, logits []float32) bool) error
}

// Run scores the items. After each item it calls progress, if not nil, with the number done.
func (s *Scorer) Run(ctx context.Context, task string, items []Item, progress func(done int)) (Result, error) {
	var right, rightNorm int
	r := Result{Task: task, Items: len(items)}
	for i, item := range items {
		if err := ctx.Err(); err != nil {
			return Result{}, err
		}
		scores, err := s.item(item)
		if err != nil {
			return Result{}, fmt.Errorf("%s: item %d: %w", task, i+1, err)
		}
		r.Scores = append(r.Scores, scores)
		best, bestNorm := 0, 0
		norm := func(k int) float64 {
			return scores[k] / float64(utf8.RuneCountInString(strings.TrimPrefix(item.Choices[k], " ")))
		}
		for k := range scores {
			if scores[k] > scores[best] {
				best = k
			}
			if norm(k) > norm(bestNorm) {
				bestNorm = k
			}
		}
		if best == item.Gold {
			right++
		}
		if bestNorm == item.Gold {
			rightNorm++
		}
		if progress != nil {
			progress(i + 1)
		}
	}
	r.Acc, r.AccErr = share(right, len(items))
	r.Norm, r.NormErr = share(rightNorm, len(items))
	return r, nil
}

// share returns the mean of zeros and ones and its standard error.
func share(right, n int) (mean, stderr float64) {
	if n == 0 {
		return 0, 0
	}
	mean = float64(right) / float64(n)
	if n > 1 {
		stderr = math.Sqrt(mean * (1 - mean) / float64(n-1))
	}
	return mean, stderr
}

// item returns the log-likelihood of each choice, in nats.
func (s *Scorer) item(item Item) ([]float64, error) {
	if len(item.Choices) == 0 || item.Gold < 0 || item.Gold >= len(item.Choices) {
		return nil, fmt.Errorf("the right choice is %d of %d", item.Gold, len(item.Choices))
	}
	scores := make([]float64, len(item.Choices))
	for k, choice := range item.Choices {
		v, err := s.choice(item.Prompt(k), choice)
		if err != nil {
			return nil, fmt.Errorf("choice %d: %w", k+1, err)
		}
		scores[k] = v
	}
	return scores, nil
}

// Prompt returns what choice k is the continuation of.
func (item Item) Prompt(k int) string { return item.Head + item.Shots + item.question(k) }

func (item Item) question(k int) string {
	if item.Before != nil {
		return item.Before[k]
	}
	return item.Context
}

// choice returns the log-likelihood of a choice after a context.
func (s *Scorer) choice(before, choice string) (float64, error) {
	tokens, from := s.pair(before, choice)
	if from == len(tokens) {
		return 0, fmt.Errorf("choice %q adds no token", choice)
	}
	// The model sees all tokens but the last, up to its context length.
	if cut := len(tokens) - 1 - s.Context; cut > 0 {
		if cut >= from {
			return 0, fmt.Errorf("%q has %d tokens, more than the model's context of %d", choice, len(tokens)-from, s.Context)
		}
		tokens, from = tokens[cut:], from-cut
	}
	var sum float64
	err := s.Model.Follow(tokens[:len(tokens)-1], from-1, func(i int, logits []float32) bool {
		sum += float64(logits[tokens[i+1]]) - llama.LogSum(logits)
		return true
	})
	return sum, err
}

// pair tokenizes context and choice, and returns the index where the choice starts. It is at least
// 1, since the model needs some input.
func (s *Scorer) pair(before, choice string) (tokens []uint32, from int) {
	bare := strings.TrimRightFunc(before, unicode.IsSpace)
	choice = before[len(bare):] + choice
	if bare == "" {
		tokens = append(tokens, s.Tokenizer.End())
		return s.Tokenizer.Encode(tokens, []byte(choice)), 1
	}
	n := len(s.Tokenizer.Encode(nil, []byte(bare)))
	tokens = s.Tokenizer.Encode(nil, []byte(bare+choice))
	return tokens, min(n, len(tokens))
}

// WriteTable writes a line for each result.
func WriteTable(out io.Writer, results []Result) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "task\titems\tacc\t±\tacc_norm\t±\t")
	for _, r := range results {
		fmt.Fprintf(w, "%s\t%d\t%.4f\t%.4f\t%.4f\t%.4f\t\n", r.Task, r.Items, r.Acc, r.AccErr, r.Norm, r.NormErr)
	}
	return w.Flush()
}
