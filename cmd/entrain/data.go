package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/data/source"
	"github.com/entrain-network/entrain/founding"
	"github.com/entrain-network/entrain/report"
)

func dataCommand(c console) *cobra.Command {
	return group("data", "Prepare, inspect and publish training data",
		`A run trains on a data set: shards of tokens with a manifest of hashes. The manifest's hash stands in the
run's configuration, so every participant trains on the same tokens, wherever it got them from.`,
		dataPrepareCommand(c), dataShowCommand(c), dataPublishCommand(c))
}

func dataPrepareCommand(c console) *cobra.Command {
	p := founding.Dataset{Say: c.say}
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "prepare -o DIR FILE...",
		Short: "Make a data set from text, conversations, tables or token files",
		Long: `Makes a data set from text files, from JSON or tables with a text or a conversation in each row, or from
token files. A directory means the .parquet, .arrow, .jsonl and .json files in it, as in Hugging Face's
repositories and what its datasets library saves; if their names tell the split, only those of --split.
hf://OWNER/NAME means those of a data set on Hugging Face, fetched once, into your cache directory.

Text becomes tokens by --tokenizer: the 256 byte values ("bytes"), a byte-level BPE from the tokenizer.json
of a model such as GPT-2 or Llama 3, or one that is learnt from the files first ("train:32000" for 32,000
tokens). Its definition is kept beside the tokens.

Conversations are messages with role and content, ShareGPT's with from and value, or a question and its
answer, such as Alpaca's instruction, input and output. They are rendered by the chat template of the
tokenizer's directory, as transformers does, and only what the assistant says is learnt.

A part is held out: it is never trained on, and the loss on it measures the model. It is the end of
each text or token file, and of rows a random choice, by content.

The result depends only on the contents and the order of the files, so others who prepare the same
files get the same hash. If interrupted, call it again to continue.

--mix WEIGHT:SET, given once for each set, makes a directory that stands for several prepared sets of one
tokenizer, and is used like one. With the weights 3, 1 and 2, of every six sequences in a row three come from
the first set, one from the second and two from the third, in an order that the run's seed draws. Each set
gives each of its sequences once before any comes again, so a small set with a large weight is read several
times while a large one is read once. The files are linked, not copied, where the file system can.`,
		Example: `  entrain data prepare -o ./corpus book1.txt book2.txt
  entrain data prepare -o ./web --tokenizer train:32000 ./fineweb-edu/sample/10BT
  entrain data prepare -o ./posts --tokenizer ./gpt2/tokenizer.json --field body posts.jsonl.zst
  entrain data prepare -o ./chats --tokenizer ./qwen2.5-0.5b-instruct ./ultrachat_200k
  entrain data prepare -o ./stories hf://roneneldan/TinyStories --tokenizer train:8192
  entrain data prepare -o ./tokens --tokenizer ./gpt2/tokenizer.json --format uint16 shard-*.bin
  entrain data prepare -o ./corpus --mix 3:./web --mix 1:./code --mix 2:./books`,
		Args: func(cmd *cobra.Command, files []string) error {
			if (len(files) == 0) == (len(p.Mix) == 0) {
				return fmt.Errorf("say which files to use, or which sets with --mix: %s", cmd.UseLine())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, files []string) error {
			p.Fetch = c.dataFetcher().Dataset
			m, err := p.Prepare(cmd.Context(), files)
			if errors.Is(err, context.Canceled) {
				c.say("interrupted; the same command goes on from here")
			}
			if err != nil {
				return err
			}
			return c.showData(p.Out, m, asJSON)
		},
	}
	f := cmd.Flags()
	outputFlag(cmd, &p.Out, "data set")
	f.StringVar(&p.Name, "name", "", "`name` of the data set (default: the directory's)")
	f.StringArrayVar(&p.Mix, "mix", nil, "`WEIGHT:SET`: mix prepared data sets instead of preparing files; once for each")
	f.StringVar(&p.Format, "format", "auto", "`format` of the files: "+strings.Join(source.FormatNames(), ", "))
	fieldFlag(cmd, &p.Field)
	f.StringVar(&p.Split, "split", "train", "`part` of a data set whose files to take from directories: train, validation or test")
	f.StringVar(&p.Tokenizer, "tokenizer", "bytes", "`tokenizer`: \"bytes\", \"train:VOCAB\", or a tokenizer.json or\nthe directory of one, such as a checkpoint, whose chat template renders conversations and goes with the data set")
	f.Float64Var(&p.HeldOut, "held-out", 0.05, "`part` that is not trained on, 0 to 0.5")
	jsonFlag(cmd, &asJSON)
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(source.FormatNames(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func dataShowCommand(c console) *cobra.Command {
	var asJSON, verify bool
	var format, field string
	cmd := &cobra.Command{
		Use:   "show DIR|FILE",
		Short: "Show what a data set holds, and its hash; or what is in a file",
		Long: `Shows what a data set holds and its hash. With --verify, every shard is read and compared with the
manifest.

Of a file that a data set could be made from (text, JSON, parquet, arrow, tokens of llm.c or
Megatron) it shows what "data prepare" would find in it.`,
		Example: "  entrain data show ./corpus\n  entrain data show ./corpus --verify\n  entrain data show ./posts.jsonl.zst --field body",
		Args:    needDir,
		RunE: func(cmd *cobra.Command, args []string) error {
			if info, err := os.Stat(args[0]); err == nil && !info.IsDir() {
				return c.showSource(cmd.Context(), args[0], format, field, asJSON)
			}
			m, err := data.ReadManifest(args[0])
			if errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("%w; make a data set with: entrain data prepare -o %q FILE", err, args[0])
			}
			if err != nil {
				return err
			}
			if verify {
				if err := data.Verify(cmd.Context(), args[0], m); err != nil {
					return err
				}
				c.say("all shards are as the manifest says")
			}
			return c.showData(args[0], m, asJSON)
		},
	}
	f := cmd.Flags()
	jsonFlag(cmd, &asJSON)
	f.BoolVar(&verify, "verify", false, "read and verify every shard")
	f.StringVar(&format, "format", "auto", "`format` of the file: "+strings.Join(source.FormatNames(), ", "))
	fieldFlag(cmd, &field)
	return cmd
}

func fieldFlag(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVar(to, "field", "", "`name` of the field or column with the text, the messages or the question\n(default: text, messages, conversations, or instruction with output)")
}

// showSource shows what is in a file of text or tokens.
func (c console) showSource(ctx context.Context, path, format, field string, asJSON bool) error {
	of, err := source.ParseFormat(format)
	if err != nil {
		return fmt.Errorf("--format: %w", err)
	}
	info, err := source.Inspect(ctx, path, of, field)
	if err != nil {
		return err
	}
	return c.print(asJSON, info, func(w io.Writer) error { return report.Source(w, info) })
}

// needDir wants one argument.
var needDir = between(1, 1, "one directory or file")

func (c console) showData(dir string, m data.Manifest, asJSON bool) error {
	d := report.NewDataSet(dir, m)
	if asJSON {
		return c.object(d)
	}
	_, err := fmt.Fprintln(c.out, d.Manifest)
	c.say("%s", d)
	return err
}
