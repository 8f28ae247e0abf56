package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/founding"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/participant"
)

func runCommand(c console) *cobra.Command {
	return group("run", "Create a run, decide who takes part, and close it",
		`A run trains one model. The key that creates it owns it: the owner decides who takes part, and may pause,
change, end and close the run. Nobody can change its specification.`,
		runCreateCommand(c), runTicketCommand(c), runAllowCommand(c), runPauseCommand(c), runCloseCommand(c))
}

func runCreateCommand(c console) *cobra.Command {
	var r runCreation
	cmd := &cobra.Command{
		Use:   "create -f FILE",
		Short: "Create a run from its specification",
		Long: `Creates a run from its specification, a TOML file; examples/run.toml explains every key. The run
belongs to the key that creates it, which pays a deposit for its place on the chain (a 16384th of all
tokens; none where the chain names who may create runs) and gets it back when the run is closed. With
--dry-run it creates nothing and asks no chain: it checks the specification, and shows learning rate and
batch size over the steps and what a member needs.

If data.manifest is empty, the hash of the data set in data.location (or --data) is filled in. The
published specification, which every participant reads (entrain status RUN --spec), is the complete
one.

With --from the run continues from a checkpoint's model instead of a random one. The model's shape
and the hashes of its parameters and its tokenizer are filled in; the specification must not
contradict them. The data must be prepared with the checkpoint's tokenizer. Participants that have
the checkpoint may name it with join --from; others get the model from each other, or from this
command, which serves it until members hold it, and check its hash. entrain model import makes a
checkpoint of a model from elsewhere, and state directories of join contain some. One at an address
is fetched into the user's cache, as entrain model generate --help says, and members fetch it there.
In a run that exchanges by buckets this command puts the checkpoint into your bucket, if the variables
ENTRAIN_BUCKET and ENTRAIN_BUCKET_READ name it as for join, and members fetch it from there.
Only parameters are carried over: momenta, learning rate, steps and points start fresh.

With --resume it also continues the training of the checkpoint's run: learning rate, position in the
data, batch size, and the optimizer of every member that joins with its old key and state directory.
Steps count from the beginning of the first run. Points and stakes start fresh.`,
		Example: "  entrain run create -f examples/run.toml --dry-run\n  entrain run create -f examples/run.toml --data ./corpus\n  entrain run create -f run.toml --from ./checkpoint --data ./corpus\n  entrain run create -f run.toml --from ./state --resume\n  entrain run create -f run.toml --data ./corpus --chain http://203.0.113.5:7370",
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return r.create(cmd.Context(), c) },
	}
	keyFlag(cmd, &r.keyFile)
	chainFlag(cmd, &r.chain)
	f := cmd.Flags()
	specFlag(cmd, &r.file)
	dataFlag(cmd, &r.data)
	fromFlag(cmd, &r.from)
	f.BoolVar(&r.resume, "resume", false, "with --from: take up the training there, with its optimizers, schedule and data")
	f.BoolVar(&r.dry, "dry-run", false, "create nothing, and show what the specification means")
	f.BoolVar(&r.fewWitnesses, "few-witnesses", false, "create it even if 30 % of its members, colluding, capture its witnesses likelier than 1 in 1,000")
	jsonFlag(cmd, &r.asJSON)
	return cmd
}

// runCreation is what `run create` was asked for.
type runCreation struct {
	file, data, from, keyFile string
	chain                     []string
	resume                    bool // the training of the checkpoint's run, and not only its model
	dry, fewWitnesses, asJSON bool
}

// create creates a run.
func (r runCreation) create(ctx context.Context, c console) error {
	if r.file == "" {
		return errors.New("say which specification with -f FILE; examples/run.toml is one to begin with")
	}
	text, err := atomicfile.ReadBounded(r.file, host.SpecBytesMax)
	if err != nil {
		return fmt.Errorf("specification: %w", err)
	}
	from := r.from
	if from != "" {
		var release func()
		if from, release, err = (checkpointSource{}).local(ctx, c, r.from); err != nil {
			return fmt.Errorf("--from: %w", err)
		}
		defer release()
	}
	draft := founding.Draft{Text: text, Data: r.data, From: from, Address: r.from, Resume: r.resume, FewWitnesses: r.fewWitnesses, Say: c.say}
	if r.dry {
		return r.preview(c, draft)
	}
	s, text, err := draft.Complete()
	if err == nil && from != "" && s.Buckets() && s.Model.FromLocation == "" {
		if draft.Shelf, err = participant.Shelve(ctx, c.env, from); err != nil {
			return fmt.Errorf("--from: members' buckets do not have the model, and yours (ENTRAIN_BUCKET) does not take it: %w", err)
		}
		s, text, err = draft.Complete()
	}
	if err != nil {
		return fmt.Errorf("specification %q: %w", r.file, err)
	}
	owner, _, err := c.ownKey(r.keyFile)
	if err != nil {
		return err
	}
	return c.connected(ctx, r.chain, func(client ledger.Chain) error {
		created, err := founding.Create(ctx, client, owner, s, text)
		if err != nil {
			return err
		}
		if r.asJSON {
			err = c.object(created)
		} else {
			for _, text := range draft.Created(s, client.ChainID()) {
				c.say("%s", text)
			}
		}
		if err != nil || !draft.Gives(s) {
			return err
		}
		return participant.GiveFrom(ctx, client, s.Name, from, c.tell)
	})
}

// preview shows what a specification means.
func (r runCreation) preview(c console, draft founding.Draft) error {
	p, err := draft.Preview(onchain.OnSolana(c.endpoints(r.chain)))
	if err != nil {
		return fmt.Errorf("specification %q: %w", r.file, err)
	}
	return c.print(r.asJSON, p, p.Write)
}

func runPauseCommand(c console) *cobra.Command {
	var a acting
	var resume bool
	var terms []string
	cmd := &cobra.Command{
		Use: "pause RUN | RUN@HOST", Short: "Pause a run, change it while paused, or continue it",
		Long: `Asks the run to pause. In the middle of an epoch it first drains: it applies the results in flight and makes a
checkpoint. Members stay, and nothing is lost. With --end a paused run continues, with an epoch that
begins once enough members are there.

--set changes the pay and the times of a paused run, with the keys of the specification: trust.rate,
scores.emission, times.waiting, times.warmup, times.round_train, times.round_witness, times.cooldown
and times.epoch. What is not named stays; the emission cannot be lowered, nor the rate of a run with
an emission be raised. Points earned so far are paid at the old rate, so the treasury must hold
enough for them, and for a higher emission of the periods that are not settled. After a change of
pay, a shorter time or a longer epoch the pause lasts at least a day, in which members can leave
without a loss; not if nobody but the owner takes part or is owed anything. All this is for the
run's owner.`,
		Example: "  entrain run pause my-run\n  entrain run pause my-run --set times.round_train=5m\n  entrain run pause my-run --end",
		Args:    needRun, ValidArgsFunction: c.completeRuns, SuggestFor: []string{"resume"},
		RunE: func(cmd *cobra.Command, args []string) error {
			run, err := a.on(args[0])
			if err != nil {
				return err
			}
			if len(terms) > 0 {
				change := func(l ledger.Chain, _ key.Public) (host.Body, error) {
					return founding.ChangeRun(cmd.Context(), l, run, terms)
				}
				if err := c.act(cmd.Context(), a, change); err != nil {
					return fmt.Errorf("change run %q: %w", run, err)
				}
				c.say("changed run %q; continue it, after a day if that takes notice, with: entrain run pause %s --end", run, args[0])
				return nil
			}
			body, verb, done := host.ToRun(run, coordinator.Pause{}), "pause", "paused; it stops when the epoch has drained"
			if resume {
				body, verb, done = host.ToRun(run, coordinator.Resume{}), "resume", "resumed"
			}
			return c.send(cmd.Context(), a, body, fmt.Sprintf("%s run %q", verb, run), fmt.Sprintf("run %q %s", run, done))
		},
	}
	a.flags(cmd)
	cmd.Flags().StringArrayVar(&terms, "set", nil, "change a paused run: `KEY=VALUE`, as in its specification; may be repeated")
	cmd.Flags().BoolVar(&resume, "end", false, "end the pause")
	return cmd
}

// completeFor bounds the wait for the chain while a shell completes a word.
const completeFor = time.Second

// completeRuns completes the name of a run.
func (c console) completeRuns(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return c.complete(cmd, args, onchain.RunNames)
}

// complete completes a command's one argument by what the chain has.
func (c console) complete(cmd *cobra.Command, args []string, list func(context.Context, ledger.Chain) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	const only = cobra.ShellCompDirectiveNoFileComp
	if len(args) > 0 {
		return nil, only
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completeFor)
	defer cancel()
	chain, _ := cmd.Flags().GetStringArray("chain")
	client, err := c.dial(ctx, chain, nil)
	if err != nil {
		return nil, only
	}
	defer client.Close()
	names, err := list(ctx, client)
	if err != nil {
		return nil, only
	}
	return names, only
}
