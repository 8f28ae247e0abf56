package participant

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/loop"
	"github.com/entrain-network/entrain/node"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/participant/trainer"
	"github.com/entrain-network/entrain/score"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/validator"
	"github.com/entrain-network/entrain/validator/live"
	"github.com/entrain-network/entrain/view"
)

// ValidatorOptions describe how a validator takes part in a run. Fields without a comment are as in
// Options.
type ValidatorOptions struct {
	Target    onchain.Target
	Endpoints []string
	Key       key.Private
	State     string // directory, locked by the caller
	Data      string
	Kept      *data.Chunks
	From      string
	Workers   int
	Device    string
	Tell      func(text string) // told why a device is not used
	Stake     uint64
	Pool      string
	Mining    Mining // a bucket of the validator's own, if the environment names one
	Getenv    func(string) string
	Decisions validator.Config
	Remember  string
	NetUID    uint16 // subnet of Bittensor whose weights are set by the run's scores; 0: none
	Observe   func(ValidatorEvent)
	Scored    func(Scored) // takes evaluations

	weigher *Weigher // of NetUID, once Check found it
}

// Validator scores the miners of a run.
type Validator struct {
	options ValidatorOptions
	Client  ledger.Chain
	trainer *trainer.Trainer
	buckets *bucket.Client
	loop    *loop.Real
	live    *live.Validator
	reader  *node.BucketReader
	weigher *Weigher // nil without a subnet
	log     *scoreLog
	end     context.CancelFunc

	// What follows belongs to the loop.
	settled uint32
	seated  bool
	over    bool
}

// NewValidator checks what can be checked before a seat is taken, as New does. The validator must
// be closed.
func NewValidator(ctx context.Context, o ValidatorOptions) (_ *Validator, err error) {
	v := &Validator{options: o, loop: loop.NewReal()}
	defer func() {
		if err != nil {
			err = errors.Join(err, v.Close())
		}
	}()
	if err := o.Check(ctx); err != nil {
		return nil, err
	}
	v.weigher = o.weigher
	client, on, err := onchain.Open(ctx, o.Endpoints, onchain.DialOptions{Remember: o.Remember}, o.Target)
	if err != nil {
		return nil, err
	}
	v.Client = client
	s := on.Snapshot.State
	switch {
	case !on.Spec.Buckets():
		return nil, fmt.Errorf("run %q exchanges between peers: its members verify each other (entrain join), there is nothing to validate", o.Target.Run)
	case s.Config().Validators == 0:
		return nil, fmt.Errorf("run %q has no seats for validators (scores.validators in its specification)", o.Target.Run)
	}
	if err := o.seat(ctx, client, on); err != nil {
		return nil, err
	}
	at, err := o.Target.DataOf(o.Data, on, o.Endpoints)
	if err != nil {
		return nil, err
	}
	at.Kept = o.Kept
	from, err := o.found(ctx, on.Spec)
	if err != nil {
		return nil, err
	}
	if v.trainer, err = trainer.New(ctx, on.Spec, at, trainer.Machine{Workers: o.Workers, Device: o.Device, Tell: o.Tell, From: from}, 0); err != nil {
		return nil, err
	}
	if err := trainer.SelfTest(ctx, v.trainer.Computing); err != nil {
		return nil, err
	}
	if v.log, err = openScoreLog(o.State); err != nil {
		return nil, err
	}
	v.buckets = bucket.NewClient(bucket.S3Options{Public: !o.Mining.Private})
	work, end := context.WithCancel(context.WithoutCancel(ctx))
	v.end = end
	var writer *bucket.Writer
	var registered string
	if o.Getenv("ENTRAIN_BUCKET") != "" {
		if writer, registered, err = o.Mining.open(work, o.Getenv, o.Key, false); err != nil {
			return nil, fmt.Errorf("the bucket that ENTRAIN_BUCKET names: %w", err)
		}
	}
	exchange := bucket.NewExchange(v.loop, writer, bucket.NewReader(v.buckets.Open, bucket.Options{}), bucket.ExchangeOptions{})
	v.reader = node.NewBucketReader(s.ID(), v.loop, v.trainer.Engine, exchange, v.trainer.Initial, o.Kept)
	o.Decisions.Rules = score.Default()
	o.Decisions.Rules.Alpha = on.Spec.Scores.Alpha
	cfg := live.Config{
		Run: o.Target.Run, ID: s.ID(), Key: o.Key, Ledger: v.Client.As(o.Key), Loop: v.loop, Engine: v.trainer.Engine, Tensors: len(v.trainer.Model.Layout().Tensors()),
		Exchange: exchange, Registered: registered, Model: v.reader.Model, Peers: v.reader.Connect, Initial: v.trainer.Initial, Store: recordFile(filepath.Join(o.State, "record")),
		Validator: o.Decisions, Stake: o.Stake, Pool: o.Pool, Observe: v.observed,
	}
	if v.live, err = live.New(work, cfg); err != nil {
		return nil, err
	}
	return v, nil
}

// seat returns an error if this machine's clock is wrong, or if the chain would refuse a seat now
// and asking again would not help.
func (o ValidatorOptions) seat(ctx context.Context, client ledger.Chain, on onchain.Run) error {
	if err := wrongClock(ctx, onchain.ClockSkew(o.Endpoints)); err != nil {
		return err
	}
	st, err := coordinator.Open(bytes.Clone(on.Snapshot.State.Bytes()))
	if err != nil {
		return fmt.Errorf("state of the run: %w", err)
	}
	a := Applicant{Key: o.Key.Public(), pool: o.Pool}
	if _, seated := st.Validator(a.Key); seated {
		return nil
	}
	err = st.Apply(coordinator.Env{NowMs: on.Snapshot.TimeMs, Height: on.Snapshot.Height, Sender: a.Key, Value: o.Stake}, coordinator.RegisterValidator{})
	var low error
	switch {
	case errors.Is(err, coordinator.ErrStake):
		low = fmt.Errorf("run %q wants a stake of %s for a seat: say --stake %d", o.Target.Run, view.Tokens(st.Config().Stake), st.Config().Stake)
	case errors.Is(err, coordinator.ErrEjected):
		return errors.New(a.Conviction(on.Snapshot.State))
	case err != nil:
		return nil // the run has finished, or a seat may become free
	}
	missing, err := a.purse(ctx, client, max(o.Stake, st.Config().Stake))
	if err == nil && len(missing) > 0 {
		err = errors.New(missing[0].Reason)
	}
	return errors.Join(low, err)
}

func (v *Validator) Close() error {
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
		v.trainer.Close()
	}
	if v.Client != nil {
		errs = append(errs, v.Client.Close())
	}
	return errors.Join(errs...)
}

// Run validates until all periods are settled or ctx ends.
func (v *Validator) Run(ctx context.Context) error {
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	leave := func() { v.live.Stop(stop) }
	v.end = chain(v.end, stop)
	v.loop.Post(v.live.Start)
	defer context.AfterFunc(ctx, func() { v.loop.Post(leave) })()
	defer v.reader.Close()
	defer v.weigh(ctx)()
	go tellAway(work, func(ctx context.Context) error {
		_, err := v.Client.Status(ctx)
		return err
	}, func(text string) {
		v.loop.Post(func() { v.options.Observe(ValidatorEvent{Event: "note", Text: text}) })
	})
	if err := v.loop.Run(work); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// awayEvery is the pause between two questions to the chain whether it is there.
const awayEvery = 10 * time.Second

// tellAway tells when a chain stops to answer and when it answers again, until ctx ends.
func tellAway(ctx context.Context, ask func(context.Context) error, tell func(text string)) {
	away := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(awayEvery):
		}
		asking, cancel := context.WithTimeout(ctx, onchain.Patience)
		err := ask(asking)
		cancel()
		if ctx.Err() != nil || away == (err != nil) {
			continue
		}
		if away = err != nil; away {
			tell("the chain does not answer: trying until it does")
		} else {
			tell("the chain answers again")
		}
	}
}

// weigh sets a subnet's weights after each period. The function that it returns waits until those
// of the last are set, unless ctx has ended.
func (v *Validator) weigh(ctx context.Context) (end func()) {
	if v.weigher == nil {
		return func() {}
	}
	set := make(chan struct{})
	go func() {
		v.weigher.Run(ctx, v.Client, v.options.Target.Run)
		close(set)
	}()
	return func() {
		v.weigher.Close()
		<-set
	}
}

// chain calls both.
func chain(a, b func()) func() { return func() { a(); b() } }

// ValidatorEvent is something that happened at a validator.
type ValidatorEvent struct {
	// Event is evaluated, ballot, period, applied, healed, sent, note or finished.
	Event   string            `json:"event"`
	Window  coordinator.Round `json:"window,omitempty"`
	Period  uint32            `json:"period,omitempty"`
	Seconds float64           `json:"seconds,omitempty"`
	Loss    float64           `json:"loss,omitempty"`
	Params  string            `json:"params,omitempty"`
	Scores  int               `json:"scores,omitempty"`
	Trust   uint8             `json:"trust,omitempty"`
	Earned  uint64            `json:"earned,omitempty"`
	Text    string            `json:"text,omitempty"`
}

// Words describes the event for people, "" if it is one of every window.
func (ev ValidatorEvent) Words() string {
	switch ev.Event {
	case "ballot":
		return fmt.Sprintf("period %d: members with scores to report: %d", ev.Period, ev.Scores)
	case "healed":
		return fmt.Sprintf("has the model of window %d from the miners, verified", ev.Window)
	case "period":
		return fmt.Sprintf("period %d is settled: earned %s so far, trust %d", ev.Period, view.Tokens(ev.Earned), ev.Trust)
	case "finished":
		return "the run has finished, and its last period is settled: earned " + view.Tokens(ev.Earned)
	case "note":
		return ev.Text
	}
	return ""
}

// Words describes the evaluation for people.
func (s Scored) Words() string {
	return fmt.Sprintf("window %d: member %d (%s) scored %+.3f, %s; average %+.3f", s.Window, s.Member, view.Short(s.Key.String()), s.Score, s.Verdict, s.Average)
}

// observed handles events of the driver, on the loop.
func (v *Validator) observed(ev live.Event) {
	switch ev.Kind {
	case "scored":
		line := Scored{"scored", *ev.Scored}
		if err := v.log.add(line); err != nil {
			v.options.Observe(ValidatorEvent{Event: "note", Text: err.Error()})
		}
		v.options.Scored(line)
	case "state":
		v.changed()
	case "evaluated":
		v.options.Observe(ValidatorEvent{Event: ev.Kind, Window: ev.Round, Seconds: ev.Seconds, Loss: ev.Loss})
	case "ballot":
		v.options.Observe(ValidatorEvent{Event: ev.Kind, Period: ev.Ballot.Period, Scores: len(ev.Ballot.Scores)})
	default:
		out := ValidatorEvent{Event: ev.Kind, Window: ev.Round, Text: ev.Text}
		if !ev.Params.IsZero() {
			out.Params = ev.Params.String()
		}
		v.options.Observe(out)
	}
}

// changed reports what the chain knows of this validator, and ends Run after the last period.
func (v *Validator) changed() {
	s := v.live.State()
	seat, known := s.Validator(v.live.Self())
	seated := known && !seat.Bench
	switch {
	case !v.seated || seated:
	case v.over && !known:
		v.options.Observe(ValidatorEvent{Event: "note", Text: "gave up its seat; the run has paid its stake and what it earned"})
	default:
		v.options.Observe(ValidatorEvent{Event: "note", Text: "no longer has its seat; entrain wallet claim pays its stake and what it earned"})
	}
	v.seated = seated
	last, ok := s.LastScores()
	if ok && last.Settled && last.Period > v.settled {
		v.settled = last.Period
		v.options.Observe(ValidatorEvent{Event: "period", Period: last.Period, Trust: seat.Trust, Earned: seat.Earned})
		if v.weigher != nil {
			v.weigher.Settled(last.Period)
		}
	}
	first, _ := s.PeriodWindows(v.settled + 1)
	if s.Phase() != coordinator.Finished || first <= s.Round() {
		return
	}
	if !v.over {
		v.over = true
		v.options.Observe(ValidatorEvent{Event: "finished", Earned: seat.Earned, Trust: seat.Trust})
		v.loop.After(payPatience, func() { v.live.Stop(v.end) })
	}
	if !known {
		v.loop.After(lastWords, func() { v.live.Stop(v.end) })
	}
}

// recordFile is the file with a validator's record.
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

// lastWords is the time that the validator has to end after the last period. It drops work under
// way; what counts is on disk.
const lastWords = 100 * time.Millisecond

// payPatience is the longest that a validator waits to be paid out after the last period.
const payPatience = 90 * time.Second

// found is Options.found for a validator.
func (o ValidatorOptions) found(ctx context.Context, s spec.Spec) (string, error) {
	p := Options{From: o.From, State: o.State, Endpoints: o.Endpoints, Getenv: o.Getenv, Say: func(format string, args ...any) {
		if o.Tell != nil {
			o.Tell(fmt.Sprintf(format, args...))
		}
	}}
	return p.found(ctx, s)
}
