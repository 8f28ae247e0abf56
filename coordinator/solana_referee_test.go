package coordinator_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/chain/solana"
	"github.com/entrain-network/entrain/chain/solana/svm"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/trace"
	"github.com/entrain-network/entrain/trace/referee"
	"github.com/entrain-network/entrain/wire"
)

// argued is a dispute at its last slice, and what the accuser knows.
type argued struct {
	before  []byte // the state
	dispute dispute.Dispute
	accuser solana.Signer
	program trace.Program
	trace   *trace.Trace
	rules   []byte
}

// argue finds a dispute in the scenarios, and traces a step for it.
func argue(t *testing.T, numerics llama.Numerics, head int) (a argued) {
	t.Helper()
	coordinator.Mirrored(t, 1, func(s coordinator.Applied) {
		if e, ok := s.Message.(coordinator.Evidence); ok && s.Err == nil && a.before == nil {
			state, err := coordinator.Open(s.Before)
			if err != nil {
				t.Fatal(err)
			}
			a.before = slices.Clone(s.Before)
			a.dispute, _ = state.Dispute(e.Dispute)
			a.accuser = solana.NewSigner(coordinator.PrivateOf(s.Env.Sender))
		}
	})
	if a.before == nil {
		t.Fatal("no scenario has a dispute that comes to evidence")
	}
	cfg := llama.Config{Vocab: 70, Hidden: 96, Layers: 1, Heads: 2, KVHeads: 1, HeadDim: head, FFN: 96, Context: 64, Theta: 10000, Eps: 1e-5, Numerics: numerics}
	params := llama.Init(cfg, wire.Sum("test/params"))
	a.dispute.Sequences, a.dispute.Commitment.Params = 1, merkle.BlobRoot(tensor.Bytes(params))
	m, err := trace.NewModel(trace.Setup{Model: cfg, Sequence: 64})
	if err != nil {
		t.Fatal(err)
	}
	tails, err := trace.NewGradientTails(cfg.Layout())
	if err != nil {
		t.Fatal(err)
	}
	if a.program, err = m.Program(1, tails.Tail(a.dispute.Commitment)); err != nil {
		t.Fatal(err)
	}
	tokens := make([]uint32, 65)
	src := prng.New(wire.Sum("test/tokens"), "")
	for i := range tokens {
		tokens[i] = uint32(src.Uint64n(70))
	}
	pool := exact.NewPool(1)
	t.Cleanup(pool.Close)
	a.trace, err = trace.Run(t.Context(), pool, a.program, trace.Sources{
		Params: params, Tokens: func(uint32) ([]uint32, error) { return tokens, nil },
		Prove: func(r trace.Read) ([]byte, error) {
			return trace.ProveChunk(params, merkle.BlobLeaves(tensor.Bytes(params)), r.Index), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	a.rules = referee.Rules{Params: uint32(len(params)), Table: m.AppendTable(nil, cfg.Layout())}.Append(nil)
	return a
}

// TestDisputesEndOnSolana judges a slice of each kind of operation by the program, as its accounts have it: in parts where it takes
// more units than a transaction has. The state is then that of Go, whoever lied.
func TestDisputesEndOnSolana(t *testing.T) {
	t.Run("exact", func(t *testing.T) { endDisputes(t, argue(t, llama.Exact, 24)) })
	t.Run("exact8", func(t *testing.T) { endDisputes(t, argue(t, llama.Exact8, 32)) })
}

func endDisputes(t *testing.T, a argued) {
	const slot = 1000
	program, run := solana.Program{1}, solana.Address{2}
	m := svm.Start(t, "entrain", program)
	m.Put(a.accuser.Address(), solana.SystemProgram, 1<<50, nil)
	put := func(n byte, magic string, of solana.Address, content []byte) solana.Address {
		at := solana.Address{n}
		m.Put(at, solana.Address(program), 1<<50, slices.Concat([]byte(magic), of[:], content))
		return at
	}
	rules := put(3, "ENTR", run, a.rules)
	unix := int64(a.dispute.DeadlineMs/1000) + 1
	block := wire.Sum("test/block")
	m.Clock(slot, unix, block)
	env := coordinator.Env{NowMs: uint64(unix) * 1000, Height: slot, Sender: key.Public(a.accuser.Address()), Seed: wire.Sum("entrain/solana/seed", wire.AppendU64(nil, slot-1), block[:])}
	a.dispute.DeadlineMs = env.NowMs + 1000
	a.dispute.Traces[dispute.Accuser] = a.trace.Root()
	send := func(in solana.Instruction) svm.Result {
		tx, err := solana.Transaction(m.Blockhash(), []solana.Signer{a.accuser}, append(solana.Budget(solana.UnitsMax, 0), in)...)
		if err != nil {
			t.Fatal(err)
		}
		return m.Send(tx)
	}
	kernels := exact.Kernels()
	judged, parts := 0, 0
	for op := range a.program.Len() {
		if op%3 != 0 && op+3 < a.program.Len() && op > 3 {
			continue
		}
		o := a.program.Op(op)
		tile := o.Tiles() - 1
		d := a.dispute
		d.Op, d.Tile, d.Slice = op, tile, o.Slices(tile)-1
		if r := o.Reads(tile, d.Slice); len(r) > 0 && r[0].Source == trace.Tokens {
			continue
		}
		evidence, err := a.trace.Evidence(t.Context(), op, tile, d.Slice)
		if err != nil {
			t.Fatal(err)
		}
		by := referee.New(a.rules, exact.NewWorker(kernels[len(kernels)-1]), nil)
		truth, err := by.Judge(d.Case(), op, tile, d.Slice, a.trace.Root(), evidence)
		if err != nil {
			t.Fatal(o.Name(), err)
		}
		d.Nodes = [][2]wire.Hash{{{1}, truth}, {truth, {2}}, {{1}, {2}}}[judged%3]
		state := coordinator.AtSlice(a.before, d)
		message := coordinator.Evidence{Dispute: d.ID, Bytes: evidence}
		s, err := coordinator.Attach(slices.Clone(state))
		if err != nil {
			t.Fatal(err)
		}
		env.Referee = by
		if err := s.Apply(env, message); err != nil {
			t.Fatal(o.Name(), err)
		}
		m.Put(run, solana.Address(program), 1<<50, append(state, make([]byte, solana.TailBytes)...))
		sending := solana.Sending{Run: run, Sender: a.accuser.Address(), Message: message, Rules: rules, Work: put(5, "\x00\x00\x00\x00", solana.Address{}, make([]byte, solana.WorkBytes-36)),
			Buffer: put(4, "ENTB", a.accuser.Address(), coordinator.Append(nil, message))}
		for done := uint32(0); ; parts++ {
			if r := send(program.Judge(sending, 1)); r.Error != "" {
				t.Fatalf("%s: a part of the judgement: %s %q", o.Name(), r.Error, r.Logs)
			}
			now := solana.Worked(m.Data(sending.Work))
			if now == done {
				break
			}
			done = now
		}
		apply, err := program.Apply(sending)
		if err != nil {
			t.Fatal(err)
		}
		if r := send(apply); r.Error != "" || !bytes.Equal(solana.State(m.Data(run)), s.Bytes()) {
			t.Errorf("%s: %q (code %d), or another state than Go's; %q", o.Name(), r.Error, r.Code, r.Logs)
		}
		judged++
	}
	t.Logf("%d slices in %d parts", judged, parts)
	if judged < 30 {
		t.Errorf("only %d slices were judged", judged)
	}
}
