package solana_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/chain/solana"
	"github.com/entrain-network/entrain/chain/solana/svm"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/trace"
	"github.com/entrain-network/entrain/wire"
)

// steps is a step that is judged on Solana's machine: its program, its trace, and the table.
type steps struct {
	program trace.Program
	trace   *trace.Trace
	sources trace.Sources
	table   []byte
}

// believed are external inputs that need no proof.
type believed struct{}

func (believed) Open(_ trace.Read, evidence []byte) ([]uint32, error) {
	return trace.Words(evidence), nil
}

func judged(t *testing.T, cfg llama.Config, sequence int) steps {
	t.Helper()
	const sequences = 2
	m, err := trace.NewModel(trace.Setup{Model: cfg, Sequence: sequence})
	if err != nil {
		t.Fatal(err)
	}
	tails, err := trace.NewGradientTails(cfg.Layout())
	if err != nil {
		t.Fatal(err)
	}
	var s steps
	if s.program, err = m.Program(sequences, tails.Tail(dispute.Commitment{})); err != nil {
		t.Fatal(err)
	}
	s.table = m.AppendTable(nil, cfg.Layout())
	params := llama.Init(cfg, wire.Sum("test/params"))
	tokens := func(i uint32) ([]uint32, error) {
		src := prng.New(wire.Sum("test/tokens"), fmt.Sprint(i))
		words := make([]uint32, sequence+1)
		for k := range words {
			words[k] = uint32(src.Uint64n(uint64(cfg.Vocab)))
		}
		return words, nil
	}
	sources := trace.Sources{Params: params, Tokens: tokens}
	sources.Prove = func(r trace.Read) ([]byte, error) {
		words := trace.Bits(params[int(r.Index)*trace.ChunkWords*int(r.Source)%max(1, len(params)):])
		if r.Source == trace.Tokens {
			words, _ = tokens(r.Index)
		} else {
			words = words[:min(len(words), trace.ChunkWords)]
		}
		var b []byte
		for _, w := range words {
			b = binary.LittleEndian.AppendUint32(b, w)
		}
		return b, nil
	}
	s.sources = sources
	pool := exact.NewPool(1)
	t.Cleanup(pool.Close)
	if s.trace, err = trace.Run(context.Background(), pool, s.program, sources); err != nil {
		t.Fatal(err)
	}
	return s
}

// heavy returns the slice of an operation that reads and makes most, the last of these.
func heavy(o trace.Op) (tile, slice uint32) {
	most := -1
	for i := range o.Tiles() {
		for j := range o.Slices(i) {
			if n := o.Words(i, j) + 1024*len(o.Reads(i, j)); n >= most {
				most, tile, slice = n, i, j
			}
		}
	}
	return tile, slice
}

var numbers = regexp.MustCompile(`\b(sequence|layer|head) \d+, `)

// kind names an operation without its place.
func kind(o trace.Op) string {
	name := numbers.ReplaceAllString(o.Name(), "")
	if strings.HasPrefix(name, "pieces of ") {
		return "pieces of a tensor"
	}
	return name
}

// bench judges slices on Solana's machine.
type bench struct {
	m       *svm.Machine
	payer   solana.Signer
	steps   steps
	hostile *trace.Trace // what the step's operations read, of hostile words
	result  solana.Address
}

func (b *bench) call(t *testing.T, op, tile, slice uint32, left int) svm.Result {
	t.Helper()
	root := b.steps.trace.Root()
	data := []byte{103}
	for _, v := range []uint32{2, op, tile, slice, uint32(left)} {
		data = wire.AppendU32(data, v)
	}
	in := solana.Instruction{Program: solana.Address{1}, Data: append(data, root[:]...), Accounts: []solana.AccountRef{
		{Address: b.result, Writable: true}, {Address: b.payer.Address()}, {Address: solana.Address{4}}, {Address: solana.Address{5}}}}
	tx, err := solana.Transaction([32]byte{}, []solana.Signer{b.payer}, append(solana.Budget(solana.UnitsMax, 0), in)...)
	if err != nil {
		t.Fatal(err)
	}
	return b.m.Send(tx)
}

// hostile is a program whose every operation makes words that break arithmetic: numbers that are
// none, infinite, subnormal or of either zero.
type hostile struct{ trace.Program }

func (h hostile) Op(t uint32) trace.Op {
	o := h.Program.Op(t)
	if _, leafs := o.(trace.Leafer); leafs {
		return o
	}
	return hostileOp{o, t}
}

type hostileOp struct {
	trace.Op
	t uint32
}

func (h hostileOp) Step(_ *exact.Worker, tile, slice uint32, _ []uint32, _ [][]uint32) []uint32 {
	src := prng.New(wire.Sum("test/hostile"), fmt.Sprint(h.t, tile, slice))
	words := make([]uint32, h.Words(tile, slice))
	for i := range words {
		switch v := uint32(src.Uint64()); src.Uint64n(4) {
		case 0:
			words[i] = v
		case 1:
			words[i] = []uint32{0, 1 << 31, 0x7f800000, 0xff800000, 0x7fc00000, 1, 0x80000001, 0x7f7fffff, 0x00800000}[v%9]
		default:
			words[i] = v&0x80ffffff | 0x3f000000
		}
	}
	return words
}

// TestRefereeOnSolana judges a slice of each kind of operation on Solana's machine: the same words
// as in Go, of an honest step and where all that a slice reads is hostile. It prints what that
// costs: the table of docs/chains.md.
func TestRefereeOnSolana(t *testing.T) {
	cfg := llama.Config{Vocab: 260, Hidden: 96, Layers: 1, Heads: 2, KVHeads: 1, HeadDim: 32, FFN: 96, Context: 128, Theta: 10000, Eps: 1e-5, Bias: true}
	eight := cfg
	eight.Numerics, eight.Bias, eight.QKNorm = llama.Exact8, false, true
	m := svm.Start(t, "replay", solana.Program{1})
	m.Unsigned()
	m.Unlimited()
	b := bench{m: m, payer: solana.NewSigner(key.FromSeed([32]byte{4})), result: solana.Address{3}}
	m.Put(b.payer.Address(), solana.SystemProgram, 1<<50, nil)
	costs := map[string][2]cost{}
	var kinds []string
	pool := exact.NewPool(1)
	defer pool.Close()
	for k, c := range []llama.Config{cfg, eight} {
		b.steps = judged(t, c, 128)
		var err error
		if b.hostile, err = trace.Run(t.Context(), pool, hostile{b.steps.program}, b.steps.sources); err != nil {
			t.Fatal(err)
		}
		m.Put(solana.Address{4}, solana.Address{1}, 1<<50, b.steps.table)
		seen := map[string]bool{}
		for op := range b.steps.program.Len() {
			name := kind(b.steps.program.Op(op))
			if seen[name] {
				continue
			}
			seen[name] = true
			both := costs[name]
			if both == [2]cost{} {
				kinds = append(kinds, name)
			}
			both[k] = b.judge(t, op)
			costs[name] = both
		}
	}
	var text strings.Builder
	for _, name := range kinds {
		fmt.Fprintf(&text, "\n| %s |", name)
		for _, c := range costs[name] {
			fmt.Fprintf(&text, " %d | %d |", (c.units+999)/1000, c.transactions)
		}
	}
	t.Logf("thousands of units of a slice, and transactions, in binary32 and in 8 bits:%s", text.String())
}

// cost is what judging a slice takes.
type cost struct{ units, transactions uint64 }

// judge judges the heaviest slice of an operation, with honest and with hostile words.
func (b *bench) judge(t *testing.T, op uint32) (c cost) {
	t.Helper()
	p, honest := b.steps.program, b.steps.trace
	o := p.Op(op)
	tile, slice := heavy(o)
	for _, run := range []*trace.Trace{honest, b.hostile} {
		b.steps.trace = run
		evidence, err := run.Evidence(context.Background(), op, tile, slice)
		if err != nil {
			t.Fatal(err)
		}
		want, err := trace.Judge(p, believed{}, op, tile, slice, run.Root(), evidence)
		if err != nil {
			t.Fatal(err)
		}
		b.m.Put(solana.Address{5}, solana.Address{1}, 1<<50, evidence)
		b.m.Put(b.result, solana.Address{1}, 1<<50, make([]byte, 40+4*trace.ProgressWords))
		first := b.call(t, op, tile, slice, 1)
		r := b.call(t, op, tile, slice, math.MaxInt32)
		last := b.call(t, op, tile, slice, 0)
		got := b.m.Data(b.result)
		if r.Error != "" || got[4] != 1 || !slices.Equal(got[5:37], want[:]) {
			t.Errorf("%s: %q %q, another result", kind(o), r.Error, r.Logs)
		}
		// Each result must fit a transaction, with the 300,000 units that the rest of a message may take.
		if most := max(first.Units, last.Units); most > solana.UnitsMax-100_000 {
			t.Errorf("%s: a result takes %d units, of %d", kind(o), most, solana.UnitsMax)
		}
		if run == honest {
			c.units = first.Units + r.Units - last.Units
			c.transactions = 1
			if c.units > solana.UnitsMax-100_000 {
				each := max(1, first.Units-last.Units)
				c.transactions += (c.units - last.Units + each - 1) / each / max(1, (solana.UnitsMax-100_000-last.Units)/each)
			}
		}
	}
	b.steps.trace = honest
	return c
}

// TestFloatsOnSolana computes with floats on Solana's machine, which has none: the bits of Go's.
func TestFloatsOnSolana(t *testing.T) {
	const results, cases = 15, 400
	m := svm.Start(t, "replay", solana.Program{1})
	m.Unsigned()
	m.Unlimited()
	payer := solana.NewSigner(key.FromSeed([32]byte{4}))
	m.Put(payer.Address(), solana.SystemProgram, 1<<50, nil)
	src := prng.New(wire.Sum("test/floats"), "")
	number := func() uint64 {
		v := src.Uint64()
		low := uint32(v)
		switch src.Uint64n(6) {
		case 0:
			low = []uint32{0, 1 << 31, 0x7f800000, 0xff800000, 1, 0x80000001, 0x7f7fffff, 0x00800000, 0x007fffff}[v>>40%9]
		case 1, 2, 3:
			low = low&0x80ffffff | 0x3f000000
		}
		high := uint32(v >> 32)
		switch src.Uint64n(5) {
		case 0:
			high = []uint32{0, 1 << 31, 0x7ff00000, 0xfff00000, 0x7fefffff, 0x00100000, 0x000fffff}[v>>20%7]
		case 1, 2:
			high = high&0x801fffff | 0x3fe00000
		}
		return uint64(high)<<32 | uint64(low)
	}
	for round := range 20 {
		var in []byte
		for range cases {
			for range 3 {
				in = wire.AppendU64(in, number())
			}
			in = append(in, make([]byte, 8*results)...)
		}
		m.Put(solana.Address{3}, solana.Address{1}, 1<<50, in)
		call := solana.Instruction{Program: solana.Address{1}, Data: []byte{104}, Accounts: []solana.AccountRef{{Address: solana.Address{3}, Writable: true}, {Address: payer.Address()}}}
		tx, err := solana.Transaction([32]byte{byte(round)}, []solana.Signer{payer}, append(solana.Budget(solana.UnitsMax, 0), call)...)
		if err != nil {
			t.Fatal(err)
		}
		if r := m.Send(tx); r.Error != "" {
			t.Fatal(r.Error, r.Logs)
		}
		out := m.Data(solana.Address{3})
		for i := range cases {
			at := out[8*(3+results)*i:]
			word := func(k int) uint64 { return binary.LittleEndian.Uint64(at[8*k:]) }
			for k, want := range floats(word(0), word(1), word(2)) {
				if got := word(3 + k); got != want {
					t.Fatalf("result %d of %x %x %x is %x, want %x", k, word(0), word(1), word(2), got, want)
				}
			}
		}
	}
}

// floats is what the program for tests computes with floats, with canonical NaNs.
func floats(a, b, c uint64) (r [15]uint64) {
	f32 := func(v uint64) float32 { return math.Float32frombits(uint32(v)) }
	x, y, z, p, q := f32(a), f32(b), f32(c), math.Float64frombits(a), math.Float64frombits(b)
	for i, v := range [6]float32{x + y, x - y, x * y, x / y, exact.FMA32(x, y, z), float32(p)} {
		if r[i] = uint64(math.Float32bits(v)); v != v {
			r[i] = 0x7fc00000
		}
	}
	for i, v := range [7]float64{p + q, p - q, p * q, p / q, math.Sqrt(p), float64(x), float64(int64(a))} {
		if r[6+i] = math.Float64bits(v); v != v {
			r[6+i] = 0x7ff8 << 48
		}
	}
	r[13] = uint64(math.Float32bits(float32(a)))
	for i, holds := range [6]bool{x < y, x <= y, x == y, p < q, p <= q, p == q} {
		if holds {
			r[14] |= 1 << uint(i)
		}
	}
	return r
}
