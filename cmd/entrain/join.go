package main

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/node"
	"github.com/entrain-network/entrain/view"
)

func joinCommand(c console) *cobra.Command {
	p := participation{}
	var keyFile string
	var asJSON, verbose bool
	cmd := &cobra.Command{
		Use:   "join RUN",
		Short: "Take part in a run",
		Long: `Takes part in a run until it has finished, or until Ctrl-C: the first leaves cleanly and loses nothing, a
second one ends at once. Called again, it goes on from the state directory, or from the peers' model,
every byte of which is checked against the hash that the chain has agreed on.

Before it takes part, it checks the run's specification and data against the chain, and this machine's
arithmetic against the definition: results must agree with everybody's to the last bit.

A key is made if there is none. No port needs to be open.`,
		Example: `  entrain join my-run --data ./corpus
  entrain join my-run --chain http://203.0.113.5:7370 --data ./corpus --workers 4
  entrain join my-run --data ./corpus --json | jq -c 'select(.event == "trained")'`,
		Args:              needRun,
		ValidArgsFunction: c.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			p.run = args[0]
			p.endpoints = c.endpoints(p.endpoints)
			path, err := c.keyPath(keyFile)
			if err != nil {
				return err
			}
			made := false
			if p.key, made, err = c.ensureKey(path); err != nil {
				return err
			}
			if made {
				c.say("made a key in %s: %s", path, p.key.Public())
			}
			if p.state == "" {
				if c.places.data == "" {
					return errors.New("this system names no directory for data; say where state shall be kept with --state DIR")
				}
				p.state = filepath.Join(c.places.data, "runs", p.run+"-"+p.key.Public().String()[:8])
			}
			unlock, err := lockDir(p.state, "state directory")
			if err != nil {
				return err
			}
			defer unlock()
			level := slog.LevelWarn
			if verbose {
				level = slog.LevelDebug
			}
			p.log = slog.New(slog.NewTextHandler(c.err, &slog.HandlerOptions{Level: level}))
			p.observe = c.observer(asJSON)
			part, err := newParticipant(cmd.Context(), c, p)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, part.close()) }()
			if !asJSON {
				c.introduce(part, path)
			}
			return part.runTo(cmd.Context())
		},
	}
	keyFlag(cmd, &keyFile)
	chainFlag(cmd, &p.endpoints)
	f := cmd.Flags()
	f.StringVar(&p.data, "data", "", "`directory` of the prepared data (default: as the run's specification says)")
	f.StringVar(&p.state, "state", "", "`directory` for state and checkpoints (default: in the user's directory for data)")
	f.IntVar(&p.workers, "workers", defaultWorkers(), "`number` of goroutines that compute; changes the speed, never the result")
	f.StringArrayVar(&p.listen, "listen", nil, "`address` for peers, IP:PORT or a multiaddr; may be repeated (default: all of this machine's, any free port)")
	f.Uint32Var(&p.evaluate, "evaluate", 0, "measure the held-out loss after every `N` steps, in idle time (0: never)")
	f.Uint64Var(&p.heldOut, "evaluate-sequences", 64, "most `sequences` that a measurement reads")
	f.IntVar(&p.checkpoints, "checkpoints", 3, "keep the last `N` checkpoints; 0 writes one only when the run asks this member to")
	f.DurationVar(&p.linger, "linger", 30*time.Second, "go on serving the model to others for this `time` once the run has finished")
	f.BoolVar(&asJSON, "json", false, "print events as lines of JSON")
	f.BoolVar(&verbose, "verbose", false, "log what happens on the peer-to-peer network and towards the chain")
	_ = cmd.MarkFlagDirname("data")
	_ = cmd.MarkFlagDirname("state")
	return cmd
}

func needRun(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("say the name of one run: %s; entrain run list shows those of a chain", cmd.UseLine())
	}
	return nil
}

func (c console) introduce(p *participant, keyPath string) {
	c.say("run %q on chain %q: %s, %s parameters", p.run, p.client.ChainID(), p.trainer.spec.Model.Preset, thousands(uint64(p.trainer.engine.ParamsLen())))
	c.say("you are %s (%s); state in %s", p.key.Public(), keyPath, p.state)
	c.say("computing with %d workers on %s kernels; Ctrl-C leaves cleanly", p.trainer.pool.Workers(), p.trainer.pool.Kernel().Name())
}

// timed is an event with the time it happened.
type timed struct {
	Time string `json:"time"`
	node.Event
}

// observer returns what shows a participant's events: to programs as lines of JSON, to people in words.
func (c console) observer(asJSON bool) func(node.Event) {
	if asJSON {
		return func(ev node.Event) { _ = c.object(timed{time.Now().UTC().Format(time.RFC3339Nano), ev}) }
	}
	var told view.Teller
	return func(ev node.Event) {
		if text := told.Words(ev); text != "" {
			c.say("%s %s", time.Now().Format(time.TimeOnly), text)
		}
	}
}
