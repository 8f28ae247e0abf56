package verify

import (
	"bytes"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/trace"
	"github.com/entrain-network/entrain/wire"
)

func (w *world) prover(in Inputs) prover {
	return prover{w.engine, in.Params, in.State, in.Spans, w.set}
}

func TestEvidenceOpensToWhatWasRead(t *testing.T) {
	w := newWorld(t, 0)
	// Sequences enough that some lie across two chunks of a shard, and some across two shards.
	w.spans = []batch.Span{{Start: 100, Count: 3}, {Start: 0, Count: 2}, {Start: 40, Count: 30}, {Start: 2*w.set.Len() - 1, Count: 5}}
	c := dispute.Case{Step: 3, Sequences: batch.Total(w.spans)}
	_, in := w.step(t)
	c.Commitment.Share = batch.Hash(w.spans)
	real, _ := w.step(t)
	c.Commitment.Params, c.Commitment.Prev = real.Commitment.Params, real.Commitment.Prev
	p, o := w.prover(in), opener{w.tracer.rules, c}
	check := func(r trace.Read, want []uint32) {
		t.Helper()
		evidence, err := p.prove(r)
		if err != nil {
			t.Fatal(err)
		}
		got, err := o.Open(r, evidence)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%+v: opens to something else than was read: %v", r, err)
		}
	}
	tokens := p.tokens(w.spec.Data.Sequence)
	for i := range c.Sequences {
		want, err := tokens(i)
		if err != nil {
			t.Fatal(err)
		}
		check(trace.Read{Source: trace.Tokens, Index: i}, want)
	}
	for i := 0; i*trace.ChunkWords < len(w.params); i++ {
		to := min((i+1)*trace.ChunkWords, len(w.params))
		check(trace.Read{Source: trace.Params, Index: uint32(i)}, trace.Bits(w.params[i*trace.ChunkWords:to]))
		check(trace.Read{Source: trace.State, Index: uint32(i)}, trace.Bits(w.state[i*trace.ChunkWords:to]))
	}
	if _, err := tokens(c.Sequences); err == nil {
		t.Error("a sequence beyond the share was read")
	}
	if _, err := p.prove(trace.Read{Source: trace.Tokens, Index: c.Sequences}); err == nil {
		t.Error("a sequence beyond the share was proven")
	}
}

func TestEvidenceOfSomethingElseIsRefused(t *testing.T) {
	w := newWorld(t, 0)
	c, in := w.step(t)
	p, o := w.prover(in), opener{w.tracer.rules, c}
	proof := func(p prover, r trace.Read) []byte {
		b, err := p.prove(r)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	sequence := func(i uint32) trace.Read { return trace.Read{Source: trace.Tokens, Index: i} }
	params := trace.Read{Source: trace.Params}
	other := p
	other.spans = []batch.Span{{Start: 11, Count: 1}, {Start: 5, Count: 1}, {Start: 4871, Count: 1}}
	fewer := p
	fewer.spans = p.spans[:2]
	for name, v := range map[string]struct {
		r        trace.Read
		evidence []byte
	}{
		"another share":           {sequence(0), proof(other, sequence(0))},
		"a part of the share":     {sequence(0), proof(fewer, sequence(0))},
		"a sequence beyond":       {sequence(3), proof(p, sequence(0))},
		"another chunk":           {trace.Read{Source: trace.Params, Index: 1}, proof(p, params)},
		"a chunk beyond":          {trace.Read{Source: trace.Params, Index: 9}, proof(p, params)},
		"a state as parameters":   {params, proof(p, trace.Read{Source: trace.State})},
		"parameters as a state":   {trace.Read{Source: trace.State}, proof(p, params)},
		"nothing":                 {sequence(0), nil},
		"a value":                 {trace.Read{Source: trace.Value}, proof(p, params)},
		"more than the sequence":  {sequence(0), append(proof(p, sequence(0)), 0)},
		"less than the sequence":  {sequence(0), proof(p, sequence(0))[:100]},
		"another manifest's data": {sequence(0), bytes.Replace(proof(p, sequence(0)), []byte(`"words"`), []byte(`"bytes"`), 1)},
	} {
		if _, err := o.Open(v.r, v.evidence); err == nil {
			t.Errorf("%s: the evidence was taken", name)
		}
	}
}

// wordy is data whose proofs are long.
type wordy struct {
	Data
	proof int
}

func (w wordy) ProofMax() int { return w.proof }

func TestDataThatCannotBeProvenIsRefused(t *testing.T) {
	w := newWorld(t, 0)
	for _, v := range []struct {
		bytes int
		fits  bool
	}{{coordinator.EvidenceBytesMax - evidenceRoom, true}, {coordinator.EvidenceBytesMax - evidenceRoom + 1, false}} {
		if _, err := NewTracer(w.spec, wordy{w.set, v.bytes}, w.engine); (err == nil) != v.fits {
			t.Errorf("proofs of %d bytes: %v", v.bytes, err)
		}
	}
}

func FuzzOpen(f *testing.F) {
	w := newWorld(f, 0)
	c, in := w.step(f)
	p, o := w.prover(in), opener{w.tracer.rules, c}
	for _, r := range []trace.Read{{Source: trace.Tokens}, {Source: trace.Tokens, Index: 2}} {
		b, err := p.prove(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b[:min(len(b), 2000)], uint8(r.Source), r.Index)
	}
	f.Add(wire.AppendVar(nil, batch.Append(nil, w.spans)), uint8(trace.Tokens), uint32(1))
	whole, err := p.prove(trace.Read{Source: trace.Params, Index: 1})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole[:1000], uint8(trace.Params), uint32(1))
	f.Fuzz(func(t *testing.T, evidence []byte, source uint8, index uint32) {
		words, err := o.Open(trace.Read{Source: trace.Source(source), Index: index}, evidence)
		if err != nil {
			return
		}
		want, err := p.tokens(w.spec.Data.Sequence)(index)
		if trace.Source(source) == trace.Tokens && (err != nil || !slices.Equal(words, want)) {
			t.Errorf("sequence %d was opened to other tokens than there are", index)
		}
	})
}
