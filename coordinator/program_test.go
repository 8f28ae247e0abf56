package coordinator

import (
	"encoding/binary"
	"encoding/json"
	"errors"

	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/key"

	"github.com/entrain-network/entrain/bisect"
	"github.com/entrain-network/entrain/wire"
)

// program is a step that tests can afford, and its referee. Each slice is a hash of what came before: of the slice before it in
// its tile, and of the whole value of the operation before. The last operation is the outcome. A share of one sequence is a
// program of that operation alone.
type program struct{}

func (program) Ops(sequences uint32) uint32 { return 1 + 5*(sequences-min(sequences, 1)) }

func (p program) Tiles(c dispute.Case, op uint32) uint32 {
	if op+1 >= p.Ops(c.Sequences) {
		return 1
	}
	return 1 + op*op%19
}

func (p program) Slices(c dispute.Case, op, tile uint32) uint32 {
	if op+1 >= p.Ops(c.Sequences) {
		return 1
	}
	return 1 + (op*3+tile)%18
}

// step computes a slice.
func step(c dispute.Case, op, tile, slice uint32, before wire.Hash, acc []uint32) []uint32 {
	b := wire.AppendU32(wire.AppendU32(nil, uint32(c.Step)), c.Sequences)
	b = wire.AppendU32(wire.AppendU32(wire.AppendU32(b, op), tile), slice)
	for _, w := range acc {
		b = wire.AppendU32(b, w)
	}
	h := wire.Sum("test/step", c.Commitment.Share[:], c.Commitment.Params[:], before[:], b)
	words := make([]uint32, 8)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(h[4*i:])
	}
	return words
}

// gradient is the root that opens the work of an honest result.
func gradient(before wire.Hash) wire.Hash { return wire.Sum("test/gradient", before[:]) }

// conclude fills in what an honest commitment says about the outcome.
func conclude(c dispute.Commitment, before wire.Hash) dispute.Commitment {
	c.Payload, c.PayloadBytes = wire.Sum("test/payload", c.Share[:], c.Params[:], before[:]), 100
	c.State = wire.Sum("test/state", before[:])
	c.Work = dispute.WorkHash(c.Run, c.Round, c.Member, gradient(before))
	return c
}

// bend changes the words of slices; nil is honest.
type bend func(op, tile, slice uint32, words []uint32) []uint32

// trace is one party's computation of a case.
type trace struct {
	c      dispute.Case
	words  [][][][]uint32 // of operations, tiles, slices
	slices [][][]wire.Hash
	tiles  [][]wire.Hash
	ops    []wire.Hash
	before wire.Hash          // value of the last operation but one
	result dispute.Commitment // with the outcome that was computed
}

// compute computes a step. Of the commitment of the case only the identity, the share and the parameters matter.
func compute(c dispute.Case, twist bend) *trace {
	t := &trace{c: c}
	p := program{}
	n := p.Ops(c.Sequences)
	for op := range n - 1 {
		var words [][][]uint32
		var slices [][]wire.Hash
		var tiles []wire.Hash
		for tile := range p.Tiles(c, op) {
			var chain [][]uint32
			var leaves []wire.Hash
			var acc []uint32
			for slice := range p.Slices(c, op, tile) {
				acc = step(c, op, tile, slice, t.before, acc)
				if twist != nil {
					acc = twist(op, tile, slice, acc)
				}
				chain, leaves = append(chain, acc), append(leaves, bisect.Leaf(acc))
			}
			words, slices, tiles = append(words, chain), append(slices, leaves), append(tiles, bisect.Root(leaves))
		}
		t.words, t.slices, t.tiles = append(t.words, words), append(t.slices, slices), append(t.tiles, tiles)
		t.before = bisect.Root(tiles)
		t.ops = append(t.ops, t.before)
	}
	t.result = conclude(c.Commitment, t.before)
	return t.end(dispute.Outcome(t.result))
}

// end makes the last value of the trace what somebody says came out.
func (t *trace) end(outcome wire.Hash) *trace {
	t.ops = append(t.ops[:len(t.words):len(t.words)], outcome)
	t.slices = append(t.slices[:len(t.words):len(t.words)], [][]wire.Hash{{outcome}})
	t.tiles = append(t.tiles[:len(t.words):len(t.words)], []wire.Hash{outcome})
	return t
}

func (t *trace) root() wire.Hash { return bisect.Root(t.ops) }

// blind returns the root as a verifier or tie-breaker names it.
func (t *trace) blind(by key.Public) wire.Hash { return dispute.Blind(by, t.root()) }

// move returns the next message of one side of a dispute; nil if it is not its turn.
func (t *trace) move(d dispute.Dispute, side int) Message {
	switch {
	case d.Stage == dispute.StageDefending && side == dispute.Accused:
		return Defend{Dispute: d.ID, Trace: t.root(), Proof: bisect.Prove(t.ops, uint32(len(t.ops)-1))}
	case d.Stage == dispute.StageDescending && !d.Revealed[side]:
		leaves := t.ops
		switch d.Level {
		case dispute.LevelTiles:
			leaves = t.tiles[d.Op]
		case dispute.LevelSlices:
			leaves = t.slices[d.Op][d.Tile]
		}
		return Reveal{Dispute: d.ID, Nodes: bisect.Children(leaves, d.Depth, d.Index)}
	case d.Stage == dispute.StageEvidence && side == dispute.Accuser:
		return Evidence{Dispute: d.ID, Bytes: t.evidence(d.Op, d.Tile, d.Slice)}
	}
	return nil
}

// opening is the evidence of a slice: its inputs with their proofs.
type opening struct {
	Before             wire.Hash
	BeforeProof        []wire.Hash
	Acc                []uint32
	Slices, Tiles, Ops []wire.Hash // proofs of the slice before
}

func (t *trace) evidence(op, tile, slice uint32) []byte {
	var o opening
	if op > 0 {
		o.Before, o.BeforeProof = t.ops[op-1], bisect.Prove(t.ops, op-1)
	}
	if slice > 0 {
		o.Acc = t.words[op][tile][slice-1]
		o.Slices = bisect.Prove(t.slices[op][tile], slice-1)
		o.Tiles = bisect.Prove(t.tiles[op], tile)
		o.Ops = bisect.Prove(t.ops, op)
	}
	b, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return b
}

var errEvidence = errors.New("evidence proves nothing")

// Judge implements Referee. The slices before the one in question and the values of the operations before are what both
// sides agree on, so proofs from the accuser's tree count. Those of the tile in question lead to a root of the accuser's
// tree, in which the slice before the one in question is the same as in the accused's.
func (p program) Judge(c dispute.Case, op, tile, slice uint32, root wire.Hash, evidence []byte) (wire.Hash, error) {
	var o opening
	if err := json.Unmarshal(evidence, &o); err != nil {
		return wire.Hash{}, err
	}
	n := p.Ops(c.Sequences)
	if op > 0 && !bisect.Check(root, o.Before, op-1, n, o.BeforeProof) {
		return wire.Hash{}, errEvidence
	}
	if op >= n-1 {
		return dispute.Outcome(conclude(c.Commitment, o.Before)), nil
	}
	if slice > 0 {
		leaf := climbProof(bisect.Leaf(o.Acc), slice-1, p.Slices(c, op, tile), o.Slices)
		leaf = climbProof(leaf, tile, p.Tiles(c, op), o.Tiles)
		if !bisect.Check(root, leaf, op, n, o.Ops) {
			return wire.Hash{}, errEvidence
		}
	}
	var acc []uint32
	if slice > 0 {
		acc = o.Acc
	}
	return bisect.Leaf(step(c, op, tile, slice, o.Before, acc)), nil
}

// climbProof returns the root that a proof leads to; the zero hash if it has not the length it must have.
func climbProof(leaf wire.Hash, at, n uint32, proof []wire.Hash) wire.Hash {
	if len(proof) != 4*int(bisect.Depth(n)) {
		return wire.Hash{}
	}
	for l, h := range proof {
		if at>>l&1 == 1 {
			leaf, h = h, leaf
		}
		leaf = wire.Sum("entrain/bisect", leaf[:], h[:])
	}
	return leaf
}
