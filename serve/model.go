// Package serve answers prompts with a model, over HTTP as OpenAI's API does, and proves answers.
//
// An answer is a function of the model, the prompt and the sampling, bit for bit on every machine.
// A Receipt states all of them and the answer, so anyone who has the model can compute the answer
// again: Verify does. A receipt proves what the model answers, not that the seed was drawn fairly:
// a server that draws seeds can choose among answers, so a client that minds sets the seed.
package serve

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/model"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/tokenizer"
	"github.com/entrain-network/entrain/tokenizer/chat"
	"github.com/entrain-network/entrain/wire"
)

// Model is a model in memory, ready to answer. It is safe for concurrent use.
type Model struct {
	Name string // as clients name it

	config  llama.Config
	words   tokenizer.Tokenizer
	ends    []uint32 // tokens that end an answer
	hash    wire.Hash
	pool    *exact.Pool
	decoder *llama.Decoder // others are forked from it
	format  *chat.Format   // nil if there is none, for the reason noChat
	noChat  error
	free    func() // the device
}

// Open reads the model of a checkpoint directory, or of the newest checkpoint of a state directory,
// to answer on a machine. The caller closes it.
func Open(dir string, on model.Machine) (*Model, error) {
	from, err := model.Open(dir)
	if err != nil {
		return nil, err
	}
	m := &Model{Name: from.Saved.Manifest.Run, config: from.Config, hash: from.Hash(), pool: on.Pool}
	if m.words, err = from.Tokenizer(); err != nil {
		return nil, err
	}
	m.ends = []uint32{m.words.End()}
	if eos := from.Saved.Config.EOS; eos != nil && *eos != m.ends[0] {
		m.ends = append(m.ends, *eos)
	}
	template, err := from.Saved.Chat()
	if err != nil {
		return nil, fmt.Errorf("checkpoint %q: %w", from.Dir, err)
	}
	if m.format, m.noChat = chat.NewFormat(template, m.words); template == "" {
		m.format, m.noChat = nil, fmt.Errorf("the checkpoint has no %s, so nothing says how the model converses: have it continue texts (entrain model generate, POST /v1/completions), or import it again from a directory with one", checkpoint.ChatFile)
	}
	if m.decoder, m.free, err = on.NewDecoder(from.Config, from.Params); err != nil {
		return nil, fmt.Errorf("checkpoint %q: %w", from.Dir, err)
	}
	return m, nil
}

// Close frees the device, if one is used. The pool stays open.
func (m *Model) Close() { m.free() }

// Rows returns the tokens that a Server reads at once for that many answers side by side.
func Rows(parallel int) int { return parallel + promptRows }

// Context returns the most tokens of a question and its answer.
func (m *Model) Context() int { return m.config.Context }

// Question is what an answer depends on besides the model.
type Question struct {
	Prompt      []uint32 `json:"prompt"`      // the tokens that the model reads, at least one
	Most        int      `json:"max_tokens"`  // of the answer, at least one
	Temperature float32  `json:"temperature"` // 0 always takes the likeliest token
	TopK        int      `json:"top_k"`       // 0: all
	TopP        float32  `json:"top_p"`       // 1: all
	Seed        string   `json:"seed"`        // 32 bytes in hex
	Stop        []string `json:"stop"`        // at most 5 texts that end the answer, no part of it
}

// Reasons why an answer ends.
const (
	endStop   = "stop"   // a token that ends a text, or one of Question.Stop
	endLength = "length" // Question.Most, or the model's context
)

const (
	stopsMax    = 5 // one of which is the end of a message
	stopBytes   = 256
	receiptName = "entrain/answer/1"
)

// sampling returns how tokens are drawn.
func (q Question) sampling() llama.Sampling {
	return llama.Sampling{Temperature: q.Temperature, TopK: q.TopK, TopP: q.TopP}
}

// check returns the first fault of q.
func (m *Model) check(q Question) error {
	if err := q.sampling().Check(); err != nil {
		return err
	}
	switch seed, err := hex.DecodeString(q.Seed); {
	case err != nil || len(seed) != len(wire.Hash{}):
		return fmt.Errorf("seed: %.80q is not 32 bytes in hex", q.Seed)
	case len(q.Prompt) == 0:
		return errors.New("prompt: it is empty")
	case len(q.Prompt) >= m.config.Context:
		return fmt.Errorf("prompt: %d tokens leave no room in the model's context of %d", len(q.Prompt), m.config.Context)
	case q.Most < 1:
		return fmt.Errorf("max_tokens: %d must be at least 1", q.Most)
	case len(q.Stop) > stopsMax:
		return fmt.Errorf("stop: %d texts are more than %d", len(q.Stop), stopsMax)
	}
	for _, s := range q.Stop {
		if s == "" || len(s) > stopBytes {
			return fmt.Errorf("stop: a text has %d bytes, not 1 to %d", len(s), stopBytes)
		}
	}
	for _, t := range q.Prompt {
		if int64(t) >= int64(m.config.Vocab) {
			return fmt.Errorf("prompt: token %d is beyond the vocabulary of %d", t, m.config.Vocab)
		}
	}
	return nil
}

// answer is what a model says.
type answer struct {
	Tokens []uint32 `json:"answer"` // the one that ends the text included
	End    string   `json:"end"`
	text   []byte
	scored []scored
	untold []scored // the last of them, which job.wait has not passed on
}

// An answering is an answer under way: a function of the question and of the logits that it is
// told, one token's after another.
type answering struct {
	answer
	model *Model
	q     Question
	scoring
	source prng.Source
	most   int // tokens
	sure   int // bytes of text that nothing later takes back
}

// begin returns the answer to a checked question, which has no token yet.
func (m *Model) begin(q Question, s scoring) *answering {
	var seed wire.Hash
	_, _ = hex.Decode(seed[:], []byte(q.Seed)) // check has seen it
	a := &answering{
		answer: answer{Tokens: []uint32{}}, model: m, q: q, scoring: s, source: prng.New(seed, "entrain/sample"),
		most: min(q.Most, m.config.Context-len(q.Prompt)),
	}
	if s.prompt {
		a.scored = append(a.scored, scored{token: q.Prompt[0], chance: math.NaN()})
	}
	return a
}

// next draws a token from the logits and adds it. It reports whether the answer goes on.
func (a *answering) next(logits []float32) (token uint32, more bool) {
	token = a.q.sampling().Choose(logits, &a.source)
	a.Tokens = append(a.Tokens, token)
	if a.scoring.on {
		a.scored = append(a.scored, a.score(token, logits))
	}
	if slices.Contains(a.model.ends, token) {
		a.End, a.sure = endStop, len(a.text)
		return token, false
	}
	before := len(a.text)
	// A model's vocabulary may be larger than its tokenizer's: those tokens have no text.
	if more, err := a.model.words.Decode(a.text, []uint32{token}); err == nil {
		a.text = more
	}
	recent := max(0, before-stopBytes) // a stop that began earlier would have been seen
	if at := stopAt(a.text[recent:], a.q.Stop); at >= 0 {
		a.text, a.End = a.text[:recent+at], endStop
		a.sure = len(a.text)
		return token, false
	}
	if len(a.Tokens) >= a.most {
		a.End, a.sure = endLength, len(a.text)
		return token, false
	}
	a.sure = recent + certain(a.text[recent:], a.q.Stop)
	return token, true
}

// answer computes the answer to a checked question with reader, which need not read again what the
// question before began with. It passes the text to emit as it becomes certain.
func (m *Model) answer(ctx context.Context, reader *llama.Generator, q Question, emit func(text []byte) error) (answer, error) {
	a, said := m.begin(q, scoring{}), 0
	logits, err := reader.Read(q.Prompt[reader.Keep(q.Prompt):]...)
	for more := true; more; {
		if err = cmp.Or(ctx.Err(), err); err != nil {
			return a.answer, err
		}
		var token uint32
		token, more = a.next(logits)
		if a.sure > said {
			if err := emit(a.text[said:a.sure]); err != nil {
				return a.answer, err
			}
			said = a.sure
		}
		if more {
			logits, err = reader.Read(token)
		}
	}
	return a.answer, nil
}

// stopAt returns where the first of the texts begins in b, or -1.
func stopAt(b []byte, stops []string) int {
	first := -1
	for _, s := range stops {
		if i := bytes.Index(b, []byte(s)); i >= 0 && (first < 0 || i < first) {
			first = i
		}
	}
	return first
}

// certain returns the length of b without what may become the beginning of a stop, or of a
// character that is not yet complete.
func certain(b []byte, stops []string) int {
	n := len(b)
	for _, s := range stops {
		for i := min(len(s)-1, len(b)); i > 0; i-- {
			if bytes.HasSuffix(b, []byte(s[:i])) {
				n = min(n, len(b)-i)
				break
			}
		}
	}
	for i := n - 1; i >= max(0, n-utf8.UTFMax); i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:n]) {
				return i
			}
			break
		}
	}
	return n
}

// A Receipt states an answer and all that determines it. Its JSON is what servers attach to
// answers.
type Receipt struct {
	Kind      string `json:"receipt"`   // "entrain/answer/1"
	Model     string `json:"model"`     // hash of the parameters, in hex
	Tokenizer string `json:"tokenizer"` // hash of tokenizer.json, in hex
	Numerics  string `json:"numerics"`  // of the products: "exact" or "exact8"
	Question
	answer
}

// receipt returns the receipt of an answer.
func (m *Model) receipt(q Question, a answer) *Receipt {
	if q.Stop == nil {
		q.Stop = []string{}
	}
	return &Receipt{Kind: receiptName, Model: m.hash.String(), Tokenizer: m.words.Hash().String(), Numerics: m.config.Numerics.String(), Question: q, answer: a}
}

// receiptBytes is the most bytes of a file with a receipt.
const receiptBytes = 16 << 20

// Stated is a receipt, and the text that a file states beside it: "" if none.
type Stated struct {
	Receipt
	Text string
}

// ReadReceipts reads receipts from a file, which holds one or the answers of a Server with theirs.
func ReadReceipts(path string) ([]Stated, error) {
	b, err := atomicfile.ReadBounded(path, receiptBytes)
	if err != nil {
		return nil, err
	}
	list, err := parseReceipts(b)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", path, err)
	}
	return beside(b, list), nil
}

// beside adds the texts of the answers in b to their receipts.
func beside(b []byte, list []Receipt) []Stated {
	var whole struct {
		Choices []struct {
			Text    string `json:"text"`
			Message struct {
				Content string `json:"content"`
			} `json:"message"`
		} `json:"choices"`
	}
	err := json.Unmarshal(b, &whole)
	stated := make([]Stated, len(list))
	for i, r := range list {
		stated[i].Receipt = r
		if err == nil && i < len(whole.Choices) {
			stated[i].Text = cmp.Or(whole.Choices[i].Text, whole.Choices[i].Message.Content)
		}
	}
	return stated
}

// parseReceipts reads a receipt, or the receipts of answers, at least one. A field that is not
// known is an error.
func parseReceipts(b []byte) ([]Receipt, error) {
	var whole struct {
		Choices []struct {
			Receipt json.RawMessage `json:"receipt"`
		} `json:"choices"`
	}
	if err := json.Unmarshal(b, &whole); err != nil {
		return nil, fmt.Errorf("no receipt: %w", err)
	}
	texts := [][]byte{b}
	if len(whole.Choices) > 0 {
		texts = nil
	}
	for i, c := range whole.Choices {
		if len(c.Receipt) == 0 {
			return nil, fmt.Errorf("answer %d has no receipt; a server attaches one with --receipts", i)
		}
		texts = append(texts, c.Receipt)
	}
	list := make([]Receipt, len(texts))
	for i, text := range texts {
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(&list[i]); err != nil {
			return nil, fmt.Errorf("no receipt: %w", err)
		}
		if kind := list[i].Kind; kind != receiptName {
			return nil, fmt.Errorf("no receipt: \"receipt\" is %.80q, not %q; a server attaches one with --receipts", kind, receiptName)
		}
	}
	return list, nil
}

// ErrAnswer reports that the model does not give the answer that a receipt states.
var ErrAnswer = errors.New("this is not what the model answers")

// VerifyStated is Verify, but the text beside the receipt must be the answer's, after that of the
// prompt or not. It also returns what the receipt says was asked: the server that gave it may have
// asked something else than its client.
func (m *Model) VerifyStated(ctx context.Context, s Stated) (asked, text string, err error) {
	if text, err = m.Verify(ctx, s.Receipt); err != nil {
		return "", "", err
	}
	asked = m.echo(s.Prompt)
	before, ok := strings.CutSuffix(s.Text, strings.ToValidUTF8(text, "\uFFFD"))
	if s.Text != "" && (!ok || before != "" && before != asked && before != m.echo(s.Prompt[1:])) {
		return "", "", fmt.Errorf("the text beside the receipt is not the answer: %w", ErrAnswer)
	}
	return asked, text, nil
}

// Verify computes the answer of a receipt again, and returns its text. The error is ErrAnswer if
// the answer is another; other errors mean that nothing could be verified, as with another model.
func (m *Model) Verify(ctx context.Context, r Receipt) (text string, err error) {
	for _, f := range []struct{ what, said, is string }{
		{"model", r.Model, m.hash.String()}, {"tokenizer", r.Tokenizer, m.words.Hash().String()},
		{"numerics", r.Numerics, m.config.Numerics.String()},
	} {
		if f.said != f.is {
			return "", fmt.Errorf("the receipt is for another %s, %.80q; here it is %q", f.what, f.said, f.is)
		}
	}
	if err := m.check(r.Question); err != nil {
		return "", fmt.Errorf("the receipt asks what cannot be asked: %w", err)
	}
	a := m.begin(r.Question, scoring{})
	stated := r.Tokens[:min(len(r.Tokens), a.most)]
	if len(stated) == 0 {
		return "", fmt.Errorf("it has no token: %w", ErrAnswer)
	}
	if i := slices.IndexFunc(stated, func(t uint32) bool { return int64(t) >= int64(m.config.Vocab) }); i >= 0 {
		stated = stated[:i+1] // the last is not read
	}
	// The model reads what is stated, many tokens at once, which is much faster than to answer. Its
	// logits are those of its answer up to the first token that is another.
	read := append(slices.Clone(r.Prompt), stated[:len(stated)-1]...)
	more, wrong := true, -1
	err = m.decoder.Generator().Follow(read, len(r.Prompt)-1, func(_ int, logits []float32) bool {
		at, token := len(a.Tokens), uint32(0)
		if token, more = a.next(logits); token != stated[at] {
			wrong = at
		}
		return more && wrong < 0 && ctx.Err() == nil
	})
	switch err := cmp.Or(ctx.Err(), err); {
	case err != nil:
		return "", err
	case wrong >= 0:
		return "", fmt.Errorf("token %d of the answer is %d: %w", wrong, a.Tokens[wrong], ErrAnswer)
	case more:
		return "", fmt.Errorf("it ends after %d tokens, and the model goes on: %w", len(stated), ErrAnswer)
	case len(r.Tokens) != len(a.Tokens) || r.End != a.End:
		return "", fmt.Errorf("it has %d tokens and ends by %q, the model's %d and by %q: %w", len(r.Tokens), r.End, len(a.Tokens), a.End, ErrAnswer)
	}
	return string(a.text), nil
}
