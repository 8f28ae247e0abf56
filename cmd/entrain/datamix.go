package main

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/data"
)

func dataMixCommand(c console) *cobra.Command {
	var out, name string
	cmd := &cobra.Command{
		Use:   "mix -o DIR WEIGHT:SET...",
		Short: "Train on several data sets in proportion to weights",
		Long: `Makes a directory that stands for several prepared data sets of one tokenizer, and is used like one. With
the weights 3, 1 and 2, of every six sequences in a row three come from the first set, one from the second
and two from the third, in an order that the run's seed draws. Each set gives its sequences as it does
alone, each once before any comes again, so a small set with a large weight is read several times while a
large one is read once.

The files are linked, not copied, where the file system can. Which sequence is the i-th follows from the
weights and the sets' hashes, so the printed hash defines it for every member; results are checked as ever.
A mix can be served and uploaded like a set.`,
		Example: `  entrain data mix -o ./corpus 3:./web 1:./code 2:./books`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("say which sets to mix: WEIGHT:SET for each, such as 3:./web")
			}
			return nil
		},
		ValidArgsFunction: completeDirs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return fmt.Errorf("say which directory to make with -o DIR")
			}
			if name == "" {
				name = strings.ToLower(filepath.Base(filepath.Clean(out)))
			}
			var weights []uint32
			var sets []string
			for _, arg := range args {
				text, set, ok := strings.Cut(arg, ":")
				weight, err := strconv.ParseUint(text, 10, 32)
				if !ok || err != nil || set == "" {
					return fmt.Errorf("%q is not of the form WEIGHT:SET, such as 3:./web", arg)
				}
				weights, sets = append(weights, uint32(weight)), append(sets, set)
			}
			m, err := data.MakeMix(cmd.Context(), out, name, weights, sets)
			if err != nil {
				return err
			}
			c.say("made the mix %q in %s", m.Name, out)
			_, err = fmt.Fprintln(c.out, m.Hash())
			return err
		},
	}
	f := cmd.Flags()
	f.StringVarP(&out, "out", "o", "", "`directory` to make")
	f.StringVar(&name, "name", "", "`name` of the mix (default: that of the directory)")
	_ = cmd.MarkFlagDirname("out")
	return cmd
}
