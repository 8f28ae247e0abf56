package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/entrain-network/entrain/coordinator"
)

// What a run's status says of windows, validators and scores.

// windowsReport is how far the window of a run by buckets is.
type windowsReport struct {
	Blocks    uint32 `json:"blocks"`     // of the chain in a window
	Window    uint32 `json:"window"`     // that runs
	Ends      uint64 `json:"ends"`       // height at which it does; 0 between windows
	Expected  uint32 `json:"expected"`   // members with a share in it
	Committed uint32 `json:"committed"`  // of them, whose commitment is on the chain
	SliceSeed string `json:"slice_seed"` // of the window before, whose slice is shown now; "" if there is none
}

func newWindowsReport(st coordinator.State) *windowsReport {
	if st.Config().Exchange != coordinator.Buckets {
		return nil
	}
	r := &windowsReport{Blocks: st.Config().WindowBlocks, Window: st.Window(), Ends: st.DeadlineHeight()}
	if round, ok := st.At(st.Round()); ok {
		r.Expected, r.Committed = round.ExpectedCount(), round.CommittedCount()
	}
	if before, ok := st.At(st.Round() - 1); ok && before.Trains() {
		if seed, ok := before.SliceSeed(); ok {
			r.SliceSeed = seed.String()
		}
	}
	return r
}

func (r *windowsReport) write(out io.Writer) {
	if r == nil {
		return
	}
	fmt.Fprintf(out, "window      %d of %d blocks each; %d of %d commitments are on the chain", r.Window, r.Blocks, r.Committed, r.Expected)
	if r.Ends > 0 {
		fmt.Fprintf(out, "; it ends at height %d", r.Ends)
	}
	fmt.Fprintln(out)
}

// scoresReport is who scores the members' work, and what the period that was settled last brought. Scores, agreement and weights
// are fractions of 1.
type scoresReport struct {
	Windows    uint32            `json:"windows"` // in a period
	Period     uint32            `json:"period"`  // that runs
	Scoring    uint32            `json:"scoring"` // period that is being scored; 0: none
	Stage      string            `json:"stage"`   // committing, revealing or none
	Settled    uint32            `json:"settled"` // period that was settled last; 0: none
	Emission   uint64            `json:"emission"`
	Emitted    uint64            `json:"emitted"`   // tokens, ever
	Penalties  uint64            `json:"penalties"` // tokens that went back to the treasury for scores of 0 or less, ever
	Slots      uint32            `json:"slots"`     // members at a time; 0: as many as there are places
	Validators []validatorReport `json:"validators"`
}

type validatorReport struct {
	Key       string  `json:"key"`
	Stake     uint64  `json:"stake"`
	Trust     uint8   `json:"trust"` // 1 to 255
	Balance   uint64  `json:"balance"`
	Earned    uint64  `json:"earned"`
	Payee     string  `json:"payee"`
	Said      string  `json:"said"`      // about the period that is being scored: nothing, committed or revealed
	Agreement float64 `json:"agreement"` // with what was settled last
	Reward    uint64  `json:"reward"`    // for it
}

// scoreReport is what a member's row of a run with validators has more.
type scoreReport struct {
	Immune    bool     `json:"immune"` // nobody can replace it yet
	Score     *float64 `json:"score"`  // moving average; null if it was never scored
	Unripe    uint64   `json:"unripe"` // tokens it was given last, which are its own when the next period is settled
	Earned    uint64   `json:"earned"` // tokens, ever
	Last      *float64 `json:"last_score"`
	Weight    float64  `json:"last_weight"`
	Reward    uint64   `json:"last_reward"`
	Penalty   uint64   `json:"last_penalty"`
	Sequences uint32   `json:"last_sequences"`
}

func newScoresReport(st coordinator.State) *scoresReport {
	config := st.Config()
	if config.Validators == 0 {
		return nil
	}
	r := &scoresReport{
		Windows: config.ScoreWindows, Period: st.Period(), Emission: config.Emission, Slots: config.Slots, Validators: []validatorReport{},
	}
	period, stage := st.Scoring()
	r.Scoring, r.Stage = period, stage.String()
	r.Emitted, r.Penalties = st.Emitted()
	last, settled := st.LastScores()
	if settled {
		r.Settled = last.Period
	}
	now, _ := st.Scores(period)
	for _, v := range st.Validators() {
		row := validatorReport{
			Key: v.Key.String(), Stake: v.Stake, Trust: v.Trust, Balance: v.Balance, Earned: v.Earned, Payee: v.Payee.String(), Said: "nothing",
		}
		if said, ok := saidBy(now, v); ok && said.Revealed {
			row.Said = "revealed"
		} else if ok {
			row.Said = "committed"
		}
		if said, ok := saidBy(last, v); ok {
			row.Agreement, row.Reward = float64(said.Agreement)/coordinator.AgreementOne, said.Reward
		}
		r.Validators = append(r.Validators, row)
	}
	return r
}

// saidBy returns what a validator said about a period.
func saidBy(s coordinator.Scores, v coordinator.Validator) (coordinator.ValidatorScores, bool) {
	for _, said := range s.Validators {
		if said.Key == v.Key {
			return said, true
		}
	}
	return coordinator.ValidatorScores{}, false
}

// newScoreReports returns what the rows of all members have more; nil ones if nobody scores.
func newScoreReports(st coordinator.State) []*scoreReport {
	list := make([]*scoreReport, st.Count())
	if st.Config().Validators == 0 {
		return list
	}
	fraction := func(v int16) *float64 {
		f := float64(v) / coordinator.ScoreOne
		return &f
	}
	for i := range st.Count() {
		m := st.Member(i)
		list[i] = &scoreReport{Immune: m.Status.Present() && st.Immune(i), Unripe: m.Unvested, Earned: m.Earned}
		if m.Scored {
			list[i].Score = fraction(m.Score)
		}
	}
	last, _ := st.LastScores()
	for _, v := range last.Members {
		r := list[v.Member]
		r.Weight, r.Reward, r.Penalty, r.Sequences = float64(v.Weight)/coordinator.WeightOne, v.Reward, v.Penalty, v.Sequences
		if v.Scored {
			r.Last = fraction(v.Score)
		}
	}
	return list
}

// write prints the validators, and the members by what their scores brought.
func (r *scoresReport) write(out io.Writer, members []memberReport) error {
	stage := "nothing is scored yet"
	if r.Scoring > 0 {
		stage = fmt.Sprintf("validators are %s scores of period %d", r.Stage, r.Scoring)
	}
	fmt.Fprintf(out, "scores      period %d of %d windows each; %s; %s tokens a period, %s so far\n", r.Period, r.Windows, stage,
		thousands(r.Emission), thousands(r.Emitted))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\nvalidator\tstake\ttrust\tsaid\tagreement\treward\tearned\n")
	for _, v := range r.Validators {
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%.2f\t%s\t%s\n", short(v.Key), thousands(v.Stake), v.Trust, v.Said, v.Agreement, thousands(v.Reward), thousands(v.Earned))
	}
	fmt.Fprintf(w, "\nmember\tstatus\tresults\tmissed\tscore\tlast\tweight\treward\tearned\tstake\tclaimable\n")
	for _, m := range members {
		status := m.Status
		if m.Immune {
			status += ", immune"
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%s\t%.3f\t%s\t%s\t%s\t%s\n", short(m.Key), status, m.Results, m.Missed, scoreText(m.Score), scoreText(m.Last),
			m.Weight, thousands(m.Reward), thousands(m.Earned), thousands(m.Stake), thousands(m.Claimable))
	}
	return w.Flush()
}

func scoreText(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.3f", *v)
}
