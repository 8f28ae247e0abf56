package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/founding"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/view"
)

// hostOptions are host's flags.
type hostOptions struct {
	founding.Hosting
	join joinOptions // of this machine's member
}

func hostCommand(c console) *cobra.Command {
	var o hostOptions
	cmd := &cobra.Command{
		Use:   "host --data FILE [-f FILE]",
		Short: "Host a run for friends: a chain, the data, a member and a ticket",
		Long: `Starts all that a run needs: a chain of one replica, a server of its data, the run itself, and a
member on this machine. It prints the ticket with which others take part: entrain join TICKET.

--data is a text, a file of JSON lines, a directory of prepared data, or hf://OWNER/NAME, whose train
split is fetched. Without -f the run trains a model of a million parameters, which two laptops do in
minutes; examples/run.toml explains the keys of a specification. With --from it continues from a
checkpoint, which this machine gives to others.

Others must reach three ports of this machine in a row: by default 7370 (the chain), 7371 (the
member, TCP and UDP) and 7372 (the data). --public-ip is the address that they have on the internet.
Without it the ticket works in this machine's own network. The member puts up the stake that the run
wants; where results go through buckets, ENTRAIN_BUCKET and ENTRAIN_BUCKET_READ name its own.

When the run has finished, this machine goes on serving the model: entrain model export TICKET fetches
it, and chat and serve take the ticket too. Ctrl-C stops everything cleanly. The same command, or --home
DIR alone, continues. The ticket stays the same, as long as the address does.`,
		Example: `  entrain host --data book.txt
  entrain host -f run.toml --data ./corpus --public-ip 203.0.113.5
  entrain host -f run.toml --data chats.jsonl --from ./checkpoint
  entrain host --home ./hosted`,
		Args: noArgs, SuggestFor: []string{"serve", "start", "invite"},
		RunE: func(cmd *cobra.Command, _ []string) error { return c.host(cmd.Context(), o) },
	}
	f := cmd.Flags()
	specFlag(cmd, &o.File)
	f.StringVar(&o.Data, "data", "", "`directory` of prepared data, a file of text or of JSON lines, or hf://OWNER/NAME")
	fromFlag(cmd, &o.From)
	f.StringVar(&o.Home, "home", "", "`directory` for everything (default: one named after the run, in your data directory)")
	f.StringVar(&o.PublicIP, "public-ip", "", "public `IP` at which others reach this machine (default: its addresses in private networks)")
	f.IntVar(&o.Port, "port", 7370, "first of three free `ports` in a row")
	f.Var((*view.ByteCount)(&o.join.Upload), "limit-upload", "serve with at most this many `bytes` a second, such as 2MB, a quarter for the data, one for the chain (default: no limit)")
	keyFlag(cmd, &o.join.keyFile)
	workersFlag(cmd, &o.join.Workers)
	o.join.flags(cmd)
	return cmd
}

// hostEvaluates is how often the member of a hosted run measures the model and lets it write.
const hostEvaluates = 50

// host hosts a run, and serves its model once it has finished, until ctx ends.
func (c console) host(ctx context.Context, o hostOptions) (err error) {
	o.Upload = o.join.Upload / 4
	o.join.Upload -= 2 * o.Upload
	if err := o.join.check(); err != nil { // before anything is made
		return err
	}
	if o.From != "" {
		var release func()
		o.Address = o.From
		if o.From, release, err = (checkpointSource{}).local(ctx, c, o.From); err != nil {
			return fmt.Errorf("--from: %w", err)
		}
		defer release()
	}
	if o.Data, err = c.dataFetcher().Dataset(ctx, o.Data, "train"); err != nil {
		return fmt.Errorf("--data: %w", err)
	}
	o.Base, o.Log, o.Say = c.places.Data, o.join.log.Logger(c.err), c.say
	if err := o.Place(); err != nil {
		return err
	}
	if o.Owner, _, err = c.ownKey(o.join.keyFile); err != nil {
		return err
	}
	return o.Hosting.Run(ctx, func(ctx context.Context, h founding.Hosted) error {
		c.own(h.Chain)
		if o.join.asJSON {
			_ = c.object(map[string]string{"event": "hosting", "ticket": h.Ticket.String()})
		}
		c.say("others take part with the next line, if they reach this machine at %s, ports %d to %d:\n\n  entrain join %s\n",
			h.At, h.Port, h.Port+founding.HostPorts-1, h.Ticket)
		j := o.join
		j.Target, j.Endpoints = onchain.Target{Run: h.Ticket.Run, Ticket: &h.Ticket}, []string{h.Endpoint}
		j.Data, j.From, j.State, j.Listen, j.PublicIP = h.Data, h.From, h.Member, []string{h.Listen}, h.PublicIP
		j.Checkpoints, j.Linger, j.Evaluate, j.Stake, j.Mining.Private = 3, -1, hostEvaluates, h.Stake, h.PublicIP == ""
		j.invite = "entrain join TICKET, the line in " + h.File
		return c.join(ctx, j)
	})
}
