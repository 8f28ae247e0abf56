package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/entrain-network/entrain/wire"
)

// A Card describes the model for people; it becomes README.md. Empty fields are left out.
type Card struct {
	Datasets []string // the training data
	Facts    []Fact   // more rows of its table
}

// A Fact is a row of a model card's table.
type Fact struct{ Name, Value string }

// The names of facts without which a run has trained the model and agreed on its hash.
const (
	ImportedFrom = "imported from"
	MergedWith   = "merged with the adapters"
)

const (
	cardBytesMax = 64 << 10
	hashFact     = "parameter hash" // the last row before those of Card.Facts
	datasetsKey  = "datasets:"
)

func (c Card) has(name string) bool {
	return slices.ContainsFunc(c.Facts, func(f Fact) bool { return f.Name == name })
}

// Card returns what the checkpoint's README.md says beyond the model, even if somebody has edited
// it. Without that file it is empty.
func (s *Saved) Card() (c Card, err error) {
	b, err := readFile(s.fsys, CardFile, cardBytesMax)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	} else if err != nil {
		return c, err
	}
	datasets, facts := false, false
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		item, isItem := strings.CutPrefix(line, "- ")
		name, value, isRow := strings.Cut(strings.Trim(line, "|"), " | ")
		name, value = strings.TrimSpace(name), strings.TrimSpace(strings.ReplaceAll(value, `\|`, "|"))
		var set string
		switch datasets = line == datasetsKey || datasets && isItem; {
		case datasets && isItem && json.Unmarshal([]byte(item), &set) == nil:
			c.Datasets = append(c.Datasets, set)
		case facts && isRow && line[0] == '|':
			c.Facts = append(c.Facts, Fact{name, value})
		default:
			facts = isRow && name == hashFact
		}
	}
	return c, nil
}

// card returns README.md: a YAML header, which the hub reads, and text. Strings are written as JSON
// strings, which are valid YAML.
func (m Model) card(params wire.Hash, d DType) []byte {
	var b strings.Builder
	list := func(name string, values []string) {
		if len(values) > 0 {
			fmt.Fprintf(&b, "%s:\n", name)
		}
		for _, v := range values {
			fmt.Fprintf(&b, "- %s\n", appendString(nil, v))
		}
	}
	b.WriteString("---\n")
	b.WriteString("library_name: \"transformers\"\npipeline_tag: \"text-generation\"\n")
	list(strings.TrimSuffix(datasetsKey, ":"), m.Card.Datasets)
	tags, origin, agreed := []string{"entrain", "llama", "decentralized-training"}, "a Llama trained by many machines that need not trust each other", "The parameter hash is the one agreed in the run. "
	switch {
	case m.Card.has(MergedWith):
		origin, agreed = "adapters trained by many machines that need not trust each other, merged with the model that they belong to", "The run agreed on the hash of the adapters. "
	case m.Card.has(ImportedFrom):
		tags, origin, agreed = tags[:2], "", ""
	}
	list("tags", tags)
	b.WriteString("---\n\n")
	fmt.Fprintf(&b, "# %s\n\n", oneLine(m.Run))
	if origin != "" {
		fmt.Fprintf(&b, "Trained by [entrain](https://github.com/entrain-network/entrain): %s.\n\n", origin)
	} else {
		b.WriteString("Written by [entrain](https://github.com/entrain-network/entrain), which did not train it.\n\n")
	}
	b.WriteString("| | |\n|---|---|\n")
	c := m.Config
	facts := []Fact{
		{"parameters", fmt.Sprint(m.Layout.Len())},
		{"architecture", fmt.Sprintf("%d layers, hidden %d, %d heads of %d (%d for keys and values), feed-forward %d", c.Layers, c.Hidden, c.Heads, c.HeadDim, c.KVHeads, c.FFN)},
		{"context", fmt.Sprintf("%d tokens", c.Context)},
		{"tokenizer", fmt.Sprintf("%s, %d tokens", m.Tokenizer.Name(), m.Tokenizer.Vocab())},
		{"weights", d.String()},
		{"epoch, round, step", fmt.Sprintf("%d, %d, %d", m.Epoch, m.Round, m.Step)},
		{hashFact, params.String()},
	}
	for _, f := range append(facts, m.Card.Facts...) {
		fmt.Fprintf(&b, "| %s | %s |\n", oneLine(f.Name), oneLine(f.Value))
	}
	fmt.Fprintf(&b, "\n%smanifest.json lists the SHA-256 of every file.\n", agreed)
	return []byte(b.String())
}

// oneLine keeps s on one line and within its table cell.
func oneLine(s string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", `\|`)
}
