package audit

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/engine/cpu"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/verify"
	"github.com/entrain-network/entrain/view"
	"github.com/entrain-network/entrain/wire"
)

// What comes of an audit.
const (
	Equal      = "equal"
	Different  = "different"
	NotAudited = "not audited"
)

// Report is the outcome of auditing one result.
type Report struct {
	Run       string             `json:"run"`
	Chain     string             `json:"chain"`
	Epoch     coordinator.Epoch  `json:"epoch"`
	Round     coordinator.Round  `json:"round"`
	Step      coordinator.Step   `json:"step"`
	Member    coordinator.Member `json:"member"`
	Key       string             `json:"key"`
	Sequences uint32             `json:"sequences"`
	Accepted  bool               `json:"accepted"` // the result counts
	Verdict   string             `json:"verdict"`
	Reason    string             `json:"reason,omitempty"` // of a verdict other than equal
	Rows      []Row              `json:"rows"`
	Seconds   float64            `json:"seconds"`
}

// Row is one hash of a commitment.
type Row struct {
	What    string `json:"what"`
	Claimed string `json:"claimed"`
	Found   string `json:"found"` // what comes out, or what the chain says
	Equal   bool   `json:"equal"`
}

// row compares what was claimed with what was found.
func (r *Report) row(what string, claimed, found any) {
	row := Row{What: what, Claimed: fmt.Sprint(claimed), Found: fmt.Sprint(found)}
	row.Equal = row.Claimed == row.Found
	r.Rows = append(r.Rows, row)
	if !row.Equal && r.Verdict != Different {
		r.Verdict, r.Reason = Different, "its "+what+" is not what it must be"
	}
}

// inputs are the inputs of one result's audit. If they are missing or contradictory, the report
// already has its verdict.
type inputs struct {
	report       Report
	round        coordinator.RoundState
	signed       dispute.Signed
	commitment   dispute.Commitment
	spans        []batch.Span
	params, prev []float32
}

// gather gets a member's commitment to a round, and what computing it again takes.
func (a *auditor) gather(ctx context.Context, r coordinator.RoundState, member coordinator.Member) *inputs {
	s := a.state()
	in := &inputs{round: r, spans: r.Share(member), report: Report{
		Run: a.run, Chain: a.client.ChainID(), Epoch: r.Epoch(), Round: r.Number(), Step: r.Step(), Member: member, Key: s.Key(member).String(),
		Accepted: r.Accepted(member), Rows: []Row{},
	}}
	report := &in.report
	report.Sequences = uint32(batch.Total(in.spans))
	signed, err := a.commitments(ctx, s, r, member)
	if err != nil {
		return in.give(err, "its commitment", "members keep those of the last rounds: "+a.sooner())
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
	if report.Verdict == Different {
		return in
	}
	if a.buckets != nil { // a commitment holds the gradient, which takes no state
		if in.params, err = a.start(ctx, s, r.Number(), agreed, member); err != nil {
			return in.give(err, "the parameters at the window's start", "members keep what leads to those of the last windows: "+a.sooner())
		}
		return in
	}
	if in.prev, err = a.before(ctx, s, in.commitment.Prev, member); err != nil {
		return in.give(err, "the optimizer state it went on from", a.advicePrev(err))
	}
	if in.params, err = a.start(ctx, s, r.Number(), agreed, member); err != nil {
		return in.give(err, "the parameters at the round's start", "members keep those of the last rounds: "+a.sooner())
	}
	a.chained(ctx, s, r, in.commitment, report)
	return in
}

// give gives up.
func (in *inputs) give(err error, what, advice string) *inputs {
	in.report.Verdict, in.report.Reason = NotAudited, fmt.Sprintf("%s: %v; %s", what, err, advice)
	return in
}

// compute computes the share again and compares.
func (a *auditor) compute(ctx context.Context, in *inputs) Report {
	if in.report.Verdict != "" && in.params == nil {
		return in.report
	}
	if a.buckets != nil {
		g, err := a.trainer.Engine.Gradient(ctx, cpu.Floats(in.params), in.spans)
		if err != nil {
			return in.give(err, "computing the share", "check the data, and this machine").report
		}
		c := in.commitment
		in.report.row("gradient", c.Work, dispute.WorkHash(c.Run, c.Round, c.Member, g.Root))
		return in.report.right()
	}
	result, err := a.trainer.Engine.Step(ctx, cpu.Floats(in.params), cpu.Floats(in.prev), in.spans, uint32(in.round.Step()))
	if err != nil {
		return in.give(err, "computing the share", "check the data, and this machine").report
	}
	in.report.compare(in.commitment, result, merkle.Root(a.trainer.Engine.Leaves(cpu.Floats(in.prev))), a.trainer.Spec.Slices())
	return in.report.right()
}

// right returns the report, whose result is right if nothing speaks against it.
func (r Report) right() Report {
	if r.Verdict == "" {
		r.Verdict = Equal
	}
	return r
}

func (a *auditor) advicePrev(err error) string {
	if errors.Is(err, p2p.ErrMissing) || errors.Is(err, p2p.ErrNoPeers) {
		return "its author serves it for some rounds, if the run has its results checked: " + a.sooner()
	}
	return "its author may have left"
}

// sooner advises what to do about something that members no longer keep.
func (a *auditor) sooner() string {
	if a.options.Watch {
		return "the run's rounds are shorter than fetching it takes"
	}
	return "audit sooner, or with --watch"
}

// compare adds the rows of a share that was computed again.
func (r *Report) compare(c dispute.Commitment, result engine.Result, state wire.Hash, pieces bool) {
	found := verify.Claim(c, result, state, pieces)
	r.row("gradient", c.Work, found.Work)
	r.row("optimizer state", c.State, found.State)
	r.row("payload", c.Payload, found.Payload)
	r.row("payload length", c.PayloadBytes, found.PayloadBytes)
}

// chained checks that a member began with the optimizer state of its result of the step before,
// with a fresh one, or with the one that the run resumes. It adds no row if that is no longer
// known.
func (a *auditor) chained(ctx context.Context, s coordinator.State, r coordinator.RoundState, c dispute.Commitment, report *Report) {
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
		list, err := a.guest.Commitments(ctx, k, before.Number(), []coordinator.Member{c.Member})
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

// Write prints a report: all hashes, or one line.
func (r Report) Write(out io.Writer, line bool) error {
	note := ""
	if !r.Accepted {
		note = ", a result that does not count"
	}
	_, err := fmt.Fprintf(out, "round %d, step %d, member %d (%s), %d sequences%s: %s", r.Round, r.Step, r.Member, view.Short(r.Key), r.Sequences, note, r.Verdict)
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
