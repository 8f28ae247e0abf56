package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/model"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/web"
	"github.com/entrain-network/entrain/wire"
)

// defaultWeb is where web serves its pages unless told otherwise.
const defaultWeb = "127.0.0.1:7380"

func webCommand(c console) *cobra.Command {
	var chain []string
	var listen, state string
	var asJSON, verbose bool
	cmd := &cobra.Command{
		Use:   "web [RUN | RUN@HOST | TICKET]",
		Short: "Show runs in a browser, live",
		Long: `Serves pages that show a chain's runs as they go on: phases and rounds, members and what they earn, curves,
and what it takes to join. Nothing can be changed by them, and nothing is fetched from elsewhere.

With --state and a participant's state directory (of a join on this machine, which may be running), also
losses, payloads, the run's past, checkpoints to download, and a box in which to try the model.

Only this machine can open the pages unless --addr says otherwise. Then everybody who can reach the
address may look on, and try the model, one at a time.`,
		Example: `  entrain web
  entrain web my-run --state ~/.local/share/entrain/runs/my-run-3b6a27bc
  entrain web my-run@203.0.113.5 --addr 0.0.0.0:7380
  entrain web my-run.ticket`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: c.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			o := web.Options{}
			to, err := onchain.ParseTargetOrChain(args, &chain)
			if err != nil {
				return err
			}
			o.Only, o.Endpoints = to.Run, c.endpoints(chain)
			level := slog.LevelWarn
			if verbose {
				level = slog.LevelDebug
			}
			o.Log = slog.New(slog.NewTextHandler(c.err, &slog.HandlerOptions{Level: level}))
			return c.web(cmd.Context(), o, to, listen, state, asJSON)
		},
	}
	chainFlag(cmd, &chain)
	addrFlag(cmd, &listen, defaultWeb)
	stateFlag(cmd, &state, "none; needs RUN")
	jsonFlag(cmd, &asJSON)
	verboseFlag(cmd, &verbose)
	return cmd
}

// ticketFor is the ticket of a run as pages give it, "" if there can be none.
func ticketFor(chain, run string, id, manifest wire.Hash, location string, endpoints []string) string {
	t := onchain.Ticket{Chain: chain, Run: run, ID: id, Manifest: manifest}
	if data.IsURL(location) {
		t.Data = location
	}
	for _, e := range endpoints {
		u, err := onchain.URL(e)
		if err != nil {
			return ""
		}
		t.Addresses = append(t.Addresses, u)
	}
	if t.Fault() != nil {
		return ""
	}
	return t.String()
}

// webEvent is what web --json prints.
type webEvent struct {
	Event string `json:"event"`
	URL   string `json:"url"`
}

// web serves pages until ctx ends.
func (c console) web(ctx context.Context, o web.Options, to onchain.Target, listen, state string, asJSON bool) (err error) {
	if state != "" {
		if o.Node, err = webNode(o.Only, state); err != nil {
			return err
		}
	}
	client, err := c.dial(ctx, o.Endpoints, o.Log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	o.Ledger, o.Runs = client, runNames(client)
	o.Ticket = func(run string, id, manifest wire.Hash, location string) string {
		return ticketFor(client.ChainID(), run, id, manifest, location, o.Endpoints)
	}
	if o.Only != "" {
		on, err := onchain.GetRun(ctx, client, o.Only)
		if err != nil {
			return err
		}
		if err := to.Check(client.ChainID(), on.Snapshot.State.ID()); err != nil {
			return err
		}
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return fmt.Errorf("--addr %q: %w", listen, err)
	}
	url := "http://" + l.Addr().String() + "/"
	if o.Only != "" {
		url += "runs/" + o.Only
	}
	if asJSON {
		if err := c.object(webEvent{"listening", url}); err != nil {
			return errors.Join(err, l.Close())
		}
	} else {
		c.say("open %s in a browser; Ctrl-C ends it", url)
	}
	return web.New(o).Run(ctx, l)
}

func runNames(client ledger.Chain) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		runs, err := client.Runs(ctx)
		var names []string
		for _, r := range runs {
			names = append(names, r.Name)
		}
		return names, err
	}
}

// logName is the directory of a participant's log below its state directory.
const logName = "log"

// webNode is what a state directory adds to the pages.
func webNode(run, state string) (*web.Node, error) {
	if run == "" {
		return nil, errors.New("--state is the directory of one run: say which, entrain web RUN --state DIR")
	}
	info, err := os.Stat(state)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return nil, fmt.Errorf("--state %q is no directory; entrain join says where it keeps its state", state)
	}
	if err != nil {
		return nil, fmt.Errorf("--state: %w", err)
	}
	m := &lastModel{}
	return &web.Node{Run: run, Log: filepath.Join(state, logName), Checkpoints: filepath.Join(state, "checkpoints"), Generate: m.generate}, nil
}

// lastModel is the model that prompts are put to. It is kept in memory while it is asked for.
type lastModel struct {
	mu   sync.Mutex // guards what follows, and is held while a text is written
	dir  string
	g    *model.Generator
	idle *time.Timer
}

// modelIdle is how long a model nobody asks stays in memory.
const modelIdle = 5 * time.Minute

func (m *lastModel) generate(ctx context.Context, dir string, p web.Prompt, out io.Writer) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dir != dir {
		g := &model.Generator{}
		if err := g.Open(dir); err != nil {
			return err
		}
		m.dir, m.g = dir, g
	}
	if m.idle != nil {
		m.idle.Stop()
	}
	m.idle = time.AfterFunc(modelIdle, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.dir, m.g = "", nil
	})
	g := *m.g
	g.Sampling, g.Seed = llama.Sampling{Temperature: p.Temperature, TopK: 40}, sha256.Sum256([]byte(p.Seed))
	_, err := g.Text(ctx, p.Text, p.Tokens, out)
	return err
}
