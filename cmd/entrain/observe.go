package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/participant"
	"github.com/entrain-network/entrain/tui"
	"github.com/entrain-network/entrain/verify"
	"github.com/entrain-network/entrain/view"
)

// observing are the flags of how a participation is shown. While a window has the terminal, the
// structured log goes to entrain.log in the state directory.
type observing struct {
	asJSON  bool
	plain   bool
	log     participant.Logging
	metrics string // address to serve on; "" serves nothing
	invite  string // the command with which others join; "" if only the owner knows it
}

func (o *observing) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	jsonFlag(cmd, &o.asJSON)
	plainFlag(cmd, &o.plain)
	logFlag(cmd, &o.log)
	f.StringVar(&o.metrics, "metrics", "", "serve /metrics for Prometheus and /healthz on this `address`, such as 127.0.0.1:9100")
}

// terminal reports whether a window can be shown.
func (c console) terminal() bool {
	in, inOK := c.in.(*os.File)
	out, outOK := c.out.(*os.File)
	return inOK && outOK && term.IsTerminal(int(in.Fd())) && term.IsTerminal(int(out.Fd())) && c.env("TERM") != "dumb"
}

// windowed reports whether a participation is shown in a window.
func (o *observing) windowed(c console) bool { return !o.asJSON && !o.plain && c.terminal() }

// windowOptions returns the options for the terminal that this process has.
func (c console) windowOptions() tui.Options {
	return tui.Options{In: c.in, Out: c.out, Env: tui.Environment(c.env)}
}

// observer returns a function that shows events: to programs as lines of JSON, to people in words.
func (c console) observer(asJSON bool, invite string) func(event.Event) {
	if asJSON {
		return func(ev event.Event) {
			_ = c.object(event.Timed{Time: time.Now().UTC().Format(time.RFC3339Nano), Event: ev})
		}
	}
	told := view.Teller{Invite: invite}
	return func(ev event.Event) {
		if text := told.Words(ev); text != "" {
			c.say("%s %s", time.Now().Format(time.TimeOnly), text)
		}
	}
}

// takePart takes part until the run has finished, ctx ends or the user closes the window.
func (o *observing) takePart(ctx context.Context, c console, p *participant.Participant) (err error) {
	if !o.windowed(c) {
		p.Observe = c.observer(o.asJSON, o.invite)
		r, err := p.Record(o.metrics)
		if err != nil {
			return err
		}
		return errors.Join(p.Run(ctx), r.Close())
	}
	opts := c.windowOptions()
	opts.Own, opts.Quit, opts.Invite = p.Key.Public().String(), "leave the run", o.invite
	window := tui.New(opts)
	window.NameOps(verify.OpNames(p.Text))
	r, err := p.Record(o.metrics, window)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	err = window.Show(ctx, nil, false, func(ctx context.Context) error {
		defer context.AfterFunc(ctx, func() {
			if errors.Is(context.Cause(ctx), tui.ErrClosed) {
				c.say("leaving the run ...")
			}
		})()
		go view.KeepNames(ctx, p.Client, window.Called)
		return p.Run(ctx)
	})
	if errors.Is(err, tui.ErrClosed) {
		err = nil
	}
	c.say("%s", tui.Line(window.Snapshot()))
	return err
}
