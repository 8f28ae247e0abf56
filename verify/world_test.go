package verify

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/codec/all"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/engine/cpu"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/tokenizer"
	"github.com/entrain-network/entrain/trace"
	"github.com/entrain-network/entrain/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a small run: its specification, its data, and what computes its steps. Parameters and
// state have several chunks, and so do the shards.
type world struct {
	text    []byte
	spec    spec.Spec
	set     *data.Set
	engine  *cpu.Engine
	tracer  *Tracer
	referee dispute.Referee
	params  []float32
	state   []float32
	spans   []batch.Span
	base    []float32 // the frozen model, in a run of adapters
}

// runText is a specification with the hash of its data's manifest.
const runText = `
name = "small"
steps = 100

[model]
preset = "nano"
vocab = 300
hidden = 72
layers = 2
heads = 3
kv_heads = 1
head_dim = 20
ffn = 100
context = 64
seed = "verify"

[data]
manifest = "%s"
sequence = 40
seed = "verify"

[optimizer.distro]
block = 64
top_k = 16
decay = 0.9
weight_decay = 0.1
clip_norm = %g

[learning_rate]
schedule = "cosine"
base = 0.003
warmup = 5
final = 0.0003

[batch]
start = 8

[members]
min = 4
capacity = 8

[trust]
verification_percent = 100
verify = "30s"
dispute = "10s"
stake = 1000
rate = 1
`

func newWorld(t testing.TB, clip float64) *world {
	t.Helper()
	return worldOf(t, runText, clip)
}

// newWorld8 is like newWorld, for a run in 8 bits.
func newWorld8(t testing.TB, clip float64) *world {
	t.Helper()
	text := strings.NewReplacer("steps = 100", "steps = 100\nnumerics = \"exact8\"", "head_dim = 20", "head_dim = 32", "ffn = 100", "ffn = 96").Replace(runText)
	return worldOf(t, text, clip)
}

// newSealedWorld is like newWorld, for a run of buckets: steps are disputed up to their gradient.
func newSealedWorld(t testing.TB, clip float64) *world {
	t.Helper()
	from, to := strings.Index(runText, "[optimizer.distro]"), strings.Index(runText, "clip_norm")
	return worldOf(t, runText[:from]+"[exchange]\nkind = \"bucket\"\n[optimizer.slice]\ncompression = 8\nleaf = 64\n"+runText[to:], clip)
}

// newAdaptedWorld is like newWorld, for a run of adapters of the model that newWorld's begins with.
func newAdaptedWorld(t testing.TB, clip float64) *world {
	t.Helper()
	whole, err := spec.Parse(fmt.Appendf(nil, runText, wire.Hash{1}, clip), all.Kinds())
	if err != nil {
		t.Fatal(err)
	}
	base, err := whole.InitialParams()
	if err != nil {
		t.Fatal(err)
	}
	adapters := fmt.Sprintf("seed = \"adapters\"\nfrom = \"%s\"\n[model.lora]\nrank = 40\ntargets = [\"q_proj\", \"down_proj\"]\n\n[data]", merkle.BlobRoot(tensor.Bytes(base)))
	w := worldOn(t, strings.Replace(runText, "seed = \"verify\"\n\n[data]", adapters, 1), clip, base)
	for i := range w.params { // B begins with 0, and so does the gradient of A
		w.params[i] += float32(i%7-3) * 0x1p-7
	}
	return w
}

func worldOf(t testing.TB, text string, clip float64) *world {
	t.Helper()
	return worldOn(t, text, clip, nil)
}

// worldOn is worldOf for a run that may have a frozen model.
func worldOn(t testing.TB, text string, clip float64, base []float32) *world {
	t.Helper()
	dir := t.TempDir()
	source := filepath.Join(dir, "text")
	if err := os.WriteFile(source, words(200000), 0o600); err != nil {
		t.Fatal(err)
	}
	manifest, err := data.Prepare(t.Context(), dir, []string{source}, data.PrepareOptions{
		Name: "words", Tokenizer: tokenizer.Bytes{}, HeldOutPermille: 10, ShardTokens: 150001,
	})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{text: fmt.Appendf(nil, text, manifest.Hash(), clip), base: base}
	if w.spec, err = spec.Parse(w.text, all.Kinds()); err != nil {
		t.Fatal(err)
	}
	w.set, err = data.Open(t.Context(), dir, manifest.Hash(), data.Options{SequenceTokens: uint32(w.spec.Data.Sequence), Seed: w.spec.DataSeed()})
	if err != nil {
		t.Fatal(err)
	}
	w.engine = newEngine(t, w.spec, w.set, base)
	if w.tracer, err = NewTracer(w.spec, w.set, w.engine); err != nil {
		t.Fatal(err)
	}
	if w.referee, err = NewReferee(w.text); err != nil {
		t.Fatal(err)
	}
	if w.params, err = w.spec.InitialParams(); err != nil {
		t.Fatal(err)
	}
	// The state is one that a step has left behind.
	w.state = make([]float32, w.engine.StateLen())
	if _, err := w.engine.Step(t.Context(), cpu.Floats(w.params), cpu.Floats(w.state), []batch.Span{{Start: 0, Count: 2}}, 6); err != nil {
		t.Fatal(err)
	}
	w.spans = []batch.Span{{Start: 11, Count: 1}, {Start: 5, Count: 1}, {Start: 4870, Count: 1}}
	return w
}

func newEngine(t testing.TB, s spec.Spec, set *data.Set, base []float32) *cpu.Engine {
	t.Helper()
	run, err := s.Engine()
	if err != nil {
		t.Fatal(err)
	}
	run.Data, run.Base = set, base
	e, err := cpu.New(run, cpu.Options{Workers: 2, Micro: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// words is text of n bytes.
func words(n int) []byte {
	r := prng.New(wire.Sum("verify-test"), "text")
	var b bytes.Buffer
	for b.Len() < n {
		for range 2 + r.Uint64n(8) {
			b.WriteByte(byte('a' + r.Uint64n(26)))
		}
		b.WriteByte(' ')
	}
	return b.Bytes()[:n]
}

// step is the honest step of the world's share, and the commitment to it.
func (w *world) step(t testing.TB) (dispute.Case, Inputs) {
	t.Helper()
	after := append([]float32(nil), w.state...)
	const number = 7
	r, err := w.engine.Step(t.Context(), cpu.Floats(w.params), cpu.Floats(after), w.spans, number)
	if err != nil {
		t.Fatal(err)
	}
	c := dispute.Commitment{
		Run: wire.Sum("verify-test", []byte("run")), Epoch: 1, Round: 9, Member: 4, Share: batch.Hash(w.spans),
		Payload: merkle.BlobRoot(r.Payload), PayloadBytes: uint32(len(r.Payload)),
		Prev: merkle.BlobRoot(tensor.Bytes(w.state)), State: merkle.BlobRoot(tensor.Bytes(after)), Params: merkle.BlobRoot(tensor.Bytes(w.params)),
	}
	c.Work = dispute.WorkHash(c.Run, c.Round, c.Member, r.Gradient)
	in := Inputs{Spans: w.spans, Params: cpu.Floats(w.params)}
	if !w.spec.Buckets() {
		in.State = cpu.Floats(w.state)
	}
	return dispute.Case{Commitment: c, Step: number, Sequences: batch.Total(w.spans)}, in
}

// open is the player who argues by the truth.
func (w *world) open(t testing.TB, c dispute.Case, in Inputs) *Player {
	t.Helper()
	p, err := w.tracer.Open(t.Context(), c, in.Spans, in.Params, in.State)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// liar is a lying program that notes what its outcome is made of.
type liar struct {
	*lying
	made map[uint32][]uint32 // by operation
}

func newLying(p trace.Program, l lie) liar {
	made := make(map[uint32][]uint32)
	for _, r := range p.Op(p.Len()-1).Reads(0, 0) {
		made[r.Op] = make([]uint32, p.Op(r.Op).Words(0, p.Op(r.Op).Slices(0)-1))
	}
	note := func(op uint32, words []uint32) {
		if to, ok := made[op]; ok { // of one tile: nobody else writes there
			copy(to, words)
		}
	}
	return liar{&lying{p, l, note}, made}
}

// commit changes a commitment to what came out of the lying program, whose outcome reads payload,
// state and work in this order, or the work alone.
func (l liar) commit(c dispute.Commitment) dispute.Commitment {
	reads := l.Program.Op(l.Program.Len()-1).Reads(0, 0)
	hash := func(i int) (h wire.Hash) {
		for k, w := range l.made[reads[i].Op] {
			copy(h[4*k:], wire.AppendU32(nil, w))
		}
		return h
	}
	if len(reads) == 1 {
		c.Work = hash(0)
		return c
	}
	c.Payload, c.State, c.Work = hash(0), hash(1), hash(2)
	return c
}
