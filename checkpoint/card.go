package checkpoint

import (
	"fmt"
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
	list("datasets", m.Card.Datasets)
	list("tags", []string{"entrain", "llama", "decentralized-training"})
	b.WriteString("---\n\n")
	fmt.Fprintf(&b, "# %s\n\n", oneLine(m.Run))
	b.WriteString("Trained by [entrain](https://github.com/entrain-network/entrain): a Llama trained by many machines that need not trust each other.\n\n")
	b.WriteString("| | |\n|---|---|\n")
	c := m.Config
	facts := []Fact{
		{"parameters", fmt.Sprint(m.Layout.Len())},
		{"architecture", fmt.Sprintf("%d layers, hidden %d, %d heads of %d (%d for keys and values), feed-forward %d", c.Layers, c.Hidden, c.Heads, c.HeadDim, c.KVHeads, c.FFN)},
		{"context", fmt.Sprintf("%d tokens", c.Context)},
		{"tokenizer", fmt.Sprintf("%s, %d tokens", m.Tokenizer.Name(), m.Tokenizer.Vocab())},
		{"weights", d.String()},
		{"epoch, round, step", fmt.Sprintf("%d, %d, %d", m.Epoch, m.Round, m.Step)},
		{"parameter hash", params.String()},
	}
	for _, f := range append(facts, m.Card.Facts...) {
		fmt.Fprintf(&b, "| %s | %s |\n", oneLine(f.Name), oneLine(f.Value))
	}
	b.WriteString("\nThe parameter hash is the one agreed in the run. manifest.json lists the SHA-256 of every file.\n")
	return []byte(b.String())
}

// oneLine keeps s on one line and within its table cell.
func oneLine(s string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", `\|`)
}
