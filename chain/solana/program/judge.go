//go:build sbf

package main

import (
	"math"
	"unsafe"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/trace"
	"github.com/entrain-network/entrain/trace/referee"
	"github.com/entrain-network/entrain/wire"
)

// The rules of a run that verifies results are a buffer of its owner's, which create seals:
//
//	U32 rulesMagic, 32 bytes run, referee.Rules
//
// The program does not know whether they are those of the specification: clients compare.

// sealRules makes a buffer of the sender's the rules of a run.
func (c *call) sealRules(rules, run, sender *account) error {
	if err := c.sealAs(rulesMagic, rules, sender); err != nil {
		return err
	}
	copy(rules.data()[bufferAt:], run.key[:])
	return nil
}

// ownRules checks that an account, which the instruction will write, holds the rules of a run.
func (c *call) ownRules(rules, run *account) error {
	if err := c.own(rules); err != nil {
		return err
	}
	return c.hasRules(rules, run)
}

// hasRules checks that an account holds the rules of a run.
func (c *call) hasRules(rules, run *account) error {
	if err := c.owns(rules); err != nil {
		return err
	}
	if magic(rules) != rulesMagic {
		return errKind
	}
	if bufferAuthor(rules) != run.key {
		return errReferee
	}
	return nil
}

// referee returns the referee of a run by the account of its rules.
func (c *call) referee(rules, run *account, p *exact.Progress) (*referee.Referee, error) {
	if err := c.hasRules(rules, run); err != nil {
		return nil, err
	}
	return referee.New(rules.data()[bufferHeader:], exact.NewWorker(exact.Kernel{}), p), nil
}

// A work account holds the part of a judgement that is computed. A slice has one truth, which the
// slice and the root over its evidence decide: other evidence gives the same elements.
//
//	U32 workMagic, 32 bytes author, Hash of what is judged, U32 elements, elements
const (
	workCase  = bufferHeader
	workUsed  = workCase + 32
	workWords = workUsed + 4
	workBytes = workWords + 4*trace.ProgressWords
)

// progress returns what a work account holds, of which some results more may be computed.
func progress(work *account, left int) *exact.Progress {
	b := work.data()
	return &exact.Progress{
		Words: unsafe.Slice((*float32)(unsafe.Pointer(&b[workWords])), trace.ProgressWords),
		Used:  int(*(*uint32)(unsafe.Pointer(&b[workUsed]))), Left: left,
	}
}

// question names what is judged.
func question(run *account, c dispute.Case, op, tile, slice uint32, root wire.Hash) wire.Hash {
	b := c.Commitment.Append(nil)
	for _, n := range [5]uint32{uint32(c.Step), c.Sequences, op, tile, slice} {
		b = wire.AppendU32(b, n)
	}
	return wire.Sum("entrain/solana/work", run.key[:], b, root[:])
}

// worked is a referee that takes what was computed in advance, if work is not nil.
type worked struct {
	*referee.Referee
	run, work *account
}

// Judge implements dispute.Referee.
//
//go:noinline
func (w *worked) Judge(c dispute.Case, op, tile, slice uint32, root wire.Hash, evidence []byte) (wire.Hash, error) {
	if w.work != nil && question(w.run, c, op, tile, slice, root) != wire.Hash(w.work.data()[workCase:workUsed]) {
		return wire.Hash{}, referee.ErrUnfinished
	}
	return w.Referee.Judge(c, op, tile, slice, root, evidence)
}

// arbiter returns the referee of a run that verifies results, for the message of an apply.
func (c *call) arbiter(b *book) (dispute.Referee, error) {
	var p *exact.Progress
	if b.work != nil {
		if err := c.owns(b.work); err != nil {
			return nil, err
		}
		if magic(b.work) != workMagic {
			return nil, errKind
		}
		p = progress(b.work, 0)
	}
	r, err := c.referee(b.rules, b.run, p)
	return &worked{r, b.run, b.work}, err
}

// judge computes a part of the judgement that evidence in a buffer asks for.
func (c *call) judge(r *wire.Reader) error {
	left := r.U32()
	if r.Done() != wire.OK || left > math.MaxInt32 {
		return errData
	}
	if c.n != 5 {
		return errAccounts
	}
	run, author, rules, buffer, work := c.list[0], c.list[1], c.list[2], c.list[3], c.list[4]
	if err := c.owns(run); err != nil {
		return err
	}
	if author.signer == 0 {
		return errSigner
	}
	if err := c.owns(buffer); err != nil {
		return err
	}
	if magic(buffer) != bufferMagic {
		return errKind
	}
	if err := c.own(work); err != nil {
		return err
	}
	b := work.data()
	if len(b) != workBytes {
		return errLength
	}
	switch magic(work) {
	case workMagic:
		if bufferAuthor(work) != author.key {
			return errAuthor
		}
	case 0:
		*(*uint32)(unsafe.Pointer(&b[0])) = workMagic
		copy(b[bufferAt:], author.key[:])
	default:
		return errKind
	}
	s, _, err := attach(run)
	if err != nil {
		return err
	}
	m, err := coordinator.ParseMessage(buffer.data()[bufferHeader:])
	if err != nil {
		return err
	}
	e, ok := m.(coordinator.Evidence)
	if !ok {
		return errKind
	}
	d, ok := s.Dispute(e.Dispute)
	if !ok || d.Stage != dispute.StageEvidence {
		return coordinator.ErrStage
	}
	if q := question(run, d.Case(), d.Op, d.Tile, d.Slice, d.Traces[dispute.Accuser]); q != wire.Hash(b[workCase:workUsed]) {
		clear(b[workUsed:])
		copy(b[workCase:], q[:])
	}
	p := progress(work, int(left))
	judge, err := c.referee(rules, run, p)
	if err != nil {
		return err
	}
	if _, err = judge.Judge(d.Case(), d.Op, d.Tile, d.Slice, d.Traces[dispute.Accuser], e.Bytes); err != nil && !p.Stopped {
		return coordinator.ErrEvidence
	}
	*(*uint32)(unsafe.Pointer(&b[workUsed])) = uint32(p.Used)
	return nil
}
