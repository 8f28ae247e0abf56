package spec

import (
	"errors"
	"fmt"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// ErrFrom reports that a run starts from a checkpoint, so a seed does not determine its first
// parameters.
var ErrFrom = errors.New("the run starts from a checkpoint, so its first parameters cannot be computed")

// The values of Model.Head.
const (
	headOwn  = "own"
	headTied = "tied"
)

func (m *Model) fill(p llama.Config) {
	for _, f := range []struct {
		to   *int
		from int
	}{{&m.Vocab, p.Vocab}, {&m.Hidden, p.Hidden}, {&m.Layers, p.Layers}, {&m.Heads, p.Heads}, {&m.KVHeads, p.KVHeads},
		{&m.HeadDim, p.HeadDim}, {&m.FFN, p.FFN}, {&m.Context, p.Context}} {
		if *f.to == 0 {
			*f.to = f.from
		}
	}
	if m.Theta == 0 {
		m.Theta = p.Theta
	}
}

// ModelOf is the part of a specification that a checkpoint determines: the shape, the hash of the
// parameters and the hash of tokenizer.json.
func ModelOf(c llama.Config, params, tokenizer wire.Hash) Model {
	m := Model{Eps: c.Eps, Head: headOwn, From: params.String(), Tokenizer: tokenizer.String()}
	if c.Tied {
		m.Head = headTied
	}
	m.fill(c)
	m.Bias, m.QKNorm, m.Window = c.Bias, c.QKNorm, c.Window
	m.RopeFactor, m.RopeLow, m.RopeHigh, m.RopeOriginal = c.Rope.Factor, c.Rope.Low, c.Rope.High, c.Rope.Original
	return m
}

// Continue is Parse for a run that starts from the checkpoint described by from. Any model keys in
// the text must agree with the checkpoint; they may be left out.
func Continue(text []byte, from Model, kinds []codec.Kind) (Spec, error) {
	s, unknown, err := decode(text, kinds)
	if err != nil {
		return Spec{}, err
	}
	if s.Model, err = s.Model.merge(from); err != nil {
		return Spec{}, err
	}
	return s.complete(unknown)
}

// merge returns from with m's location, seed and adapters. Any other key that m sets must agree
// with from.
func (m Model) merge(from Model) (Model, error) {
	var faults []error
	said := m
	if m.Preset != "" {
		preset, err := llama.Preset(m.Preset)
		if err != nil {
			return m, fmt.Errorf("model: %w", err)
		}
		said.fill(preset)
		if said.Eps == 0 {
			said.Eps = preset.Eps
		}
		if said.Head == "" {
			said.Head = ModelOf(preset, wire.Hash{}, wire.Hash{}).Head
		}
	}
	differ := func(key string, said, is any) {
		text := fmt.Sprintf("model.%s: the specification says %v, the checkpoint has %v", key, said, is)
		if m.Preset != "" {
			text += fmt.Sprintf("; leave out preset %q and what it stands for", m.Preset)
		}
		faults = append(faults, errors.New(text))
	}
	for _, f := range []struct {
		key      string
		said, is int
	}{{"vocab", said.Vocab, from.Vocab}, {"hidden", said.Hidden, from.Hidden}, {"layers", said.Layers, from.Layers},
		{"heads", said.Heads, from.Heads}, {"kv_heads", said.KVHeads, from.KVHeads}, {"head_dim", said.HeadDim, from.HeadDim},
		{"ffn", said.FFN, from.FFN}, {"context", said.Context, from.Context},
		{"window", said.Window, from.Window}, {"rope_original", said.RopeOriginal, from.RopeOriginal}} {
		if f.said != 0 && f.said != f.is {
			differ(f.key, f.said, f.is)
		}
	}
	for _, f := range []struct {
		key      string
		said, is float64
	}{{"theta", said.Theta, from.Theta}, {"rope_factor", said.RopeFactor, from.RopeFactor},
		{"rope_low", said.RopeLow, from.RopeLow}, {"rope_high", said.RopeHigh, from.RopeHigh}} {
		if f.said != 0 && f.said != f.is {
			differ(f.key, f.said, f.is)
		}
	}
	if said.Bias && !from.Bias {
		differ("bias", said.Bias, from.Bias)
	}
	if said.QKNorm && !from.QKNorm {
		differ("qk_norm", said.QKNorm, from.QKNorm)
	}
	if said.Eps != 0 && said.Eps != from.Eps {
		differ("eps", said.Eps, from.Eps)
	}
	for _, f := range []struct{ key, said, is string }{
		{"head", said.Head, from.Head}, {"from", said.From, from.From}, {"tokenizer", said.Tokenizer, from.Tokenizer},
	} {
		if f.said != "" && f.said != f.is {
			differ(f.key, f.said, f.is)
		}
	}
	from.Seed, from.FromLocation, from.LoRA = m.Seed, m.FromLocation, m.LoRA
	return from, errors.Join(faults...)
}

// checkFrom returns the faults of the keys that name the starting parameters.
func (m Model) checkFrom() (faults []error) {
	for _, f := range []struct{ key, hash string }{{"from", m.From}, {"tokenizer", m.Tokenizer}} {
		if h, err := wire.ParseHash(f.hash); f.hash != "" && (err != nil || h.IsZero()) {
			faults = append(faults, fmt.Errorf("%s: %q is not a hash of 64 hexadecimal digits", f.key, f.hash))
		}
	}
	if m.From == "" && m.FromLocation != "" {
		faults = append(faults, errors.New("from_location: model.from, the hash of the parameters, is missing; entrain run create --from DIR sets it"))
	}
	if m.Head != "" && m.Head != headOwn && m.Head != headTied {
		faults = append(faults, fmt.Errorf("head: %q is neither %q nor %q", m.Head, headOwn, headTied))
	}
	return faults
}

// Llama returns the model's configuration.
func (s Spec) Llama() (llama.Config, error) {
	m := s.Model
	var cfg llama.Config
	if m.Preset != "" || m.From == "" {
		var err error
		if cfg, err = llama.Preset(m.Preset); err != nil {
			return llama.Config{}, err
		}
	}
	cfg.Vocab, cfg.Hidden, cfg.Layers, cfg.Heads, cfg.KVHeads = m.Vocab, m.Hidden, m.Layers, m.Heads, m.KVHeads
	cfg.HeadDim, cfg.FFN, cfg.Context, cfg.Theta = m.HeadDim, m.FFN, m.Context, m.Theta
	cfg.Bias, cfg.QKNorm, cfg.Window = m.Bias, m.QKNorm, m.Window
	cfg.Rope = llama.Rope{Factor: m.RopeFactor, Low: m.RopeLow, High: m.RopeHigh, Original: m.RopeOriginal}
	if m.Eps != 0 {
		cfg.Eps = m.Eps
	}
	if m.Head != "" {
		cfg.Tied = m.Head == headTied
	}
	var err error
	if cfg.Numerics, err = llama.ParseNumerics(s.Numerics); err != nil {
		return cfg, err
	}
	if cfg.LoRA, err = m.LoRA.config(); err != nil {
		return cfg, err
	}
	return cfg, cfg.Check()
}

// From returns the hash of the parameters that the run starts from, or of the frozen model in a run
// of adapters. ok is false for a run that starts from a seed.
func (s Spec) From() (hash wire.Hash, ok bool) {
	if s.Model.From == "" {
		return wire.Hash{}, false
	}
	hash, err := wire.ParseHash(s.Model.From)
	return hash, err == nil
}

// InitialParams computes the run's first parameters. It returns ErrFrom for a run that starts from
// a checkpoint.
func (s Spec) InitialParams() ([]float32, error) {
	cfg, err := s.initial()
	if err != nil {
		return nil, err
	}
	return llama.Init(cfg, s.modelSeed()), nil
}

// initial returns the model whose initial parameters are random, or an error if they are not.
func (s Spec) initial() (llama.Config, error) {
	if s.Model.From != "" && s.Model.LoRA == nil {
		return llama.Config{}, ErrFrom
	}
	return s.Llama()
}

func (s Spec) modelSeed() wire.Hash { return wire.Sum("entrain/model-seed", []byte(s.Model.Seed)) }

// ModelHash returns the hash of the initial parameters. It does not hold them all at once.
func (s Spec) ModelHash() (wire.Hash, error) {
	if from, ok := s.From(); ok && s.Model.LoRA == nil {
		return from, nil
	}
	cfg, err := s.initial()
	if err != nil {
		return wire.Hash{}, err
	}
	var b merkle.Blob
	llama.InitParts(cfg, s.modelSeed(), func(part []float32) { b.Write(tensor.Bytes(part)) })
	return b.Root(), nil
}

// Name returns a short name for the model: its preset, or a prefix of the hash of the parameters it
// starts from.
func (m Model) Name() string {
	if m.Preset == "" && len(m.From) >= 12 {
		if m.LoRA != nil {
			return "adapters of " + m.From[:12]
		}
		return "going on from " + m.From[:12]
	}
	return m.Preset
}
