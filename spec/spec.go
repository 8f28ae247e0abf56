// Package spec defines a run: the model, its data, its optimizer and the course of its rounds. An
// owner writes the specification as TOML. The ledger stores those bytes unchanged with the run, and
// every participant checks them against the hash in the coordinator's state. Nothing that affects
// the arithmetic is defined anywhere else.
//
// [Parse] is strict: an unknown key is an error that names the line. It fills in missing values
// from [Default] and reports every fault at once. [Spec.Coordinator] returns the part that the
// coordinator needs; [Spec.Llama], [Spec.Codec] and [Spec.Schedule] return the parts that trainers
// need.
package spec

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/optim"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// Spec defines a run. The field comments are the documentation of the TOML keys.
type Spec struct {
	// Name identifies the run on its chain: a-z, 0-9 and -, at most 32 bytes.
	Name string `toml:"name"`
	// Steps is the total number of training steps, including those before the checkpoint that the
	// run resumes from. The run finishes after them.
	Steps uint32 `toml:"steps"`
	// Numerics is the arithmetic of the linear products of a step: exact, binary32, or exact8,
	// block-scaled 8-bit integers, which is about twice as fast where a processor or a GPU has dot
	// products of bytes. The default is exact. docs/numerics.md defines both.
	Numerics string `toml:"numerics,omitempty"`

	Model Model `toml:"model"`
	Data  Data  `toml:"data"`
	// Optimizer names how a member's gradient becomes an update, in the key codec, and holds the
	// codec's options in a table of that name, such as [optimizer.distro]. The default is distro,
	// or slice in a run that exchanges by buckets.
	Optimizer    codec.Options `toml:"optimizer"`
	LearningRate LearningRate  `toml:"learning_rate"`
	Batch        Batch         `toml:"batch"`
	Members      Members       `toml:"members"`
	Times        Times         `toml:"times"`
	Trust        Trust         `toml:"trust"`
	Exchange     Exchange      `toml:"exchange"`
	Scores       Scores        `toml:"scores"`
	Resume       *Resume       `toml:"resume,omitempty"`
	About        *About        `toml:"about,omitempty"`
}

// Model describes a Llama model. The preset sets every field that is left 0.
type Model struct {
	// Preset is nano, 10m, 50m, 124m, 350m or 1b. The default is nano, or none in a run that starts
	// from a checkpoint.
	Preset  string  `toml:"preset,omitempty"`
	Vocab   int     `toml:"vocab,omitempty"`  // size of the vocabulary, at least the tokenizer's
	Hidden  int     `toml:"hidden,omitempty"` // width
	Layers  int     `toml:"layers,omitempty"`
	Heads   int     `toml:"heads,omitempty"`
	KVHeads int     `toml:"kv_heads,omitempty"` // key and value heads, shared by groups of query heads
	HeadDim int     `toml:"head_dim,omitempty"`
	FFN     int     `toml:"ffn,omitempty"`     // width of the feed-forward net
	Context int     `toml:"context,omitempty"` // most tokens in a sequence
	Theta   float64 `toml:"theta,omitempty"`   // base of the rotary frequencies
	Eps     float32 `toml:"eps,omitempty"`     // added to the mean square in every norm
	Head    string  `toml:"head,omitempty"`    // "own" or "tied" to the embedding
	// Bias adds biases to queries, keys and values, as in Qwen2. QKNorm normalizes each head of
	// queries and of keys, as in Qwen3. Window is the number of tokens that a token attends to,
	// itself included, as in Mistral; 0 is all up to it. At most one of them may be set.
	Bias   bool `toml:"bias,omitempty"`
	QKNorm bool `toml:"qk_norm,omitempty"`
	Window int  `toml:"window,omitempty"`
	// RopeFactor and the three keys after it stretch the rotary frequencies as Llama 3 does: slow
	// rotations, of fewer than RopeLow turns in RopeOriginal tokens, become RopeFactor times
	// slower; those of more than RopeHigh turns stay. Without RopeFactor no frequency changes.
	RopeFactor   float64 `toml:"rope_factor,omitempty"`
	RopeLow      float64 `toml:"rope_low,omitempty"`
	RopeHigh     float64 `toml:"rope_high,omitempty"`
	RopeOriginal int     `toml:"rope_original,omitempty"`
	// Seed is any text. It determines the initial parameters, unless from is given without lora.
	Seed string `toml:"seed"`
	// From is the hash of the parameters that the run starts from, or of the frozen model, in hex.
	// `entrain run create --from` sets it and every key above.
	From string `toml:"from,omitempty"`
	// FromLocation is the directory of a checkpoint with those parameters, for participants that
	// have it there (or elsewhere: join --from). Other participants fetch the parameters from
	// peers; those of a frozen model not in a run that exchanges by buckets.
	FromLocation string `toml:"from_location,omitempty"`
	// Tokenizer is the hash of the checkpoint's tokenizer.json, in hex. It must equal the hash of
	// the data's tokenizer.
	Tokenizer string `toml:"tokenizer,omitempty"`
	LoRA      *LoRA  `toml:"lora,omitempty"`
}

// Data defines what the model is trained on.
type Data struct {
	// Manifest is the hash of the data's manifest, in hex. `entrain run create` sets it from
	// location.
	Manifest string `toml:"manifest"`
	// Location is the directory of the prepared data, or its HTTP addresses separated by spaces. A
	// participant may have the data elsewhere (join --data).
	Location string `toml:"location,omitempty"`
	Sequence int    `toml:"sequence"` // tokens of a sequence that are trained on
	Seed     string `toml:"seed"`     // any text; determines the order of the sequences
}

// LearningRate is a schedule over steps. With codec distro, updates are signs, so the rate is the
// distance each weight moves in a step. With sparseloco it is AdamW's rate in all inner steps of a
// round.
type LearningRate struct {
	Schedule string  `toml:"schedule"`         // constant, linear, cosine or wsd (see package optim)
	Base     float64 `toml:"base"`             // rate after warmup
	Warmup   uint32  `toml:"warmup"`           // steps of linear warmup
	Final    float64 `toml:"final"`            // rate at the end of linear, cosine and wsd
	Stable   uint32  `toml:"stable,omitempty"` // wsd: steps at the base rate; 0: until 1/5 is left
}

// Batch defines how many sequences each step trains on, over all members.
type Batch struct {
	Start      uint32 `toml:"start"`
	End        uint32 `toml:"end"`         // 0: same as start
	RampTokens uint64 `toml:"ramp_tokens"` // tokens over which the batch grows from start to end
	// Shares is how a batch is divided among the members: "equal", or "speed", in proportion to
	// each member's tokens per second. Members measure and report their own speed, at most once an
	// epoch, for the next epoch. Empty: equal.
	Shares string `toml:"shares,omitempty"`
}

// Values of Batch.Shares.
const (
	SharesEqual = "equal"
	SharesSpeed = "speed"
)

// Members defines who may take part, and how many members the run has.
type Members struct {
	Min       uint32 `toml:"min"`        // members needed to continue
	Start     uint32 `toml:"start"`      // members needed to start an epoch; 0: same as min
	Capacity  uint32 `toml:"capacity"`   // most members at a time, 1 to 10000
	Witnesses uint16 `toml:"witnesses"`  // elected each round; 0: one for each member, up to 32
	MissedMax uint8  `toml:"missed_max"` // consecutive rounds a member may fail before it is dropped
	// Overlap 1 lets results travel while the next round trains, on parameters one round older.
	Overlap uint8 `toml:"overlap"`
	// ClientMin is the oldest release that may take part, such as "v1.2.0"; empty: any.
	// Participants check it themselves, and a modified program can lie: it stops outdated members,
	// not cheats.
	ClientMin string `toml:"client_min,omitempty"`
	// RegisterCost is the number of tokens a new member pays to the run's treasury.
	RegisterCost uint64 `toml:"register_cost,omitempty"`
	// Slots is the number of active members. When all slots are taken, a new member replaces the
	// one with the worst scores. The replaced member keeps its place in the table until it has
	// claimed its rewards, so slots must be less than capacity. 0: capacity, and no member is
	// replaced.
	Slots uint32 `toml:"slots,omitempty"`
	// ImmuneWindows is the number of rounds during which a new member cannot be replaced.
	ImmuneWindows uint32 `toml:"immune_windows,omitempty"`
}

// Times are the longest durations of the phases. A phase ends early once every member is done.
type Times struct {
	Waiting      Duration `toml:"waiting"`       // to let more members join once there are enough
	Warmup       Duration `toml:"warmup"`        // to fetch the model
	RoundTrain   Duration `toml:"round_train"`   // to train, commit and spread a round's results
	RoundWitness Duration `toml:"round_witness"` // to collect late reports
	Cooldown     Duration `toml:"cooldown"`      // to write a checkpoint
	Epoch        Duration `toml:"epoch"`         // until members may change, and between checkpoints
}

// Trust defines how the run deals with cheats, and what it pays. Tokens are whole.
type Trust struct {
	VerificationPercent uint8 `toml:"verification_percent"` // results recomputed by others, on average
	// Verify is the longest time from the draw of a check to its verdict. 0: twice round_train, at
	// least 30 s, since a verifier trains too.
	Verify Duration `toml:"verify"`
	// Dispute is the longest time for one move of a dispute; a silent side loses. 0: six times
	// round_train, at least 30 s. The first move needs a trace of the whole step, which takes
	// several times as long as the step.
	Dispute Duration `toml:"dispute"`
	Stake   uint64   `toml:"stake"` // fewest tokens a member stakes, and loses if convicted
	// Unbond is how long a stake stays locked after its member left. 0: time for a last check and a
	// whole dispute.
	Unbond Duration `toml:"unbond"`
	Rate   uint64   `toml:"rate"` // tokens the treasury pays per point
}

// Duration is a time.Duration written like "90s" or "10m".
type Duration time.Duration

// MarshalText returns the duration in Go's notation.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText parses a duration, which must be a nonnegative whole number of milliseconds.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("%q is not a duration such as 90s or 10m", b)
	}
	if v < 0 || v%time.Millisecond != 0 {
		return fmt.Errorf("duration %q must be a nonnegative whole number of milliseconds", b)
	}
	*d = Duration(v)
	return nil
}

func (d Duration) ms() uint64 { return uint64(time.Duration(d) / time.Millisecond) }

const presetDefault = "nano"

// Default returns the specification that fills in missing keys. Its codec is the first of kinds.
func Default(kinds []codec.Kind) Spec {
	return Spec{
		Steps:        1000,
		Model:        Model{Preset: presetDefault, Seed: "entrain"},
		Data:         Data{Sequence: 128, Seed: "entrain"},
		Optimizer:    kinds[0].Defaults,
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

// Parse reads a specification, which names one of kinds as its codec. It reports all faulty values
// at once, and a syntax error with its line.
func Parse(text []byte, kinds []codec.Kind) (Spec, error) {
	s, unknown, err := decode(text, kinds)
	if err != nil {
		return Spec{}, err
	}
	return s.complete(unknown)
}

// decode reads a specification without filling in the preset: a run that starts from a checkpoint
// may have none. unknown is the error of a codec that is not among kinds; s then has another.
func decode(text []byte, kinds []codec.Kind) (s Spec, unknown, err error) {
	if err := checkSize(text); err != nil {
		return Spec{}, nil, err
	}
	s, unknown = defaultFor(text, kinds)
	s.Model.Preset = ""
	f := newForm(s, kinds)
	if err := toml.Unmarshal(text, f.Addr().Interface()); err != nil {
		var bad *toml.DecodeError
		if errors.As(err, &bad) {
			// The quoted line repeats the TOML reader's words, with types of Go: the first line has
			// ours.
			quoted := strings.Replace(bad.String(), " "+strings.TrimPrefix(bad.Error(), "toml: "), "", 1)
			return Spec{}, nil, fmt.Errorf("%s\n%s", clip(mistake(bad)), clip(quoted))
		}
		return Spec{}, nil, err
	}
	if err := checkKeys(text, f.Type()); err != nil {
		return Spec{}, nil, err
	}
	s, err = readForm(f, kinds)
	return s, unknown, err
}

// complete fills in missing values and checks the result. It joins a fault to those that it finds.
func (s Spec) complete(fault error) (Spec, error) {
	if s.Model.Preset == "" && s.Model.From == "" {
		s.Model.Preset = presetDefault
	}
	s.fill()
	if err := errors.Join(fault, s.Check()); err != nil {
		return Spec{}, err
	}
	return s, nil
}

// Append appends the specification as TOML, with every key spelled out.
func (s Spec) Append(dst []byte) ([]byte, error) {
	b, err := toml.Marshal(newForm(s, []codec.Kind{s.Optimizer.Kind()}).Interface())
	if err != nil {
		return dst, fmt.Errorf("writing the specification: %w", err)
	}
	return append(dst, b...), nil
}

// fill replaces zero values that stand for other values.
func (s *Spec) fill() {
	if s.Batch.End == 0 {
		s.Batch.End = s.Batch.Start
	}
	if s.Members.Start == 0 {
		s.Members.Start = s.Members.Min
	}
	if s.Batch.Shares == SharesEqual {
		s.Batch.Shares = "" // one spelling, as in specifications older than the key
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

// disputeMoves bounds the moves of a dispute after the first: those for each of three trees of 16^3
// leaves or more, and the evidence.
const disputeMoves = 16

func (t *Trust) fill(roundTrain Duration) {
	if t.VerificationPercent == 0 {
		return
	}
	if t.Verify == 0 {
		t.Verify = max(Duration(30*time.Second), 2*roundTrain)
	}
	// Tracing a step takes several times as long as the step (`go run ./cmd/lab dispute`), and a
	// late side loses.
	if t.Dispute == 0 {
		t.Dispute = max(Duration(30*time.Second), 6*roundTrain)
	}
	if t.Unbond == 0 {
		t.Unbond = 2*t.Verify + disputeMoves*t.Dispute
	}
}

// Check returns all faults, joined.
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
		fault("batch.shares: %q is unknown; choose %q or %q", s.Batch.Shares, SharesEqual, SharesSpeed)
	}
	if s.Data.Manifest != "" {
		if _, err := wire.ParseHash(s.Data.Manifest); err != nil {
			fault("data.manifest: %q is not a hash of 64 hexadecimal digits", s.Data.Manifest)
		}
	}
	if s.Data.Sequence < 2 || cfg.Context > 0 && s.Data.Sequence > cfg.Context {
		fault("data.sequence: %d must be 2 to the model's context, %d", s.Data.Sequence, cfg.Context)
	}
	if l := s.LearningRate; s.Steps > 0 && l.Warmup > s.Steps {
		fault("learning_rate.warmup: %d steps are more than steps, %d: make it shorter", l.Warmup, s.Steps)
	} else if _, err := s.Schedule(); err != nil {
		fault("learning_rate: %w", err)
	} else if err := s.Optimizer.CheckLR(float32(max(l.Base, l.Final))); err != nil {
		fault("learning_rate, optimizer.%s.weight_decay: %w", s.Optimizer.Kind().Name, err)
	}
	if _, err := ParseVersion(s.Members.ClientMin); err != nil && s.Members.ClientMin != "" {
		fault("members.client_min: %w", err)
	}
	s.checkOptimizer(fault)
	s.checkScores(fault)
	if err == nil {
		s.checkBlobs(cfg.Layout(), fault)
	}
	faults = append(faults, s.checkLoRA()...)
	for _, f := range s.checkResume() {
		fault("resume.%w", f)
	}
	for _, f := range s.About.check() {
		fault("about.%w", f)
	}
	limits, config := s.Coordinator(key.Public{1}, wire.Hash{1}, wire.Hash{1})
	if config.StateHash.IsZero() {
		config.StateHash = wire.Hash{1} // a placeholder: the missing model is already reported
	}
	if err := limits.Check(); err != nil {
		fault("members.capacity, members.witnesses, scores.validators: %w", err)
	}
	for _, f := range config.Check(limits) {
		if f.Key != "name" { // already reported
			faults = append(faults, f)
		}
	}
	return errors.Join(faults...)
}

// checkBlobs refuses a run whose model, states or results are too large for members to send each
// other: nobody could join it.
func (s Spec) checkBlobs(layout tensor.Layout, fault func(format string, args ...any)) {
	n := uint64(layout.Len())
	if s.Buckets() {
		s.checkObjects(layout, fault)
		return
	}
	if 4*n > p2p.MaxBlob {
		fault("model: its %d million parameters are %s, and peers send each other at most %s: take a smaller model",
			n/1e6, gigabytes(4*n), gigabytes(p2p.MaxBlob))
	} else if state, err := s.StateLen(); err == nil && s.Trust.VerificationPercent > 0 && 4*state > p2p.MaxBlob {
		fault("trust.verification_percent: verifiers fetch a member's optimizer state of %s, and peers send each other at most %s: take a smaller model, or 0",
			gigabytes(4*state), gigabytes(p2p.MaxBlob))
	}
}

// checkObjects is checkBlobs of a run by buckets.
func (s Spec) checkObjects(layout tensor.Layout, fault func(format string, args ...any)) {
	if n := uint64(layout.Len()); 4*n > bucket.BlobBytesMax {
		fault("model: its %d million parameters are %s, and members fetch at most %s from buckets: take a smaller model", n/1e6, gigabytes(4*n), gigabytes(bucket.BlobBytesMax))
		return
	}
	c, ok := s.Optimizer.(interface{ ObjectMax(tensor.Layout) uint64 })
	if !ok || s.Optimizer.Check() != nil { // which is reported
		return
	}
	if most := c.ObjectMax(layout); most > bucket.ObjectBytesMax {
		fault("optimizer.%s.compression: a window's slice of the model is an object of %s, and members write at most %s: raise it",
			s.Optimizer.Kind().Name, gigabytes(most), gigabytes(bucket.ObjectBytesMax))
	}
}

func gigabytes(n uint64) string { return fmt.Sprintf("%.1f GB", float64(n)/1e9) }

// DataSeed returns the key that determines the order of the sequences.
func (s Spec) DataSeed() wire.Hash { return wire.Sum("entrain/data-seed", []byte(s.Data.Seed)) }

// Schedule returns the learning rate schedule.
func (s Spec) Schedule() (optim.Schedule, error) {
	l := s.LearningRate
	var kind optim.Kind
	if err := kind.UnmarshalText([]byte(l.Schedule)); err != nil {
		return optim.Schedule{}, err
	}
	o := optim.Schedule{Kind: kind, Base: l.Base, WarmupSteps: l.Warmup, Steps: s.Steps, Final: l.Final, StableSteps: l.Stable, Before: s.Before()}
	return o, o.Check()
}

// Engine returns what an engine computes with. The data is missing.
func (s Spec) Engine() (engine.Run, error) {
	run := engine.Run{Codec: s.Optimizer, Inner: s.Inner(), Sequence: s.Data.Sequence}
	var err error
	if run.Model, err = s.Llama(); err != nil {
		return engine.Run{}, err
	}
	run.Schedule, err = s.Schedule()
	return run, err
}

// Coordinator returns the coordinator's configuration.
func (s Spec) Coordinator(owner key.Public, model, specHash wire.Hash) (coordinator.Limits, coordinator.Config) {
	witnesses := s.Members.Witnesses
	if witnesses == 0 {
		witnesses = witnessesMax
	}
	limits := coordinator.Limits{Members: s.Members.Capacity, Witnesses: min(witnesses, witnessesMax)}
	state, err := s.StateHash()
	if err != nil {
		state = wire.Hash{} // Check reports the model's faults
	}
	t, trust := s.Times, s.Trust
	config := coordinator.Config{
		Name: s.Name, Owner: owner, ModelHash: model, SpecHash: specHash,
		MinMembers: s.Members.Min, StartMembers: s.Members.Start, Witnesses: s.Members.Witnesses,
		WaitingMs: t.Waiting.ms(), WarmupMs: t.Warmup.ms(), RoundTrainMs: t.RoundTrain.ms(), RoundWitnessMs: t.RoundWitness.ms(),
		CooldownMs: t.Cooldown.ms(), EpochMs: t.Epoch.ms(), TotalSteps: coordinator.Step(s.Steps) - coordinator.Step(min(s.Steps, s.Before())),
		BatchStart: s.Batch.Start, BatchEnd: s.Batch.End, BatchRampTokens: s.Batch.RampTokens, SequenceTokens: uint32(s.Data.Sequence),
		Overlap: s.Members.Overlap, MissedMax: s.Members.MissedMax,
		VerificationPercent: trust.VerificationPercent, VerifyMs: trust.Verify.ms(), DisputeMs: trust.Dispute.ms(),
		Stake: trust.Stake, UnbondMs: trust.Unbond.ms(), Rate: trust.Rate, StateHash: state,
	}
	if cfg, err := s.Llama(); err == nil {
		config.Numerics = uint8(cfg.Numerics)
	}
	if s.Batch.Shares == SharesSpeed {
		limits.Speeds, config.Sharing = true, coordinator.SpeedShares
	}
	s.coordinate(&limits, &config)
	s.resume(&config)
	return limits, config
}

// witnessesMax is the coordinator's limit on witnesses in a round.
const witnessesMax = 32
