package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/founding"
	"github.com/entrain-network/entrain/model"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/participant"
	"github.com/entrain-network/entrain/runlog"
	"github.com/entrain-network/entrain/serve"
	"github.com/entrain-network/entrain/web"
)

// defaultWeb is where web serves its pages unless told otherwise.
const defaultWeb = "127.0.0.1:7380"

func webCommand(c console) *cobra.Command {
	var chain []string
	var listen, state string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "web [RUN | RUN@HOST | TICKET]",
		Short: "Show runs in a browser, live",
		Long: `Serves pages that show the runs of a chain live: phases and rounds, members and their pay, curves, and
the steps to join. The pages change nothing, and fetch nothing from elsewhere. The command itself visits
the members of each run that trains, as a guest that the chain names, and hears the losses that they
sign; the pages show the median of each round.

With the state directory of a participant on this machine (--state) they also show held-out losses
and the run's past, offer checkpoints to download, and have a box in which to try the model.

Only this machine can open the pages unless --addr names another address. Then everybody who can
reach the address may look on and try the model, one at a time.`,
		Example: `  entrain web
  entrain web my-run --state ~/.local/share/entrain/runs/my-run-3b6a27bc
  entrain web my-run@203.0.113.5 --addr 0.0.0.0:7380
  entrain web my-run.ticket`,
		Args:              between(0, 1, "one run at most"),
		ValidArgsFunction: c.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			o := web.Options{}
			to, err := onchain.ParseTargetOrChain(args, &chain)
			if err != nil {
				return err
			}
			o.Log = slog.New(slog.NewTextHandler(c.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
			return c.web(cmd.Context(), o, to, chain, listen, state, asJSON)
		},
	}
	chainFlag(cmd, &chain)
	addrFlag(cmd, &listen, defaultWeb)
	stateFlag(cmd, &state, "none")
	jsonFlag(cmd, &asJSON)
	return cmd
}

// webEvent is what web --json prints.
type webEvent struct {
	Event string `json:"event"`
	URL   string `json:"url"`
}

// web serves pages until ctx ends.
func (c console) web(ctx context.Context, o web.Options, to onchain.Target, chain []string, listen, state string, asJSON bool) (err error) {
	o.Only = to.Run
	var log runlog.Head
	if state != "" {
		if log, err = participant.LogOf(to.Run, state); err != nil {
			return err
		}
		to.Run = log.Name
		o.Node = &web.Node{
			Run: to.Run, Log: filepath.Join(state, participant.LogDir), Checkpoints: filepath.Join(state, model.CheckpointsDir), Generate: new(serve.Prompted).Generate,
		}
	}
	client, err := c.dial(ctx, chain, o.Log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	for _, e := range c.endpoints(chain) {
		o.Endpoints = append(o.Endpoints, onchain.Plain(e))
	}
	o.Ear = func(run string, tell func(event.Committed)) web.Ear { return participant.NewEar(client, run, tell) }
	o.Names = client.Names
	// A chain of the same name may be another.
	if r, err := founding.Reached(ctx, client.Endpoints()[0]); err == nil && c.places.Data != "" {
		o.Records = filepath.Join(c.places.Data, "records", fmt.Sprintf("%s-%.8s", client.ChainID(), r.Genesis.String()))
	}
	o.Ledger, o.Runs = client, func(ctx context.Context) ([]string, error) { return onchain.RunNames(ctx, client) }
	if to.Run != "" {
		on, err := onchain.Read(ctx, client, to)
		if err != nil {
			return err
		}
		if err := participant.SameRun(state, log, client.ChainID(), on); err != nil {
			return err
		}
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return fmt.Errorf("--addr %q: %w", listen, err)
	}
	url := "http://" + l.Addr().String() + "/"
	if to.Run != "" {
		url += "runs/" + to.Run
	}
	if err := c.announce(asJSON, webEvent{"listening", url}, "open %s in a browser; Ctrl-C ends it", url); err != nil {
		return errors.Join(err, l.Close())
	}
	return web.New(o).Run(ctx, l)
}
