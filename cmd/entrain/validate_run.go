package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/loop"
	"github.com/entrain-network/entrain/node"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/score"
	"github.com/entrain-network/entrain/validator"
	"github.com/entrain-network/entrain/validator/live"
)

// validation is a validator of a run, wired together.
type validation struct {
	console
	options validateOptions
	client  ledger.Chain
	trainer *trainer
	buckets *bucket.Client
	loop    *loop.Real
	live    *live.Validator
	visitor *node.BucketReader
	log     *scoreLog
	end     context.CancelFunc

	// What follows belongs to the loop.
	settled uint32
	seated  bool
	over    bool
}

// newValidation checks what can be checked before a seat is taken, as newParticipant does.
func newValidation(ctx context.Context, c console, o validateOptions, k key.Private, decisions validator.Config) (_ *validation, err error) {
	v := &validation{console: c, options: o, loop: loop.NewReal()}
	defer func() {
		if err != nil {
			err = errors.Join(err, v.close())
		}
	}()
	if v.client, err = c.dial(ctx, o.endpoints, nil); err != nil {
		return nil, err
	}
	on, err := onchain.GetRun(ctx, v.client, o.run)
	if err != nil {
		return nil, err
	}
	s := on.Snapshot.State
	if err := o.target.Check(v.client.ChainID(), s.ID()); err != nil {
		return nil, err
	}
	switch {
	case !on.Spec.Buckets():
		return nil, fmt.Errorf("run %q exchanges between peers: its members verify each other (entrain join), there is nothing to validate", o.run)
	case s.Config().Validators == 0:
		return nil, fmt.Errorf("run %q has no seats for validators (scores.validators in its specification)", o.run)
	}
	if o.data, err = o.target.DataOf(o.data, on); err != nil {
		return nil, err
	}
	if v.trainer, err = newTrainer(ctx, on.Spec, o.data, o.workers, 0); err != nil {
		return nil, err
	}
	if v.trainer.from, err = findOrigin(on.Spec, o.from, nil); err != nil {
		return nil, err
	}
	if err := selfTest(ctx, v.trainer.pool); err != nil {
		return nil, err
	}
	if v.log, err = openScoreLog(o.state); err != nil {
		return nil, err
	}
	v.buckets = bucket.NewClient(bucket.S3Options{Public: !o.private})
	exchange := bucket.NewExchange(v.loop, nil, bucket.NewReader(v.buckets.Open, bucket.Options{}), bucket.ExchangeOptions{})
	v.visitor = node.NewBucketReader(s.ID(), v.loop, v.trainer.engine, exchange, v.trainer.initial)
	decisions.Rules = score.Default()
	decisions.Rules.Alpha = on.Spec.Scores.Alpha
	cfg := live.Config{
		Run: o.run, ID: s.ID(), Key: k, Ledger: v.client.As(k), Loop: v.loop, Engine: v.trainer.engine, Tensors: len(v.trainer.model.Layout().Tensors()),
		Exchange: exchange, Model: v.visitor.Model, Peers: v.visitor.Connect, Initial: v.trainer.initial, Store: recordFile(filepath.Join(o.state, "record")),
		Validator: decisions, Stake: o.stake, Pool: o.pool, Observe: v.observed,
	}
	work, end := context.WithCancel(context.WithoutCancel(ctx))
	v.end = end
	if v.live, err = live.New(work, cfg); err != nil {
		return nil, err
	}
	if !o.asJSON {
		c.say("validating run %q on chain %q as %s; state in %s; Ctrl-C stops", o.run, v.client.ChainID(), k.Public(), o.state)
	}
	return v, nil
}

func (v *validation) close() error {
	var errs []error
	if v.end != nil {
		v.end()
	}
	if v.log != nil {
		errs = append(errs, v.log.close())
	}
	if v.buckets != nil {
		v.buckets.Close()
	}
	if v.trainer != nil {
		v.trainer.close()
	}
	if v.client != nil {
		errs = append(errs, v.client.Close())
	}
	return errors.Join(errs...)
}

// run goes along until all is settled or ctx ends.
func (v *validation) run(ctx context.Context) error {
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	leave := func() { v.live.Stop(stop) }
	v.end = chain(v.end, stop)
	v.loop.Post(v.live.Start)
	defer context.AfterFunc(ctx, func() { v.loop.Post(leave) })()
	if err := v.loop.Run(work); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// chain calls both.
func chain(a, b func()) func() { return func() { a(); b() } }

// validatedEvent is what validate tells with --json.
type validatedEvent struct {
	Event   string  `json:"event"` // scored, evaluated, ballot, period, applied, healed, sent, note, finished
	Window  uint32  `json:"window,omitempty"`
	Period  uint32  `json:"period,omitempty"`
	Seconds float64 `json:"seconds,omitempty"`
	Loss    float64 `json:"loss,omitempty"`
	Params  string  `json:"params,omitempty"`
	Scores  int     `json:"scores,omitempty"`
	Trust   uint8   `json:"trust,omitempty"`
	Earned  uint64  `json:"earned,omitempty"`
	Text    string  `json:"text,omitempty"`
}

// scored is an evaluation as it is printed and logged.
type scored struct {
	Event string `json:"event"`
	validator.Scored
}

// observed takes what happens, on the loop.
func (v *validation) observed(ev live.Event) {
	switch ev.Kind {
	case "scored":
		line := scored{"scored", *ev.Scored}
		if err := v.log.add(line); err != nil {
			v.tell(validatedEvent{Event: "note", Text: err.Error()})
		}
		if v.options.asJSON {
			_ = v.object(line)
			return
		}
		v.say("window %d: member %d (%s) scored %+.3f, %s; average %+.3f", ev.Scored.Window, ev.Scored.Member, short(ev.Scored.Key.String()), ev.Scored.Score, ev.Scored.Verdict, ev.Scored.Average)
	case "state":
		v.changed()
	case "evaluated":
		v.tell(validatedEvent{Event: ev.Kind, Window: ev.Round, Seconds: ev.Seconds, Loss: ev.Loss})
	case "ballot":
		v.tell(validatedEvent{Event: ev.Kind, Period: ev.Ballot.Period, Scores: len(ev.Ballot.Scores)})
	default:
		out := validatedEvent{Event: ev.Kind, Window: ev.Round, Text: ev.Text}
		if !ev.Params.IsZero() {
			out.Params = ev.Params.String()
		}
		v.tell(out)
	}
}

// tell prints an event. Those that come in every window are for programs only.
func (v *validation) tell(ev validatedEvent) {
	if v.options.asJSON {
		_ = v.object(ev)
		return
	}
	switch ev.Event {
	case "ballot":
		v.say("period %d: has scores of %d members to tell", ev.Period, ev.Scores)
	case "healed":
		v.say("has the model of window %d from the miners, verified", ev.Window)
	case "period":
		v.say("period %d is settled: earned %s so far, trust %d", ev.Period, tokens(ev.Earned), ev.Trust)
	case "finished":
		v.say("the run has finished, and its last period is settled: earned %s", tokens(ev.Earned))
	case "note":
		v.say("%s", ev.Text)
	}
}

// changed tells what the chain says of this validator, and ends when nothing is left to be said.
func (v *validation) changed() {
	s := v.live.State()
	seat, seated := s.Validator(v.live.Self())
	if v.seated && !seated {
		v.tell(validatedEvent{Event: "note", Text: "lost its seat: somebody with a higher stake has it, and the stake is paid back"})
	}
	v.seated = seated
	last, ok := s.LastScores()
	if ok && last.Settled && last.Period > v.settled {
		v.settled = last.Period
		v.tell(validatedEvent{Event: "period", Period: last.Period, Trust: seat.Trust, Earned: seat.Earned})
	}
	first, _ := s.PeriodWindows(v.settled + 1)
	if s.Phase() == coordinator.Finished && first > s.Round() && !v.over {
		v.over = true
		v.tell(validatedEvent{Event: "finished", Earned: seat.Earned, Trust: seat.Trust})
		v.loop.After(lastWords, func() { v.live.Stop(v.end) })
	}
}

// recordFile is a file that holds a validator's record.
type recordFile string

// recordBytesMax bounds it: 65,536 members of 48 bytes, and as many scores.
const recordBytesMax = 8 << 20

// Load is part of live.Store.
func (f recordFile) Load() ([]byte, error) {
	b, err := atomicfile.ReadBounded(string(f), recordBytesMax)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return b, err
}

// Save is part of live.Store.
func (f recordFile) Save(b []byte) error { return atomicfile.WriteBytes(string(f), 0o600, b) }

// scoreLogName is the file of a validator's evaluations in its state directory; when it is larger than scoreLogMost it takes the name with .1, in
// place of the one before.
const (
	scoreLogName = "scores.jsonl"
	scoreLogMost = 64 << 20
)

// scoreLog is where evaluations are written, a line each.
type scoreLog struct {
	path string
	file *os.File
	size int64
}

func openScoreLog(dir string) (*scoreLog, error) {
	l := &scoreLog{path: filepath.Join(dir, scoreLogName)}
	return l, l.open()
}

func (l *scoreLog) open() error {
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("log of scores: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(fmt.Errorf("log of scores: %w", err), f.Close())
	}
	l.file, l.size = f, info.Size()
	return nil
}

func (l *scoreLog) add(line any) error {
	b, err := json.Marshal(line)
	if err != nil {
		return fmt.Errorf("log of scores: %w", err)
	}
	if l.size > scoreLogMost {
		if err := errors.Join(l.file.Close(), os.Rename(l.path, l.path+".1"), l.open()); err != nil {
			return err
		}
	}
	n, err := l.file.Write(append(b, '\n'))
	l.size += int64(n)
	if err != nil {
		return fmt.Errorf("log of scores: %w", err)
	}
	return nil
}

func (l *scoreLog) close() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}
