package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/onchain"
)

// scoreOptions are score's flags.
type scoreOptions struct {
	target    onchain.Target
	endpoints []string
	period    uint32 // 0: the one settled last
	explain   string
	log       string
	asJSON    bool
}

func scoreCommand(c console) *cobra.Command {
	var o scoreOptions
	cmd := &cobra.Command{
		Use:   "score RUN | RUN@HOST | TICKET",
		Short: "Show what a run's miners were scored and paid, and why",
		Long: `Shows, for a scoring period of a run with validators, what each member's work was found to be worth and what
it was paid, and how near each validator was to what all of them agreed on. All of it is from the chain.

--explain MEMBER goes through the calculation for one member: what each validator said of it and with which
weight, how these became one score, and how that became tokens. What a validator has seen of the member's
results, window by window, only its own log tells: name its state directory with --log if you have it.

The chain keeps the period settled last, the one that is being scored, and the one that runs.`,
		Example: "  entrain score my-run\n  entrain score my-run --explain 3\n" +
			"  entrain score my-run --explain 7c0d84fe --log ~/.local/share/entrain/validators/my-run-1f2e3d4c --json",
		Args:              needTarget,
		ValidArgsFunction: c.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.target, err = onchain.ParseTarget(args[0], &o.endpoints); err != nil {
				return err
			}
			return c.score(cmd.Context(), o)
		},
	}
	chainFlag(cmd, &o.endpoints)
	f := cmd.Flags()
	f.StringVar(&o.explain, "explain", "", "`member` to explain, by its number or the beginning of its key")
	f.StringVar(&o.log, "log", "", "state `directory` of a validator, for what it saw of the member")
	f.Uint32Var(&o.period, "period", 0, "`period` to show (default: the one settled last)")
	f.BoolVar(&o.asJSON, "json", false, "print a JSON object")
	_ = cmd.MarkFlagDirname("log")
	return cmd
}

func (c console) score(ctx context.Context, o scoreOptions) (err error) {
	if o.log != "" && o.explain == "" {
		return errors.New("--log: say of which member with --explain MEMBER")
	}
	client, err := c.dial(ctx, o.endpoints, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	snapshot, err := onchain.GetSnapshot(ctx, client, o.target.Run)
	if err != nil {
		return err
	}
	s := snapshot.State
	if err := o.target.Check(client.ChainID(), s.ID()); err != nil {
		return err
	}
	p, err := choosePeriod(s, o)
	if err != nil {
		return err
	}
	if o.explain == "" {
		report := newPeriodReport(s, p)
		if o.asJSON {
			return c.object(report)
		}
		return report.write(c.out)
	}
	e, err := explain(s, p, o)
	if err != nil {
		return err
	}
	if o.asJSON {
		return c.object(e)
	}
	return e.write(c.out)
}

// choosePeriod finds the period that the flags name.
func choosePeriod(s coordinator.State, o scoreOptions) (coordinator.Scores, error) {
	if s.Config().Validators == 0 {
		return coordinator.Scores{}, fmt.Errorf("run %q has no validators: its members are paid for points, see entrain status %[1]s", o.target.Run)
	}
	if o.period == 0 {
		if p, ok := s.LastScores(); ok {
			return p, nil
		}
		p, ok := s.Scores(s.Period())
		if !ok {
			return p, fmt.Errorf("run %q has not begun to be scored: it is in phase %s", o.target.Run, s.Phase())
		}
		return p, nil
	}
	p, ok := s.Scores(o.period)
	if !ok {
		return p, fmt.Errorf("period %d is not one that the chain still knows, or is yet to come; the run is in period %d", o.period, s.Period())
	}
	return p, nil
}

// periodReport is what came of a period.
type periodReport struct {
	Period     uint32         `json:"period"`
	First      uint32         `json:"first_window"`
	Last       uint32         `json:"last_window"`
	Settled    bool           `json:"settled"`
	Members    []memberPay    `json:"members"`
	Validators []validatorPay `json:"validators"`
}

// memberPay is one member's part of it.
type memberPay struct {
	Member    uint32  `json:"member"`
	Key       string  `json:"key"`
	Sequences uint32  `json:"sequences"`
	Scored    bool    `json:"scored"`
	Score     float64 `json:"score"`
	Average   float64 `json:"moving_average"` // of the periods' scores, by which the worst are replaced
	Weight    float64 `json:"weight"`         // its part of the members' emission
	Reward    uint64  `json:"reward"`
	Penalty   uint64  `json:"penalty"`
	Unripe    uint64  `json:"unripe"` // of all it was ever given, what a penalty can still take
}

// validatorPay is one validator's.
type validatorPay struct {
	Key       string  `json:"key"`
	Stake     uint64  `json:"stake"`
	Trust     uint8   `json:"trust"`
	Revealed  bool    `json:"revealed"`
	Scores    int     `json:"scores"`
	Agreement float64 `json:"agreement"`
	Reward    uint64  `json:"reward"`
}

func scoreOf(v int16) float64 { return float64(v) / coordinator.ScoreOne }

func newMemberPay(s coordinator.State, m coordinator.MemberScore) memberPay {
	now := s.Member(m.Member)
	return memberPay{
		Member: m.Member, Key: now.Key.String(), Sequences: m.Sequences, Scored: m.Scored, Score: scoreOf(m.Score), Average: scoreOf(now.Score),
		Weight: float64(m.Weight) / coordinator.WeightOne, Reward: m.Reward, Penalty: m.Penalty, Unripe: now.Unvested,
	}
}

func newPeriodReport(s coordinator.State, p coordinator.Scores) periodReport {
	r := periodReport{Period: p.Period, First: p.First, Last: p.Last, Settled: p.Settled, Members: []memberPay{}, Validators: []validatorPay{}}
	for _, m := range p.Members {
		r.Members = append(r.Members, newMemberPay(s, m))
	}
	for _, v := range p.Validators {
		r.Validators = append(r.Validators, validatorPay{
			Key: v.Key.String(), Stake: v.Stake, Trust: v.Trust, Revealed: v.Revealed, Scores: len(v.Scores),
			Agreement: float64(v.Agreement) / coordinator.AgreementOne, Reward: v.Reward,
		})
	}
	return r
}

// stage says how far a period is.
func stage(settled bool) string {
	if settled {
		return "settled"
	}
	return "not settled yet"
}

func (r periodReport) write(out io.Writer) error {
	fmt.Fprintf(out, "period %d, windows %d to %d, %s\n\n", r.Period, r.First, r.Last, stage(r.Settled))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "member\tkey\tsequences\tscore\tweight\treward\tpenalty")
	for _, m := range r.Members {
		score := "-"
		if m.Scored {
			score = fmt.Sprintf("%+.3f", m.Score)
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%.1f %%\t%s\t%s\n", m.Member, short(m.Key), thousands(uint64(m.Sequences)), score, 100*m.Weight, thousands(m.Reward), thousands(m.Penalty))
	}
	fmt.Fprintln(w, "\nvalidator\tstake\ttrust\tscores\tagreement\treward")
	for _, v := range r.Validators {
		said := fmt.Sprint(v.Scores)
		if !v.Revealed {
			said = "committed"
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%.1f %%\t%s\n", short(v.Key), thousands(v.Stake), v.Trust, said, 100*v.Agreement, thousands(v.Reward))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(r.Members) == 0 {
		_, err := fmt.Fprintln(out, strings.TrimSpace("no member has delivered anything in it"))
		return err
	}
	return nil
}
