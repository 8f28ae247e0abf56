package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/train"
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

// result audits what a member committed to in a round.
func (a *auditor) result(ctx context.Context, r coordinator.Round, member uint32) auditReport {
	s := a.state()
	report := auditReport{
		Run: a.run, Chain: a.client.ChainID(), Epoch: r.Epoch(), Round: r.Number(), Step: r.Step(), Member: member, Key: s.Key(member).String(),
		Accepted: r.Accepted(member), Rows: []auditRow{},
	}
	spans := r.Share(member)
	report.Sequences = uint32(batch.Total(spans))
	give := func(err error, what, advice string) auditReport {
		report.Verdict, report.Reason = auditNot, fmt.Sprintf("%s: %v; %s", what, err, advice)
		return report
	}
	signed, err := a.commitments(ctx, s, r.Number(), member)
	if err != nil {
		return give(err, "its commitment", "members keep those of the last rounds: audit sooner, or with --watch")
	}
	if len(signed) > 1 {
		report.row("commitment", signed[0].Commitment.ID(), signed[1].Commitment.ID())
		report.Reason = "it signed two commitments for one round"
		return report
	}
	c := signed[0].Commitment
	agreed, _ := r.Agreed()
	report.row("share", c.Share, batch.Hash(spans))
	report.row("parameters", c.Params, agreed)
	if report.Verdict == auditDifferent {
		return report
	}
	params, err := a.start(ctx, s, agreed, member)
	if err != nil {
		return give(err, "the parameters at the round's start", "members keep those of the last rounds: audit sooner, or with --watch")
	}
	prev, err := a.before(ctx, s, c.Prev, member)
	if err != nil {
		return give(err, "the optimizer state it went on from", advicePrev(err))
	}
	a.chained(ctx, s, r, c, &report)
	result, err := a.trainer.engine.Step(ctx, params, prev, spans, r.Step())
	if err != nil {
		return give(err, "computing the share", "check the data, and this machine")
	}
	report.compare(c, result, merkle.Root(a.trainer.engine.Leaves(prev)))
	if report.Verdict == "" {
		report.Verdict = auditEqual
	}
	return report
}

func advicePrev(err error) string {
	if errors.Is(err, p2p.ErrMissing) || errors.Is(err, p2p.ErrNoPeers) {
		return "its author serves it until checks of the round are drawn: audit sooner, or with --watch. Who does not serve it to verifiers is struck by the run"
	}
	return "its author may have left"
}

// compare adds what came of computing the share.
func (r *auditReport) compare(c coordinator.Commitment, result train.Result, state fmt.Stringer) {
	payload := p2p.NewRef(result.Payload)
	r.row("gradient", c.Work, coordinator.WorkHash(c.Run, c.Round, c.Member, result.Gradient))
	r.row("optimizer state", c.State, state)
	r.row("payload", c.Payload, payload.Root)
	r.row("payload bytes", c.PayloadBytes, payload.Size)
}

// chained tells whether the state a member went on from is that of its result of the step before. A fresh one is, too; and what cannot be known
// any more is left out.
func (a *auditor) chained(ctx context.Context, s coordinator.State, r coordinator.Round, c coordinator.Commitment, report *auditReport) {
	fresh := merkle.Root(a.trainer.engine.Leaves(make([]float32, a.trainer.engine.StateLen())))
	if c.Prev == fresh {
		report.row("state before", c.Prev, fresh)
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
