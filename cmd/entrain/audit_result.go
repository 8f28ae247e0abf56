package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/engine/cpu"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/verify"
	"github.com/entrain-network/entrain/wire"
)

// What comes of an audit.
const (
	auditEqual     = "equal"
	auditDifferent = "different"
	auditNot       = "not audited"
)

// auditReport is what came of auditing one result.
type auditReport struct {
	Run       string     `json:"run"`
	Chain     string     `json:"chain"`
	Epoch     uint32     `json:"epoch"`
	Round     uint32     `json:"round"`
	Step      uint32     `json:"step"`
	Member    uint32     `json:"member"`
	Key       string     `json:"key"`
	Sequences uint32     `json:"sequences"`
	Accepted  bool       `json:"accepted"` // the result counts
	Verdict   string     `json:"verdict"`
	Reason    string     `json:"reason,omitempty"` // of a verdict other than equal
	Rows      []auditRow `json:"rows"`
	Seconds   float64    `json:"seconds"`
}

// auditRow is one hash of a commitment.
type auditRow struct {
	What    string `json:"what"`
	Claimed string `json:"claimed"`
	Found   string `json:"found"` // what comes out, or what the chain says
	Equal   bool   `json:"equal"`
}

// row compares what was claimed with what was found.
func (r *auditReport) row(what string, claimed, found any) {
	row := auditRow{What: what, Claimed: fmt.Sprint(claimed), Found: fmt.Sprint(found)}
	row.Equal = row.Claimed == row.Found
	r.Rows = append(r.Rows, row)
	if !row.Equal && r.Verdict != auditDifferent {
		r.Verdict, r.Reason = auditDifferent, "its "+what+" is not what it must be"
	}
}

// inputs are what an audit of one result takes. If they could not be had, or already do not fit, the report has its verdict.
type inputs struct {
	report       auditReport
	round        coordinator.Round
	signed       coordinator.Signed
	commitment   coordinator.Commitment
	spans        []batch.Span
	params, prev []float32
}

// gather gets what a member committed to in a round, and what it takes to compute it again.
func (a *auditor) gather(ctx context.Context, r coordinator.Round, member uint32) *inputs {
	s := a.state()
	in := &inputs{round: r, spans: r.Share(member), report: auditReport{
		Run: a.run, Chain: a.client.ChainID(), Epoch: r.Epoch(), Round: r.Number(), Step: r.Step(), Member: member, Key: s.Key(member).String(),
		Accepted: r.Accepted(member), Rows: []auditRow{},
	}}
	report := &in.report
	report.Sequences = uint32(batch.Total(in.spans))
	signed, err := a.commitments(ctx, s, r.Number(), member)
	if err != nil {
		return in.give(err, "its commitment", "members keep those of the last rounds: audit sooner, or with --watch")
	}
	if len(signed) > 1 {
		report.row("commitment", signed[0].Commitment.ID(), signed[1].Commitment.ID())
		report.Reason = "it signed two commitments for one round"
		return in
	}
	in.signed, in.commitment = signed[0], signed[0].Commitment
	agreed, _ := r.Agreed()
	report.row("share", in.commitment.Share, batch.Hash(in.spans))
	report.row("parameters", in.commitment.Params, agreed)
	if report.Verdict == auditDifferent {
		return in
	}
	if in.prev, err = a.before(ctx, s, in.commitment.Prev, member); err != nil {
		return in.give(err, "the optimizer state it went on from", advicePrev(err))
	}
	if in.params, err = a.start(ctx, s, agreed, member); err != nil {
		return in.give(err, "the parameters at the round's start", "members keep those of the last rounds: audit sooner, or with --watch")
	}
	a.chained(ctx, s, r, in.commitment, report)
	return in
}

// give gives up.
func (in *inputs) give(err error, what, advice string) *inputs {
	in.report.Verdict, in.report.Reason = auditNot, fmt.Sprintf("%s: %v; %s", what, err, advice)
	return in
}

// compute computes the share and compares what comes out.
func (a *auditor) compute(ctx context.Context, in *inputs) auditReport {
	if in.report.Verdict != "" && in.params == nil {
		return in.report
	}
	result, err := a.trainer.Engine.Step(ctx, cpu.Floats(in.params), cpu.Floats(in.prev), in.spans, in.round.Step())
	if err != nil {
		return in.give(err, "computing the share", "check the data, and this machine").report
	}
	in.report.compare(in.commitment, result, merkle.Root(a.trainer.Engine.Leaves(cpu.Floats(in.prev))))
	if in.report.Verdict == "" {
		in.report.Verdict = auditEqual
	}
	return in.report
}

func advicePrev(err error) string {
	if errors.Is(err, p2p.ErrMissing) || errors.Is(err, p2p.ErrNoPeers) {
		return "its author serves it for some rounds, if the run has its results checked: audit sooner, or with --watch"
	}
	return "its author may have left"
}

// compare adds what came of computing the share.
func (r *auditReport) compare(c coordinator.Commitment, result engine.Result, state wire.Hash) {
	found := verify.Claim(c, result, state)
	r.row("gradient", c.Work, found.Work)
	r.row("optimizer state", c.State, found.State)
	r.row("payload", c.Payload, found.Payload)
	r.row("payload length", c.PayloadBytes, found.PayloadBytes)
}

// chained tells whether the state a member went on from is that of its result of the step before. A fresh one is, too; and what cannot be known
// any more is left out.
func (a *auditor) chained(ctx context.Context, s coordinator.State, r coordinator.Round, c coordinator.Commitment, report *auditReport) {
	fresh := merkle.Root(a.trainer.Engine.Leaves(cpu.Floats(make([]float32, a.trainer.Engine.StateLen()))))
	if c.Prev == fresh {
		report.row("state before", c.Prev, fresh)
		return
	}
	if resumed, ok := a.trainer.Spec.States()[s.Key(c.Member)]; ok && r.Step() == 1 {
		report.row("state before", c.Prev, resumed)
		return
	}
	if a.guest == nil {
		return
	}
	before, ok := s.At(r.Number() - 1)
	if !ok || before.Step()+1 != r.Step() || !before.Accepted(c.Member) {
		return
	}
	asked := others(s, c.Member)
	for _, k := range asked[:min(len(asked), askedMax)] {
		list, err := a.guest.Commitments(ctx, k, before.Number(), []uint32{c.Member})
		if err != nil || len(list) == 0 {
			continue
		}
		for _, e := range list {
			if e.Author == s.Key(c.Member) {
				report.row("state before", c.Prev, e.Signed.Commitment.State)
				return
			}
		}
	}
}

// write shows a report: all hashes, or a line.
func (r auditReport) write(out io.Writer, line bool) error {
	note := ""
	if !r.Accepted {
		note = ", a result that does not count"
	}
	_, err := fmt.Fprintf(out, "round %d, step %d, member %d (%s), %d sequences%s: %s", r.Round, r.Step, r.Member, short(r.Key), r.Sequences, note, r.Verdict)
	if r.Reason != "" {
		fmt.Fprintf(out, "\n  %s", r.Reason)
	}
	if line {
		fmt.Fprintf(out, ", %d hashes in %.1f s\n", len(r.Rows), r.Seconds)
		return err
	}
	fmt.Fprintln(out)
	for _, row := range r.Rows {
		if row.Equal {
			fmt.Fprintf(out, "  %-16s = %s\n", row.What, row.Claimed)
			continue
		}
		fmt.Fprintf(out, "  %-16s ≠ %s claimed\n  %-16s   %s comes out\n", row.What, row.Claimed, "", row.Found)
	}
	return err
}
