// Package spec is what defines a run: the model, its data, how it is optimized, and how rounds go.
// It is written by a person as TOML, kept by the ledger with the run as the bytes that were given,
// and read by every participant, who checks them against the hash in the coordinator's state.
// Nothing that enters the arithmetic is defined anywhere else.
//
// [Parse] reads it strictly (an unknown key is an error that names the line), fills in what is left
// out from [Default], and reports every fault at once. [Spec.Coordinator] is its share for the
// coordinator; [Spec.Llama], [Spec.Codec] and [Spec.Schedule] are the trainers'.
package spec

import (
	"errors"
	"fmt"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/optim"
	"github.com/entrain-network/entrain/wire"
)

// Spec defines a run. The field comments are the documentation of the TOML keys.
type Spec struct {
	// Name of the run on its chain: a-z, 0-9 and -, at most 32 bytes.
	Name string `toml:"name"`
	// Steps the model is trained in all, with those before the checkpoint that the run resumes
	// from; the run finishes then.
	Steps uint32 `toml:"steps"`

	Model        Model        `toml:"model"`
	Data         Data         `toml:"data"`
	Optimizer    Optimizer    `toml:"optimizer"`
	LearningRate LearningRate `toml:"learning_rate"`
	Batch        Batch        `toml:"batch"`
	Members      Members      `toml:"members"`
	Times        Times        `toml:"times"`
	Trust        Trust        `toml:"trust"`
	Exchange     Exchange     `toml:"exchange"`
	Scores       Scores       `toml:"scores"`
	Resume       *Resume      `toml:"resume,omitempty"`
}

// Model is a Llama. A preset fills in whatever is left 0.
type Model struct {
	Preset  string  `toml:"preset,omitempty"` // nano, 10m, 50m, 124m, 350m or 1b; nano if left out, and none in a run that goes on from a checkpoint
	Vocab   int     `toml:"vocab,omitempty"`  // tokens the model knows; at least the tokenizer's
	Hidden  int     `toml:"hidden,omitempty"` // width
	Layers  int     `toml:"layers,omitempty"`
	Heads   int     `toml:"heads,omitempty"`
	KVHeads int     `toml:"kv_heads,omitempty"` // heads of keys and values, shared by groups of query heads
	HeadDim int     `toml:"head_dim,omitempty"`
	FFN     int     `toml:"ffn,omitempty"`     // width of the feed-forward part
	Context int     `toml:"context,omitempty"` // longest sequence
	Theta   float64 `toml:"theta,omitempty"`   // base of the rotary frequencies
	Eps     float32 `toml:"eps,omitempty"`     // added to the mean square in every norm
	Head    string  `toml:"head,omitempty"`    // "own" or "tied" to the embedding
	Seed    string  `toml:"seed"`              // any text; the initial parameters follow from it, unless from is given
	// From is the hash of the parameters that the run goes on from, hex; `entrain run create --from` fills it in, and with it all of the above.
	From string `toml:"from,omitempty"`
	// FromLocation is the directory of a checkpoint with those parameters, for participants that
	// have it there (or elsewhere: join --from); the others get them from their peers.
	FromLocation string `toml:"from_location,omitempty"`
	// Tokenizer is the hash of the checkpoint's tokenizer.json, hex, which must be that of the
	// data.
	Tokenizer string `toml:"tokenizer,omitempty"`
}

// Data is what the model is trained on.
type Data struct {
	Manifest string `toml:"manifest"`           // hash of the data's manifest, hex; `entrain run create` fills it in from location
	Location string `toml:"location,omitempty"` // directory of the prepared data, or HTTP addresses of it with spaces between them; a participant may have it elsewhere (join --data)
	Sequence int    `toml:"sequence"`           // tokens trained on in one sequence
	Seed     string `toml:"seed"`               // any text; the order of the sequences follows from it
}

// Optimizer is how a member's gradient becomes an update.
type Optimizer struct {
	// Codec is the name of one of [Kinds]. The default is distro, and slice in a run that exchanges
	// by buckets.
	Codec string
	// Options are the table named after the codec, such as [optimizer.distro]: see distro.Config,
	// slice.Config and sparseloco.Options. They are nil if the codec is not known.
	Options codec.Options
}

// LearningRate is a schedule over steps. With codec distro updates are signs, so a rate is what one
// step moves each weight by; with sparseloco it is that of AdamW in all inner steps of a round.
type LearningRate struct {
	Schedule string  `toml:"schedule"`         // constant, linear, cosine or wsd (warmup, stable, decay)
	Base     float64 `toml:"base"`             // after warmup
	Warmup   uint32  `toml:"warmup"`           // steps of linear warmup
	Final    float64 `toml:"final"`            // at the end of linear, cosine and wsd
	Stable   uint32  `toml:"stable,omitempty"` // wsd: steps at the base rate; 0 means until a fifth of the steps is left
}

// Batch is how many sequences a step trains on, over all members.
type Batch struct {
	Start      uint32 `toml:"start"`
	End        uint32 `toml:"end"`         // 0: as at the start
	RampTokens uint64 `toml:"ramp_tokens"` // tokens over which it grows from start to end
	// Shares is how a batch is divided among the members: "equal", or "speed", in proportion to how
	// many tokens a second each trains, which it measures and says itself: once an epoch at most,
	// for the next one. Empty: equal.
	Shares string `toml:"shares,omitempty"`
}

// The ways in which a batch is divided.
const (
	SharesEqual = "equal"
	SharesSpeed = "speed"
)

// Members is who may take part and how many it takes.
type Members struct {
	Min       uint32 `toml:"min"`        // to go on
	Start     uint32 `toml:"start"`      // to begin an epoch; 0: as min
	Capacity  uint32 `toml:"capacity"`   // most members at a time, 1 to 10000
	Witnesses uint16 `toml:"witnesses"`  // elected a round; 0: as many as there are members, up to 32
	MissedMax uint8  `toml:"missed_max"` // rounds in a row a member may fail before it is dropped
	// Overlap 1 lets results travel while the next round trains, on parameters one round older.
	Overlap uint8 `toml:"overlap"`
	// ClientMin is the oldest release of the program that takes part, such as "v1.2.0"; empty: any.
	// Participants look at it themselves, and who changes the program can lie: it keeps the
	// forgetful out, not cheats.
	ClientMin string `toml:"client_min,omitempty"`
	// RegisterCost is how many tokens a newcomer pays to the run's treasury.
	RegisterCost uint64 `toml:"register_cost,omitempty"`
	// Slots is how many members there are at a time. When they are taken a newcomer replaces the
	// one with the worst scores, which keeps a place in the table until it has claimed what it is
	// owed: hence less than capacity. 0: capacity, and nobody is replaced.
	Slots uint32 `toml:"slots,omitempty"`
	// ImmuneWindows is for how many rounds a newcomer cannot be replaced.
	ImmuneWindows uint32 `toml:"immune_windows,omitempty"`
}

// Times are the longest a phase lasts. Phases end earlier when everybody is done.
type Times struct {
	Waiting      Duration `toml:"waiting"`       // after enough members are there, for more to come
	Warmup       Duration `toml:"warmup"`        // to get the model
	RoundTrain   Duration `toml:"round_train"`   // to train, commit and spread a round's results
	RoundWitness Duration `toml:"round_witness"` // for stragglers' reports
	Cooldown     Duration `toml:"cooldown"`      // to write a checkpoint
	Epoch        Duration `toml:"epoch"`         // after which members may change and a checkpoint is made
}

// Trust is what the run does about cheats, and what it pays. Tokens are whole.
type Trust struct {
	VerificationPercent uint8 `toml:"verification_percent"` // expected share of the accepted results that others recompute
	// Verify is the longest from the draw of a check to its verdict. 0: twice round_train, 30 s at
	// least, since a verifier trains too.
	Verify Duration `toml:"verify"`
	// Dispute is the longest for one move of a dispute; silence loses. 0: six times round_train, 30
	// s at least, since the whole step is traced for the first move, which takes several times as
	// long as to compute it.
	Dispute Duration `toml:"dispute"`
	Stake   uint64   `toml:"stake"`  // least tokens a member puts up, and loses when it is convicted
	Unbond  Duration `toml:"unbond"` // a stake is free so long after its member left. 0: time for a last check and a whole dispute
	Rate    uint64   `toml:"rate"`   // tokens the treasury pays for a point
}

// Duration is a time.Duration written as in "90s" or "10m".
type Duration time.Duration

// MarshalText writes the duration as Go does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads it; it must be a whole number of milliseconds and not negative.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("%q is not a duration such as 90s or 10m", b)
	}
	if v < 0 || v%time.Millisecond != 0 {
		return fmt.Errorf("duration %q must be a whole number of milliseconds and not negative", b)
	}
	*d = Duration(v)
	return nil
}

func (d Duration) ms() uint64 { return uint64(time.Duration(d) / time.Millisecond) }

// Default is what is not said.
func Default() Spec {
	return Spec{
		Steps:        1000,
		Model:        Model{Preset: "nano", Seed: "entrain"},
		Data:         Data{Sequence: 128, Seed: "entrain"},
		Optimizer:    optimizerFor(Kinds[0]),
		LearningRate: LearningRate{Schedule: "cosine", Base: 2e-3, Warmup: 20, Final: 2e-4},
		Batch:        Batch{Start: 64},
		Members:      Members{Min: 2, Capacity: 256, MissedMax: 3},
		Times: Times{
			Waiting: Duration(5 * time.Second), Warmup: Duration(5 * time.Minute), RoundTrain: Duration(2 * time.Minute),
			RoundWitness: Duration(5 * time.Second), Cooldown: Duration(time.Minute), Epoch: Duration(30 * time.Minute),
		},
		Trust:    Trust{VerificationPercent: 5},
		Exchange: Exchange{Kind: ExchangePeers},
	}
}

// Parse reads a specification. It reports every fault of the values at once, and a fault of the
// form with its line.
func Parse(text []byte) (Spec, error) {
	s, err := decode(text)
	if err != nil {
		return Spec{}, err
	}
	return s.complete()
}

// decode reads a specification as it is written. The preset is what is written too: a run that goes
// on from a checkpoint may have none.
func decode(text []byte) (Spec, error) {
	if err := checkSize(text); err != nil {
		return Spec{}, err
	}
	s := defaultFor(text)
	s.Model.Preset = ""
	f := newForm(s)
	if err := toml.Unmarshal(text, f.Addr().Interface()); err != nil {
		var bad *toml.DecodeError
		if errors.As(err, &bad) {
			return Spec{}, fmt.Errorf("%s\n%s", clip(mistake(bad)), clip(bad.String()))
		}
		return Spec{}, err
	}
	if err := checkKeys(text); err != nil {
		return Spec{}, err
	}
	return readForm(f)
}

// complete fills in what is not said, and checks.
func (s Spec) complete() (Spec, error) {
	if s.Model.Preset == "" && s.Model.From == "" {
		s.Model.Preset = Default().Model.Preset
	}
	s.fill()
	if err := s.Check(); err != nil {
		return Spec{}, err
	}
	return s, nil
}

// Append writes the specification with everything spelled out.
func (s Spec) Append(dst []byte) ([]byte, error) {
	b, err := toml.Marshal(newForm(s).Interface())
	if err != nil {
		return dst, fmt.Errorf("writing the specification: %w", err)
	}
	return append(dst, b...), nil
}

// fill replaces the values that mean "as another".
func (s *Spec) fill() {
	if s.Batch.End == 0 {
		s.Batch.End = s.Batch.Start
	}
	if s.Members.Start == 0 {
		s.Members.Start = s.Members.Min
	}
	if s.Batch.Shares == SharesEqual {
		s.Batch.Shares = "" // one spelling, that of the specifications from before there was the key
	}
	if s.LearningRate.Stable == 0 && s.LearningRate.Schedule == "wsd" {
		s.LearningRate.Stable = s.Steps - s.Steps/5 - min(s.LearningRate.Warmup, s.Steps)
	}
	if preset, err := llama.Preset(s.Model.Preset); err == nil {
		s.Model.fill(preset)
	}
	s.Trust.fill(s.Times.RoundTrain)
	s.Scores.fill()
}

// disputeMoves is more moves than a dispute has, after the first: for each of three trees of up to
// 16^3 leaves and more, and its evidence.
const disputeMoves = 16

func (t *Trust) fill(roundTrain Duration) {
	if t.VerificationPercent == 0 {
		return
	}
	if t.Verify == 0 {
		t.Verify = max(Duration(30*time.Second), 2*roundTrain)
	}
	// To trace a step takes several times as long as the step (`go run ./cmd/lab dispute`), and who
	// is late loses.
	if t.Dispute == 0 {
		t.Dispute = max(Duration(30*time.Second), 6*roundTrain)
	}
	if t.Unbond == 0 {
		t.Unbond = 2*t.Verify + disputeMoves*t.Dispute
	}
}

// Check reports every fault.
func (s Spec) Check() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if !host.RunNameValid(s.Name) {
		fault("name: %q must be 1 to 32 of a-z, 0-9 and -", s.Name)
	}
	cfg, err := s.Llama()
	if err != nil {
		fault("model: %w", err)
	}
	for _, f := range s.Model.checkFrom() {
		fault("model.%w", f)
	}
	if s.Batch.Shares != "" && s.Batch.Shares != SharesEqual && s.Batch.Shares != SharesSpeed {
		fault("batch.shares: %q is not known; there are %q and %q", s.Batch.Shares, SharesEqual, SharesSpeed)
	}
	if s.Data.Manifest != "" {
		if _, err := wire.ParseHash(s.Data.Manifest); err != nil {
			fault("data.manifest: %q is not a hash of 64 hexadecimal digits", s.Data.Manifest)
		}
	}
	if s.Data.Sequence < 2 || cfg.Context > 0 && s.Data.Sequence > cfg.Context {
		fault("data.sequence: %d must be 2 to the model's context, %d", s.Data.Sequence, cfg.Context)
	}
	if _, err := s.Schedule(); err != nil {
		fault("learning_rate: %w", err)
	} else if o := s.Optimizer.Options; o != nil {
		if err := o.CheckLR(float32(max(s.LearningRate.Base, s.LearningRate.Final))); err != nil {
			fault("learning_rate, optimizer.%s.weight_decay: %w", s.Optimizer.Codec, err)
		}
	}
	if _, err := ParseVersion(s.Members.ClientMin); err != nil && s.Members.ClientMin != "" {
		fault("members.client_min: %w", err)
	}
	for _, f := range s.Optimizer.check(s.Trust.VerificationPercent) {
		fault("%w", f)
	}
	s.checkScores(fault)
	for _, f := range s.checkResume() {
		fault("resume.%w", f)
	}
	limits, config := s.Coordinator(key.Public{1}, wire.Hash{1}, wire.Hash{1})
	if config.StateHash.IsZero() {
		config.StateHash = wire.Hash{1} // for want of a model, which is reported above
	}
	if err := limits.Check(); err != nil {
		fault("members.capacity, members.witnesses, scores.validators: %w", err)
	}
	for _, f := range config.Check(limits) {
		if f.Field != "Name" { // reported above
			faults = append(faults, inKeys(f))
		}
	}
	return errors.Join(faults...)
}

// DataSeed keys the order of the sequences.
func (s Spec) DataSeed() wire.Hash { return wire.Sum("entrain/data-seed", []byte(s.Data.Seed)) }

// Schedule is the learning rate by step.
func (s Spec) Schedule() (optim.Schedule, error) {
	l := s.LearningRate
	var kind optim.Kind
	if err := kind.UnmarshalText([]byte(l.Schedule)); err != nil {
		return optim.Schedule{}, err
	}
	o := optim.Schedule{Kind: kind, Base: l.Base, WarmupSteps: l.Warmup, Steps: s.Steps, Final: l.Final, Before: s.Before()}
	if kind == optim.WSD {
		o.StableSteps = l.Stable
		o.CosineSteps = s.Steps - min(s.Steps, l.Warmup+l.Stable)
		o.CosineFinal = l.Final
	}
	return o, o.Check()
}

// Coordinator is what the coordinator must know.
func (s Spec) Coordinator(owner key.Public, model, specHash wire.Hash) (coordinator.Limits, coordinator.Config) {
	witnesses := s.Members.Witnesses
	if witnesses == 0 {
		witnesses = witnessesMax
	}
	limits := coordinator.Limits{Members: s.Members.Capacity, Witnesses: min(witnesses, witnessesMax)}
	state, err := s.StateHash()
	if err != nil {
		state = wire.Hash{} // Check reports the model
	}
	t, trust := s.Times, s.Trust
	config := coordinator.Config{
		Name: s.Name, Owner: owner, ModelHash: model, SpecHash: specHash,
		MinMembers: s.Members.Min, StartMembers: s.Members.Start, Witnesses: s.Members.Witnesses,
		WaitingMs: t.Waiting.ms(), WarmupMs: t.Warmup.ms(), RoundTrainMs: t.RoundTrain.ms(), RoundWitnessMs: t.RoundWitness.ms(),
		CooldownMs: t.Cooldown.ms(), EpochMs: t.Epoch.ms(), TotalSteps: s.Steps - min(s.Steps, s.Before()),
		BatchStart: s.Batch.Start, BatchEnd: s.Batch.End, BatchRampTokens: s.Batch.RampTokens, SequenceTokens: uint32(s.Data.Sequence),
		Overlap: s.Members.Overlap, MissedMax: s.Members.MissedMax,
		VerificationPercent: trust.VerificationPercent, VerifyMs: trust.Verify.ms(), DisputeMs: trust.Dispute.ms(),
		Stake: trust.Stake, UnbondMs: trust.Unbond.ms(), Rate: trust.Rate, StateHash: state,
	}
	if s.Batch.Shares == SharesSpeed {
		limits.Speeds, config.Sharing = true, coordinator.SpeedShares
	}
	s.coordinate(&limits, &config)
	s.resume(&config)
	return limits, config
}

// witnessesMax is the coordinator's limit of witnesses in a round.
const witnessesMax = 32
