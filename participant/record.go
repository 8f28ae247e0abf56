package participant

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/metrics"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/runlog"
	"github.com/entrain-network/entrain/verify"
)

// The files of a state directory that a [Recording] writes.
const (
	LogDir         = "log" // the event log, for entrain watch --replay
	metricsFile    = "metrics.jsonl"
	tensorBoardDir = "tensorboard"
	wandBDir       = "wandb"
	specFile       = "spec.toml" // the run's specification, for those who read the log later
)

// Recording writes what a member does to its state directory, and shows it to sinks.
type Recording struct {
	writer *runlog.Writer
	server *metrics.Server
}

// Record begins to record what the member does, and serves its metrics if address is not "".
// The recording must be closed after [Participant.Run] has returned.
func (p *Participant) Record(address string, sinks ...runlog.Sink) (r *Recording, err error) {
	lines, err := metrics.NewJSONLines(filepath.Join(p.State, metricsFile))
	if err != nil {
		return nil, err
	}
	board, err := metrics.NewTensorBoard(filepath.Join(p.State, tensorBoardDir), time.Now())
	if err != nil {
		return nil, errors.Join(err, lines.Close())
	}
	if err := atomicfile.WriteBytes(filepath.Join(p.State, specFile), 0o644, p.Text); err != nil {
		return nil, errors.Join(fmt.Errorf("specification: %w", err), lines.Close(), board.Close())
	}
	bias, err := metrics.NewWandB(filepath.Join(p.State, wandBDir), p.Target.Run, map[string]string{
		"chain": p.Client.ChainID(), "run": p.Target.Run, "member": p.Key.Public().String(), "model": p.Trainer.Spec.Model.Name(),
	}, time.Now())
	if err != nil {
		return nil, errors.Join(err, lines.Close(), board.Close())
	}
	gauges := metrics.New(time.Now)
	gauges.PeersFrom(p.Peers)
	r = &Recording{}
	r.writer, err = runlog.Create(filepath.Join(p.State, LogDir), runlog.Options{
		Sinks: append([]runlog.Sink{lines, board, bias, gauges}, sinks...), Log: p.Log, Chain: p.Client.ChainID(), Own: p.Key.Public().String(),
	})
	if err != nil {
		return nil, errors.Join(err, lines.Close(), board.Close(), bias.Close())
	}
	if address != "" {
		if r.server, err = metrics.Serve(address, gauges.Handler(r.writer.Dropped), p.Log); err != nil {
			return nil, errors.Join(err, r.Close())
		}
		p.Say("metrics on http://%s/metrics", r.server.Addr())
	}
	observe := p.Observe
	p.Observe = func(ev event.Event) {
		r.writer.Event(time.Now(), ev)
		if observe != nil {
			observe(ev)
		}
	}
	return r, nil
}

// Close writes what waits, and ends the recording.
func (r *Recording) Close() error {
	err := r.writer.Close()
	if r.server != nil {
		err = errors.Join(err, r.server.Close())
	}
	return err
}

// Whose returns which run the log in a state directory is of.
func Whose(state string) (runlog.Head, error) {
	log, err := runlog.Open(filepath.Join(state, LogDir))
	if err != nil {
		return runlog.Head{}, fmt.Errorf("--state %q: %w; it is the state directory of a participant, which entrain join names", state, err)
	}
	defer log.Close()
	for {
		r, err := log.Next()
		if err != nil {
			return runlog.Head{}, fmt.Errorf("--state %q: the log does not tell of any run yet: %w", state, err)
		}
		if r.Standing == nil || r.Standing.Name == "" {
			continue
		}
		if name := r.Standing.Name; !host.RunNameValid(name) { // the directory may be a stranger's
			return runlog.Head{}, fmt.Errorf("--state %q: the log names a run %q, which no run can be called", state, name)
		}
		return r.Standing.Head, nil
	}
}

// SameRun returns an error if the log that head is from, in a state directory, is not of the run
// that a chain has under its name. A head without an ID is of a member that has just begun.
func SameRun(state string, head runlog.Head, chain string, on onchain.Run) error {
	if id := on.Snapshot.State.ID().String(); head.ID != "" && head.ID != id {
		return fmt.Errorf("--state %q has the log of run %s of chain %q, but run %q of chain %q is %s: name the chain of the log with --chain URL", state, head.ID, head.Chain, on.Spec.Name, chain, id)
	}
	return nil
}

// LogOf is Whose for a run that was named, unless it is "". A member that has just begun has no log
// yet.
func LogOf(run, state string) (runlog.Head, error) {
	info, err := os.Stat(state)
	if err != nil || !info.IsDir() {
		return runlog.Head{}, fmt.Errorf("--state %q is not a directory; entrain join says where it keeps its state", state)
	}
	head, err := Whose(state)
	switch {
	case err == nil && run != "" && head.Name != run:
		return head, fmt.Errorf("--state %q has the log of run %q, not of %q", state, head.Name, run)
	case err != nil && run == "":
		return head, fmt.Errorf("%w; or say which run, before --state DIR", err)
	case err != nil:
		head.Name = run
	}
	return head, nil
}

// Specification returns that of the run whose log, or whose file of a log, is at a path, from the
// state directory; nil if it is not there.
func Specification(log string) []byte {
	dir := filepath.Clean(log)
	for range 2 {
		dir = filepath.Dir(dir)
		if text, err := atomicfile.ReadBounded(filepath.Join(dir, specFile), host.SpecBytesMax); err == nil {
			return text
		}
	}
	return nil
}

// OpNames returns a function that names the operations of the run whose log is at a path: see
// Specification and verify.OpNames.
func OpNames(log string) func(sequences, op uint32) string {
	if text := Specification(log); text != nil {
		return verify.OpNames(text)
	}
	return func(uint32, uint32) string { return "" }
}
