package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/data/source"
	"github.com/entrain-network/entrain/view"
)

// DataSet sums up a data set.
type DataSet struct {
	Manifest  string `json:"manifest"` // its hash
	Name      string `json:"name"`
	Tokenizer string `json:"tokenizer"`
	Tokens    uint64 `json:"tokens"` // to train on
	HeldOut   uint64 `json:"held_out_tokens"`
	Shards    int    `json:"shards"`
	Dir       string `json:"dir"`
}

// NewDataSet sums up the data set in dir.
func NewDataSet(dir string, m data.Manifest) DataSet {
	return DataSet{m.Hash().String(), m.Name, m.Tokenizer.Name, m.Tokens, m.HeldOutTokens, len(m.Shards) + len(m.HeldOut), dir}
}

// String returns what the data set holds, in words.
func (d DataSet) String() string {
	text := fmt.Sprintf("data set %q: %s tokens to train on, %s held out, in %d shards; tokenizer %q", d.Name,
		view.Thousands(d.Tokens), view.Thousands(d.HeldOut), d.Shards, d.Tokenizer)
	if d.HeldOut == 0 {
		text += "\nnothing is held out: nobody can measure a model on text that it was not trained on; give more text, or a larger --held-out"
	}
	return text
}

// Source writes what is in a file of text or tokens.
func Source(out io.Writer, info source.Info) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, %s\n", info.Path, info.Format, view.Bytes(info.Bytes))
	if info.TokenBytes > 0 {
		fmt.Fprintf(&b, "%s tokens of %d bytes\n", view.Thousands(info.Tokens), info.TokenBytes)
	} else {
		fmt.Fprintf(&b, "%s of text\n", view.Bytes(info.TextBytes))
	}
	if info.Documents > 0 {
		what := "documents"
		if info.Chat {
			what = "conversations"
		}
		if info.Field != "" {
			what += fmt.Sprintf(" in %q", info.Field)
		}
		fmt.Fprintf(&b, "%s: %s\n", what, view.Thousands(info.Documents))
	}
	if len(info.Columns) > 0 {
		fmt.Fprintf(&b, "columns: %s\n", strings.Join(info.Columns, ", "))
	}
	if len(info.Begin) > 0 {
		fmt.Fprintf(&b, "begins: %.100q\n", info.Begin)
	}
	_, err := io.WriteString(out, b.String())
	return err
}
