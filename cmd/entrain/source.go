package main

import (
	"context"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/checkpoint/depot"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/model"
	"github.com/entrain-network/entrain/serve"
	"github.com/entrain-network/entrain/view"
	"github.com/entrain-network/entrain/wire"
)

// aboutAddresses is what helps say of checkpoints that are elsewhere.
const aboutAddresses = `CHECKPOINT may also be a run: the name of one in which this user takes part on this machine, for its newest
checkpoint there, or RUN, RUN@HOST or a ticket as elsewhere, for the parameters that the run agreed on last.
Those come from its members, or from their buckets, and have the hash that the chain says.
Or it is an address, as join --upload takes it: s3://host/bucket/prefix, hf://owner/name or
https://host/directory. The newest checkpoint there is fetched into the user's cache directory, compared with
its manifest, and used from there the next time. --hash says which one it must be: the hash of the parameters,
as the chain has it (entrain status), makes it certain that the model is the run's. The cache keeps the
checkpoints used last, 20 GB in all, or as many bytes as ENTRAIN_CACHE_MAX says, such as 100GB; a fetch
removes the others. Data that is fetched has a cache of the same size.`

func modelCommand(c console) *cobra.Command {
	return group("model", "Generate text with a model, chat with it, serve, score, import or export it",
		`A checkpoint is a directory with a model, its tokenizer and a manifest of hashes. entrain join writes them
into its state directory, in the layout of Hugging Face.`,
		generateCommand(c), chatCommand(c), serveCommand(c), evalCommand(c), importCommand(c), exportCommand(c))
}

// checkpointSource is where a command has its checkpoint from: a directory or an address.
type checkpointSource struct {
	hash string // of its parameters or its manifest; "" takes any
}

func (s *checkpointSource) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.hash, "hash", "", "`hash` that the parameters must have, as a run agreed on it, hex, in float32; or that the manifest must have,\nwhich on a chain two members name, or one if no other does in time (default: any)")
}

// fetcher fetches what name says, if it is an address.
func (c console) fetcher(name string) (f model.Fetcher, err error) {
	f = model.Fetcher{Getenv: c.env, Progress: c.progress(), Say: c.say}
	if depot.IsAddress(name) {
		f.Cache, err = c.places.Checkpoints(c.env)
	}
	return f, err
}

// local returns a directory with the checkpoint that the user names by a directory, a run or an
// address. The directory stays until release is called.
func (s checkpointSource) local(ctx context.Context, c console, name string) (dir string, release func(), err error) {
	var want wire.Hash
	if s.hash != "" {
		if want, err = wire.ParseHash(s.hash); err != nil {
			return "", nil, fmt.Errorf("--hash %q: want 64 hexadecimal digits", s.hash)
		}
	}
	return c.places.Local(ctx, model.Fetcher{Getenv: c.env, Progress: c.progress(), Say: c.say}, name, want)
}

// open opens the model of a checkpoint, named as in local, until release is called. It answers on
// the device that on names, and on a pool of its own.
func (s checkpointSource) open(ctx context.Context, c console, name string, on model.Machine) (m *serve.Model, release func(), err error) {
	dir, unlock, err := s.local(ctx, c, name)
	if err != nil {
		return nil, nil, err
	}
	on.Pool, on.Tell = exact.NewPool(runtime.GOMAXPROCS(0)), c.tell
	if m, err = serve.Open(dir, on); err != nil {
		on.Pool.Close()
		unlock()
		return nil, nil, err
	}
	return m, func() { m.Close(); on.Pool.Close(); unlock() }, nil
}

// progress tells now and then how many bytes have come.
func (c console) progress() func(done, total uint64) { return view.Transferred(c.say) }

// needCheckpoint are the arguments of commands that read a checkpoint.
var needCheckpoint = between(1, 1, "one checkpoint, a directory, a run or an address")

// completeDirs completes arguments with directories.
func completeDirs(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}
