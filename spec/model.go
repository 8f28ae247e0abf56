package spec

import (
	"errors"
	"fmt"

	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// ErrFrom says that a run's first parameters do not follow from a seed: it goes on from a
// checkpoint.
var ErrFrom = errors.New("the run goes on from a checkpoint, so its first parameters cannot be computed")

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

// ModelOf is the part of a specification that goes on from a checkpoint: the shape, the hash of the
// parameters, and that of tokenizer.json.
func ModelOf(c llama.Config, params, tokenizer wire.Hash) Model {
	m := Model{Eps: c.Eps, Head: headOwn, From: params.String(), Tokenizer: tokenizer.String()}
	if c.Tied {
		m.Head = headTied
	}
	m.fill(c)
	return m
}

// Continue reads the specification of a run that goes on from a checkpoint, whose ModelOf is from.
// What the text says of the model must agree with the checkpoint, and may be left out.
func Continue(text []byte, from Model) (Spec, error) {
	s, err := decode(text)
	if err != nil {
		return Spec{}, err
	}
	if s.Model, err = s.Model.merge(from); err != nil {
		return Spec{}, err
	}
	return s.complete()
}

// merge returns what from has, with the location and the seed of m, if m says nothing else.
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
		{"ffn", said.FFN, from.FFN}, {"context", said.Context, from.Context}} {
		if f.said != 0 && f.said != f.is {
			differ(f.key, f.said, f.is)
		}
	}
	if said.Theta != 0 && said.Theta != from.Theta {
		differ("theta", said.Theta, from.Theta)
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
	from.Seed, from.FromLocation = m.Seed, m.FromLocation
	return from, errors.Join(faults...)
}

// checkFrom reports what is wrong with where the parameters come from.
func (m Model) checkFrom() (faults []error) {
	for _, f := range []struct{ key, hash string }{{"from", m.From}, {"tokenizer", m.Tokenizer}} {
		if h, err := wire.ParseHash(f.hash); f.hash != "" && (err != nil || h.IsZero()) {
			faults = append(faults, fmt.Errorf("%s: %q is not a hash of 64 hexadecimal digits", f.key, f.hash))
		}
	}
	if m.From == "" && m.FromLocation != "" {
		faults = append(faults, errors.New("from_location: say what is there with from, a hash of parameters; entrain run create --from DIR fills it in"))
	}
	if m.Head != "" && m.Head != headOwn && m.Head != headTied {
		faults = append(faults, fmt.Errorf("head: %q is neither %q nor %q", m.Head, headOwn, headTied))
	}
	return faults
}

// Llama is the model.
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
	if m.Eps != 0 {
		cfg.Eps = m.Eps
	}
	if m.Head != "" {
		cfg.Tied = m.Head == headTied
	}
	return cfg, cfg.Check()
}

// From is the hash of the parameters that the run goes on from; ok is false for a run that begins
// with a seed.
func (s Spec) From() (hash wire.Hash, ok bool) {
	if s.Model.From == "" {
		return wire.Hash{}, false
	}
	hash, err := wire.ParseHash(s.Model.From)
	return hash, err == nil
}

// InitialParams makes the run's first parameters. For a run that goes on from a checkpoint the
// error is ErrFrom.
func (s Spec) InitialParams() ([]float32, error) {
	cfg, err := s.Llama()
	if err != nil {
		return nil, err
	}
	if s.Model.From != "" {
		return nil, ErrFrom
	}
	return llama.Init(cfg, wire.Sum("entrain/model-seed", []byte(s.Model.Seed))), nil
}

// ModelHash is the hash of the initial parameters.
func (s Spec) ModelHash() (wire.Hash, error) {
	if from, ok := s.From(); ok {
		return from, nil
	}
	p, err := s.InitialParams()
	if err != nil {
		return wire.Hash{}, err
	}
	return merkle.BlobRoot(tensor.Bytes(p)), nil
}

// Name is what the model is called among people: its preset, or the beginning of the hash of what
// it was.
func (m Model) Name() string {
	if m.Preset == "" && len(m.From) >= 12 {
		return "going on from " + m.From[:12]
	}
	return m.Preset
}
