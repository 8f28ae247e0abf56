package report

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/entrain-network/entrain/score"
	"github.com/entrain-network/entrain/view"
)

// Status writes where a run stands as text: phase, progress, what is checked and paid, and a table
// of the members.
func Status(out io.Writer, r view.Run) error {
	fmt.Fprintf(out, "run         %s on chain %s\n", r.Name, r.Chain)
	pausing := ""
	if r.Pausing {
		pausing = "; it pauses at the end of the epoch"
	}
	fmt.Fprintf(out, "phase       %s, epoch %d, round %d%s\n", r.Phase, r.Epoch, r.Round, pausing)
	fmt.Fprintf(out, "step        %d of %d\n", r.Step, r.Steps)
	fmt.Fprintf(out, "parameters  %s, agreed at round %d\n", r.Params, r.ParamsRound)
	if r.Trust != nil {
		statusTrust(out, *r.Trust)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if r.Windows != nil {
		statusWindows(out, w, r)
	}
	if r.Windows != nil && r.Windows.ScoreWindows > 0 {
		statusScores(w, r)
		return w.Flush()
	}
	fmt.Fprintf(w, "\nmember\tstatus\tpoints\tresults\tmissed\tchecks passed\tstake\tclaimable\n")
	for _, m := range r.Members {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%s\t%s\n", m.Title(), view.Standing(r.Phase, m.Status), m.Points, m.Results, m.Missed, m.Passed,
			view.Thousands(m.Stake), view.Thousands(m.Claimable))
	}
	return w.Flush()
}

// statusTrust writes what is checked, at stake and paid, and who was convicted.
func statusTrust(out io.Writer, t view.Trust) {
	if t.Percent > 0 {
		fmt.Fprintf(out, "checks      of %d %% of the results: %d drawn, %d passed, %d open; disputes: %d, %d open\n",
			t.Percent, t.Drawn, t.Passed, len(t.Checks), t.Disputed, len(t.Disputes))
	}
	if t.Escrow > 0 || t.Stake > 0 || t.Rate > 0 {
		fmt.Fprintf(out, "tokens      treasury %s, pays %s a point; stake of a member at least %s\n",
			view.Thousands(t.Treasury), view.Thousands(t.Rate), view.Thousands(t.Stake))
	}
	for i := range t.Convictions {
		fmt.Fprintf(out, "convicted   %s\n", t.Convictions[len(t.Convictions)-1-i].Proof())
	}
}

// statusWindows writes how far the window and the scoring are, and the validators.
func statusWindows(out, table io.Writer, r view.Run) {
	v := r.Windows
	if v.Buckets {
		var now view.Round
		if n := len(r.Rounds); n > 0 {
			now = r.Rounds[n-1]
		}
		fmt.Fprintf(out, "window      %d, of %s; %d of %d commitments are on the chain", v.Window, v.Blocks(), now.OnChain, now.Expected)
		if v.DeadlineHeight > 0 {
			fmt.Fprintf(out, "; it ends with %s", v.EndBlock())
		}
		fmt.Fprintln(out)
	}
	if v.ScoreWindows == 0 {
		return
	}
	stage := "nothing is scored yet"
	if v.Scoring > 0 {
		stage = fmt.Sprintf("validators are %s scores of period %d", v.Stage, v.Scoring)
	}
	fmt.Fprintf(out, "scores      period %d, of %d windows; %s; %s tokens a period, %s so far\n", v.Current, v.ScoreWindows, stage,
		view.Thousands(v.Emission), view.Thousands(v.Given))
	if t := r.Trust; t != nil && t.Treasury < v.Emission {
		fmt.Fprintf(out, "pay         the treasury has %s tokens, less than a period takes: entrain wallet send %s TOKENS fills it\n", view.Thousands(t.Treasury), r.Name)
	}
	if len(v.Validators) == 0 {
		fmt.Fprintf(out, "validators  none has a seat, and without one nobody is paid: entrain validate %s takes one\n", r.Name)
		return
	}
	fmt.Fprintf(table, "\nvalidator\tstake\ttrust\tsaid\tagreement\treward\tearned\n")
	last := map[string]view.SeatScores{}
	if v.Period != nil {
		for _, s := range v.Period.Validators {
			last[s.Key] = s
		}
	}
	for _, x := range v.Validators {
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%.2f\t%s\t%s\n", view.Short(x.Key), view.Thousands(x.Stake), x.Trust, x.Said,
			last[x.Key].Agreement, view.Thousands(last[x.Key].Reward), view.Thousands(x.Earned))
	}
}

// statusScores writes the members and what their scores brought.
func statusScores(w io.Writer, r view.Run) {
	last := map[string]view.MemberScore{}
	if p := r.Windows.Period; p != nil {
		for _, m := range p.Members {
			last[m.Key] = m
		}
	}
	fmt.Fprintf(w, "\nmember\tstatus\tresults\tmissed\tscore\tlast\tweight\treward\tearned\tstake\tclaimable\n")
	for _, m := range r.Members {
		status := view.Standing(r.Phase, m.Status)
		if m.Immune {
			status += ", immune"
		}
		l := last[m.Key]
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%s\t%.3f\t%s\t%s\t%s\t%s\n", m.Title(), status, m.Results, m.Missed, scored(m.Scored, m.Score),
			scored(l.Scored, l.Score), l.Weight, view.Thousands(l.Reward), view.Thousands(m.Earned), view.Thousands(m.Stake), view.Thousands(m.Claimable))
	}
}

func scored(is bool, v float64) string {
	if !is {
		return "-"
	}
	return fmt.Sprintf("%+.3f", v)
}

// Period writes what came of a scoring period as text: members and validators, a table each.
func Period(out io.Writer, p view.Period) error {
	fmt.Fprintf(out, "period %d, windows %d to %d, %s\n\n", p.Number, p.First, p.Last, settled(p))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "member\tkey\tsequences\tscore\tweight\treward\tpenalty")
	for _, m := range p.Members {
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%.1f %%\t%s\t%s\n", m.Member, view.Short(m.Key), view.Thousands(uint64(m.Sequences)), scored(m.Scored, m.Score),
			100*m.Weight, view.Thousands(m.Reward), view.Thousands(m.Penalty))
	}
	fmt.Fprintln(w, "\nvalidator\tstake\ttrust\tscores\tagreement\treward")
	for _, v := range p.Validators {
		said := fmt.Sprint(len(v.Said))
		if !v.Revealed {
			said = "committed"
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%.1f %%\t%s\n", view.Short(v.Key), view.Thousands(v.Stake), v.Trust, said, 100*v.Agreement, view.Thousands(v.Reward))
	}
	err := w.Flush()
	if len(p.Members) == 0 && err == nil {
		_, err = fmt.Fprintln(out, "no member has delivered a result in it")
	}
	return err
}

func settled(p view.Period) string {
	if p.Settled {
		return "settled"
	}
	return "not settled yet"
}

// Explain writes how the score and the pay of a member in a period came about.
func Explain(out io.Writer, e view.Explanation) error {
	fmt.Fprintf(out, "member %d (%s) in period %d, windows %d to %d, %s\n\n", e.Member, view.Short(e.Key), e.Number, e.First, e.Last, settled(*e.Period))
	if len(e.Members) == 0 {
		_, err := fmt.Fprintln(out, "None of its results was accepted in the period: there is nothing to score and nothing to pay.")
		return err
	}
	explainSeen(out, e)
	m := e.Members[0]
	fmt.Fprintf(out, "The validators' scores of its %s accepted sequences, each weighted by stake times trust:\n\n", view.Thousands(uint64(m.Sequences)))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  validator\tstake\ttrust\tscore")
	for _, v := range e.Validators {
		said := "none"
		switch {
		case !v.Revealed:
			said = "committed, not revealed"
		case len(v.Said) > 0 && v.Key == e.Key:
			said = fmt.Sprintf("%+.3f, of itself, which does not count", v.Said[0].Score)
		case len(v.Said) > 0:
			said = fmt.Sprintf("%+.3f", v.Said[0].Score)
		}
		fmt.Fprintf(w, "  %s\t%s\t%d\t%s\n", view.Short(v.Key), view.Thousands(v.Stake), v.Trust, said)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	var err error
	switch {
	case !e.Settled:
		_, err = fmt.Fprintln(out, "\nThe period is not settled yet: the score is known when the next period ends.")
	case !m.Scored:
		_, err = fmt.Fprintln(out, "\nThese give no score, because validators of at most half of the weight scored it: it is paid nothing for the period.")
	case m.Score <= 0:
		err = explainMean(out, m)
		fmt.Fprintf(out, "A score of 0 or less is paid nothing; the penalty was %s tokens.\n", view.Thousands(m.Penalty))
	default:
		err = explainMean(out, m)
		paid := min(m.Score, e.Most)
		if paid < m.Score {
			fmt.Fprintf(out, "No score is paid more than the median of those above 0, %.3f.\n", paid)
		}
		fmt.Fprintf(out, "Its weight is its score times its sequences, %.3f x %s = %.1f, of %.1f for all members with a score above 0: %.2f %%.\n",
			paid, view.Thousands(uint64(m.Sequences)), paid*float64(m.Sequences), e.Weights, 100*m.Weight)
		lacked := ""
		if float64(m.Reward) < m.Weight*float64(e.Emission)*float64(100-e.ValidatorPercent)/100-1 {
			lacked = ", as the treasury had no more"
		}
		fmt.Fprintf(out, "Of the period's emission of at most %s tokens, %d %% is the validators'; its part of the rest is %s tokens%s.\n",
			view.Thousands(e.Emission), e.ValidatorPercent, view.Thousands(m.Reward), lacked)
	}
	return err
}

func explainMean(out io.Writer, m view.MemberScore) error {
	_, err := fmt.Fprintf(out, "\nIts score is their weighted mean, %+.3f; none counts as further from the weighted median than the median distance.\n", m.Score)
	return err
}

// explainSeen writes the evaluations of the validator whose log is at hand.
func explainSeen(out io.Writer, e view.Explanation) {
	if len(e.Seen) == 0 {
		return
	}
	times := "once"
	if n := len(e.Seen); n > 1 {
		times = fmt.Sprintf("%d times", n)
	}
	fmt.Fprintf(out, "One validator evaluated it %s. A score is the lower of two cosines of the revealed update with the recomputed\n"+
		"gradient, over the whole slice and by tensor, minus up to a fifth: nothing where the loss falls on its own pages only,\n"+
		"a tenth where it falls on others as much. The norm is the update's, in medians of the window. Work is right if it\n"+
		"committed to the recomputed gradient:\n\n", times)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  window\tcosine\tby tensor\tnorm\tgain on its pages\ton others\twork\tscore\twhy\taverage")
	for _, x := range e.Seen {
		v := x.Evidence
		norm, own, others, work := "-", "-", "-", "right"
		if v.Median > 0 {
			norm = fmt.Sprintf("%.2f", v.Norm/v.Median)
		}
		if v.Losses != nil {
			own, others = fmt.Sprintf("%+.5f", v.Losses.Assigned.Gain()), fmt.Sprintf("%+.5f", v.Losses.Random.Gain())
		}
		if v.WorkDiffers {
			work = "wrong"
		}
		if x.Verdict == score.Absent {
			work = "-"
		}
		fmt.Fprintf(w, "  %d\t%+.3f\t%+.3f\t%s\t%s\t%s\t%s\t%+.3f\t%s\t%+.3f\n", x.Window, v.Whole, v.Tensors, norm, own, others, work, x.Score, x.Verdict, x.Average)
	}
	_ = w.Flush() // the writer keeps its error for the next
	fmt.Fprintln(out)
}
