package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/tokenizer"
)

func dataCommand(c console) *cobra.Command {
	return group("data", "Prepare what a run trains on",
		`A run trains on a data set: shards of tokens with a manifest of hashes. The manifest's hash stands in the
run's configuration, so every participant trains on the same tokens, wherever it got them from.`,
		dataPrepareCommand(c), dataShowCommand(c))
}

func dataPrepareCommand(c console) *cobra.Command {
	var out, name, format string
	var heldOut float64
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "prepare -o DIR FILE...",
		Short: "Make a data set from text or token files",
		Long: `Makes a data set from files of text, cut into bytes, or of tokens. A part of each file is held out: it is
never trained on, and the loss on it is what the model is judged by. The result depends on the
contents and the order of the files only, so others who prepare the same files get the same hash.

Interrupted, it goes on where it was when called again.`,
		Example: `  entrain data prepare -o ./corpus book1.txt book2.txt
  entrain data prepare -o ./corpus --format uint16 --name tokens shard-*.bin`,
		Args: needFiles,
		RunE: func(cmd *cobra.Command, files []string) error {
			if out == "" {
				return errors.New("say where the data set goes with -o DIR")
			}
			m, err := prepareData(cmd, c, out, name, format, heldOut, files)
			if err != nil {
				return err
			}
			return c.showData(out, m, asJSON)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&out, "out", "o", "", "`directory` of the data set")
	f.StringVar(&name, "name", "", "name of the data set (default: the directory's)")
	f.StringVar(&format, "format", "text", "what the files hold: text, uint16 or uint32 (little-endian tokens)")
	f.Float64Var(&heldOut, "held-out", 0.05, "share of each file that is not trained on, 0 to 0.5")
	f.BoolVar(&asJSON, "json", false, "print a JSON object")
	_ = cmd.MarkFlagDirname("out")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "uint16", "uint32"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func needFiles(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("say which files to use: %s", cmd.UseLine())
	}
	return nil
}

func prepareData(cmd *cobra.Command, c console, out, name, format string, heldOut float64, files []string) (data.Manifest, error) {
	if name == "" {
		abs, err := filepath.Abs(out)
		if err != nil {
			return data.Manifest{}, err
		}
		name = plainName(filepath.Base(abs))
	}
	formats := map[string]data.Format{"text": data.Text, "uint16": data.Uint16, "uint32": data.Uint32}
	of, ok := formats[format]
	if !ok {
		return data.Manifest{}, fmt.Errorf("--format %q: there are text, uint16 and uint32", format)
	}
	if !(heldOut >= 0 && heldOut <= 0.5) {
		return data.Manifest{}, fmt.Errorf("--held-out %v: want 0 to 0.5", heldOut)
	}
	last := time.Now()
	return data.Prepare(cmd.Context(), out, files, data.PrepareOptions{
		Name: name, Tokenizer: tokenizer.Bytes{}, Format: of, HeldOutPermille: uint32(heldOut*1000 + 0.5),
		Progress: func(p data.Progress) {
			if time.Since(last) > progressEvery {
				last = time.Now()
				c.say("%s of %s", bytesText(p.Bytes), bytesText(p.BytesTotal))
			}
		},
	})
}

// progressEvery is how often long work tells how far it has come.
const progressEvery = 2 * time.Second

// plainName makes a name that a manifest takes out of a file's name: "Isaac.Newton-Opticks.txt" becomes "isaac.newton-opticks.txt".
func plainName(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, s)
	s = strings.TrimLeft(s, ".-")
	if s == "" {
		return "data"
	}
	return s[:min(len(s), data.NameBytesMax)]
}

func dataShowCommand(c console) *cobra.Command {
	var asJSON, verify bool
	cmd := &cobra.Command{
		Use:     "show DIR",
		Short:   "Show what a data set holds, and its hash",
		Long:    "Shows what a data set holds and its hash. With --verify, every shard is read and compared with the manifest.",
		Example: "  entrain data show ./corpus\n  entrain data show ./corpus --verify",
		Args:    needDir,
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := data.ReadManifest(args[0])
			if errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("%w: %q is no data set; make one with: entrain data prepare -o %q FILE", err, args[0], args[0])
			}
			if err != nil {
				return err
			}
			if verify {
				// Any sequence length will do: no sequence is read.
				set, err := data.Open(cmd.Context(), args[0], m.Hash(), data.Options{SequenceTokens: 1})
				if err == nil {
					err = set.Verify(cmd.Context())
				}
				if err != nil {
					return err
				}
				c.say("all shards are as the manifest says")
			}
			return c.showData(args[0], m, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	cmd.Flags().BoolVar(&verify, "verify", false, "read and verify every shard")
	return cmd
}

func needDir(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("say one directory: %s", cmd.UseLine())
	}
	return nil
}

func (c console) showData(dir string, m data.Manifest, asJSON bool) error {
	if asJSON {
		return c.object(struct {
			Manifest  string `json:"manifest"`
			Name      string `json:"name"`
			Tokenizer string `json:"tokenizer"`
			Tokens    uint64 `json:"tokens"`
			HeldOut   uint64 `json:"held_out_tokens"`
			Shards    int    `json:"shards"`
			Dir       string `json:"dir"`
		}{m.Hash().String(), m.Name, m.Tokenizer.Name, m.Tokens, m.HeldOutTokens, len(m.Shards) + len(m.HeldOut), dir})
	}
	_, err := fmt.Fprintf(c.out, "%s\n", m.Hash())
	c.say("data set %q: %s tokens to train on, %s held out, in %d shards; tokenizer %q", m.Name,
		thousands(m.Tokens), thousands(m.HeldOutTokens), len(m.Shards)+len(m.HeldOut), m.Tokenizer.Name)
	return err
}
