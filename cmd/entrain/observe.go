package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/metrics"
	"github.com/entrain-network/entrain/participant"
	"github.com/entrain-network/entrain/runlog"
	"github.com/entrain-network/entrain/tui"
	"github.com/entrain-network/entrain/verify"
	"github.com/entrain-network/entrain/view"
)

// observing is how a participation is shown and recorded. What it leaves lies in the state directory:
//
//	log/             the event log, for entrain watch --replay
//	metrics.jsonl    one object a step
//	tensorboard/     for tensorboard --logdir
//	entrain.log      what would go to standard error, while a window has the terminal
type observing struct {
	asJSON  bool
	plain   bool
	noColor bool
	verbose bool
	level   string
	format  string
	metrics string // address to serve on; "" serves nothing
}

func (o *observing) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	jsonFlag(cmd, &o.asJSON)
	windowFlags(cmd, &o.plain, &o.noColor)
	verboseFlag(cmd, &o.verbose)
	f.StringVar(&o.level, "log-level", "warn", "least `level` of the structured log on standard error: debug, info, warn or error")
	f.StringVar(&o.format, "log-format", "text", "`format` of that log: text or json")
	f.StringVar(&o.metrics, "metrics", "", "serve /metrics for Prometheus and /healthz on this `address`, such as 127.0.0.1:9100")
}

// windowFlags are those of commands that show a window on a terminal.
func windowFlags(cmd *cobra.Command, plain, noColor *bool) {
	cmd.Flags().BoolVar(plain, "plain", false, "print lines, also on a terminal")
	cmd.Flags().BoolVar(noColor, "no-color", false, "use no colours (also: NO_COLOR in the environment)")
}

// logger makes the structured log.
func (o *observing) logger(out io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.level)); err != nil {
		return nil, fmt.Errorf("--log-level %q: want debug, info, warn or error", o.level)
	}
	if o.verbose {
		level = slog.LevelDebug
	}
	opts := &slog.HandlerOptions{Level: level}
	switch o.format {
	case "text":
		return slog.New(slog.NewTextHandler(out, opts)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(out, opts)), nil
	}
	return nil, fmt.Errorf("--log-format %q: want text or json", o.format)
}

// terminal tells whether a window can be shown.
func (c console) terminal() bool {
	in, inOK := c.in.(*os.File)
	out, outOK := c.out.(*os.File)
	return inOK && outOK && term.IsTerminal(int(in.Fd())) && term.IsTerminal(int(out.Fd())) && c.env("TERM") != "dumb"
}

// windowed tells whether a participation is shown in a window.
func (o *observing) windowed(c console) bool { return !o.asJSON && !o.plain && c.terminal() }

// windowOptions are those for the terminal that this process has.
func (c console) windowOptions(noColor bool) tui.Options {
	var env []string
	for _, name := range []string{"TERM", "COLORTERM", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "TERM_PROGRAM", "TMUX", "SSH_TTY", "WT_SESSION", "LANG", "LC_ALL"} {
		if v := c.env(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return tui.Options{In: c.in, Out: c.out, Env: env, NoColor: noColor || c.env("NO_COLOR") != ""}
}

// systemLogBytesMax is after how many bytes entrain.log begins anew.
const systemLogBytesMax = 8 << 20

// systemLog opens the file that takes the structured log while a window has the terminal.
func systemLog(dir string) (*os.File, error) {
	path := filepath.Join(dir, "entrain.log")
	mode := os.O_WRONLY | os.O_CREATE | os.O_APPEND
	if info, err := os.Stat(path); err == nil && info.Size() > systemLogBytesMax {
		mode |= os.O_TRUNC
	}
	f, err := os.OpenFile(path, mode, 0o644)
	if err != nil {
		return nil, fmt.Errorf("log file: %w", err)
	}
	return f, nil
}

// recording is a participation being recorded.
type recording struct {
	writer *runlog.Writer
	server *metrics.Server
}

// record begins to record a participation; more sinks are shown it as well. The recording must be closed.
func (o *observing) record(c console, p *participant.Participant, sinks ...runlog.Sink) (r *recording, err error) {
	lines, err := metrics.NewJSONLines(filepath.Join(p.State, "metrics.jsonl"))
	if err != nil {
		return nil, err
	}
	board, err := metrics.NewTensorBoard(filepath.Join(p.State, "tensorboard"), time.Now())
	if err != nil {
		return nil, errors.Join(err, lines.Close())
	}
	if err := atomicfile.WriteBytes(filepath.Join(p.State, specName), 0o644, p.Text); err != nil {
		return nil, errors.Join(fmt.Errorf("specification: %w", err), lines.Close(), board.Close())
	}
	gauges := metrics.New(time.Now)
	gauges.PeersFrom(p.Peers)
	r = &recording{}
	r.writer, err = runlog.Create(filepath.Join(p.State, "log"), runlog.Options{
		Sinks: append([]runlog.Sink{lines, board, gauges}, sinks...), Log: p.Log, Chain: p.Client.ChainID(), Own: p.Key.Public().String(),
	})
	if err != nil {
		return nil, errors.Join(err, lines.Close(), board.Close())
	}
	if o.metrics != "" {
		if r.server, err = metrics.Serve(o.metrics, gauges.Handler(r.writer.Dropped), p.Log); err != nil {
			return nil, errors.Join(err, r.close())
		}
		c.say("metrics on http://%s/metrics", r.server.Addr())
	}
	return r, nil
}

// specName is the file in a state directory that holds the run's specification, for people and for those who read the log later.
const specName = "spec.toml"

// opsBeside names the operations of the run whose log is at a path: by the specification in the state directory that the log is in, if
// there is one.
func opsBeside(log string) func(sequences, op uint32) string {
	dir := filepath.Clean(log)
	for range 2 { // a log is a directory, or a file in it
		dir = filepath.Dir(dir)
		if text, err := atomicfile.ReadBounded(filepath.Join(dir, specName), host.SpecBytesMax); err == nil {
			return verify.OpNames(text)
		}
	}
	return func(uint32, uint32) string { return "" }
}

func (r *recording) close() error {
	errs := []error{r.writer.Close()}
	if r.server != nil {
		errs = append(errs, r.server.Close())
	}
	return errors.Join(errs...)
}

// timed is an event with the time it happened.
type timed struct {
	Time  string      `json:"time"`
	Event event.Event `json:"-"`
}

// MarshalJSON returns one object of the time and the event.
func (t timed) MarshalJSON() ([]byte, error) {
	type head timed
	return event.Marshal(head(t), t.Event)
}

// observer returns what shows a participant's events: to programs as lines of JSON, to people in words.
func (c console) observer(asJSON bool) func(event.Event) {
	if asJSON {
		return func(ev event.Event) { _ = c.object(timed{time.Now().UTC().Format(time.RFC3339Nano), ev}) }
	}
	var told view.Teller
	return func(ev event.Event) {
		if text := told.Words(ev); text != "" {
			c.say("%s %s", time.Now().Format(time.TimeOnly), text)
		}
	}
}

// takePart takes part until the run has finished, ctx ends or the window is closed, and shows and records it.
func (o *observing) takePart(ctx context.Context, c console, p *participant.Participant) (err error) {
	if !o.windowed(c) {
		r, err := o.record(c, p)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, r.close()) }()
		show := c.observer(o.asJSON)
		p.Observe = func(ev event.Event) {
			r.writer.Event(time.Now(), ev)
			show(ev)
		}
		return p.Run(ctx)
	}
	opts := c.windowOptions(o.noColor)
	opts.Own, opts.Quit = p.Key.Public().String(), "leave the run"
	window := tui.New(opts)
	window.NameOps(verify.OpNames(p.Text))
	r, err := o.record(c, p, window)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	p.Observe = func(ev event.Event) { r.writer.Event(time.Now(), ev) }
	err = window.Show(ctx, nil, false, func(ctx context.Context) error {
		defer context.AfterFunc(ctx, func() {
			if errors.Is(context.Cause(ctx), tui.ErrClosed) {
				c.say("leaving the run ...")
			}
		})()
		return p.Run(ctx)
	})
	if errors.Is(err, tui.ErrClosed) {
		err = nil
	}
	c.say("%s", tui.Line(window.Snapshot()))
	return err
}
