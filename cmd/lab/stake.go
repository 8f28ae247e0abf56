package main

import (
	"fmt"
	"io"
	"math"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/lab/economics"
	"github.com/entrain-network/entrain/view"
)

func stakeCommand(c console) *cobra.Command {
	g := economics.Game{Detect: 1, Delay: 2, Loss: 0.5}
	check, detect, loss := 5.0, 100.0, 50.0
	saved := math.NaN()
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "stake",
		Short: "Compute the stake at which cheating does not pay",
		Long: `Computes the least stake at which cheating does not pay, and how soon a cheat is found out. A cheat hands in
false results, round after round, until it is convicted. With

  q = check · detect    probability that one false result leads to a conviction
  N = 1/q + delay       rounds in which it cheats, on average; it is paid for N - 1 of them

it gains N·saved - reward - loss·stake against doing the work, and (N-1)·reward - loss·stake against
nothing at all, if it could not have done the work. Neither is above zero with a stake of

  max(N·saved - reward, (N-1)·reward) / loss

which is what this prints. After n rounds of cheating it was found out with probability 1 - (1-q)^n.

This is the condition p·(fine + reward) >= cost on audited work (Becker, Crime and Punishment, 1968;
Belenkiy et al., Incentivizing Outsourced Computation, NetEcon 2008), with a delay and an uncertain fine.

Amounts may be in any unit. The share of results checked is trust.verification_percent on average; a member
whose results passed many checks is checked down to an eighth as often as a newcomer, so count with the least.
Detection is below 100 % if verifiers are silent. Half of a convicted member's stake goes to the member that convicted
it, which may be an accomplice: so 50 % is what is surely lost.`,
		Example: "  lab stake --check 5% --reward 10\n  lab stake --check 1% --reward 10 --saved 8 --delay 4 --json | jq .stake",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			g.Check, g.Detect, g.Loss, g.Saved = check/100, detect/100, loss/100, saved
			if math.IsNaN(saved) {
				g.Saved = g.Reward // work whose cost is more than it pays, nobody does
			}
			if err := g.Fault(); err != nil {
				return err
			}
			r := newStakeReport(g)
			if asJSON {
				return c.object(r)
			}
			return r.write(c.out)
		},
	}
	f := cmd.Flags()
	f.Var((*percentFlag)(&check), "check", "`percent` of a member's results that are checked")
	f.Var((*percentFlag)(&detect), "detect", "`percent` of the checks of false results that convict")
	f.Float64Var(&g.Reward, "reward", 1, "`tokens` for a round's result")
	f.Float64Var(&saved, "saved", math.NaN(), "`tokens` that not computing a result saves (default: as the reward)")
	f.Float64Var(&g.Delay, "delay", 2, "`rounds` from a false result to the conviction")
	f.Var((*percentFlag)(&loss), "loss", "`percent` of the stake that a convicted cheat loses whatever it does")
	f.BoolVar(&asJSON, "json", false, "print a JSON object")
	f.Lookup("saved").DefValue = "0" // so that help says only what its text says
	return cmd
}

// percentFlag is a percentage, with or without its sign.
type percentFlag float64

func (p *percentFlag) String() string { return fmt.Sprintf("%g%%", float64(*p)) }
func (p *percentFlag) Type() string   { return "percent" }

func (p *percentFlag) Set(s string) error {
	var v float64
	if n, err := fmt.Sscanf(s+" ", "%g%% ", &v); err != nil || n != 1 {
		if n, err := fmt.Sscanf(s+" ", "%g ", &v); err != nil || n != 1 {
			return fmt.Errorf("%q is not a percentage such as 5%%", s)
		}
	}
	*p = percentFlag(v)
	return nil
}

// stakeReport is what the calculator prints.
type stakeReport struct {
	Check    float64       `json:"check"`
	Detect   float64       `json:"detect"`
	Caught   float64       `json:"caught"` // in a round
	Reward   float64       `json:"reward"`
	Saved    float64       `json:"saved"`
	Delay    float64       `json:"delay_rounds"`
	Loss     float64       `json:"loss"`
	Rounds   float64       `json:"rounds"`     // of cheating until a conviction, on average
	Work     float64       `json:"stake_work"` // least stake that deters who could do the work
	Idle     float64       `json:"stake_idle"` // and who could not
	Stake    float64       `json:"stake"`      // the greater of the two, rounded up
	Detected []detected    `json:"detected"`
	Until    []roundsUntil `json:"until"`
}

type detected struct {
	Rounds      float64 `json:"rounds"`
	Probability float64 `json:"probability"`
}

type roundsUntil struct {
	Probability float64 `json:"probability"`
	Rounds      float64 `json:"rounds"`
}

func newStakeReport(g economics.Game) stakeReport {
	r := stakeReport{
		Check: g.Check, Detect: g.Detect, Caught: g.Caught(), Reward: g.Reward, Saved: g.Saved, Delay: g.Delay, Loss: g.Loss,
		Rounds: g.Rounds(), Work: max(0, g.Gain(0)/g.Loss), Idle: max(0, g.IdleGain(0)/g.Loss), Stake: math.Ceil(g.Stake()),
	}
	for _, n := range []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000} {
		r.Detected = append(r.Detected, detected{n, g.Detected(n)})
	}
	for _, p := range []float64{0.5, 0.9, 0.95, 0.99, 0.999} {
		r.Until = append(r.Until, roundsUntil{p, g.RoundsUntil(p)})
	}
	return r
}

func (r stakeReport) write(out io.Writer) error {
	fmt.Fprintf(out, "least stake   %s tokens\n", number(r.Stake))
	fmt.Fprintf(out, "  against who could do the work      %s\n", number(r.Work))
	fmt.Fprintf(out, "  against who could not              %s\n", number(r.Idle))
	fmt.Fprintf(out, "found out     with %s in each round; cheats in %s rounds until it is convicted\n\n", chanceText(r.Caught), number(r.Rounds))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "rounds\tfound out\n")
	for _, d := range r.Detected {
		text := chanceText(d.Probability)
		if r.Caught < 1 && d.Probability > 0.999999 {
			text = "over 99.9999 %" // certain it never is
		}
		fmt.Fprintf(w, "%.0f\t%s\n", d.Rounds, text)
	}
	fmt.Fprintf(w, "\t\nfound out\twithin rounds\n")
	for _, u := range r.Until {
		fmt.Fprintf(w, "%s\t%.0f\n", chanceText(u.Probability), u.Rounds)
	}
	return w.Flush()
}

// number writes an amount with as many decimals as it needs, two at most.
func number(v float64) string {
	if v == math.Trunc(v) && v < 1<<53 {
		return view.Thousands(uint64(v))
	}
	return fmt.Sprintf("%.2f", v)
}

func chanceText(p float64) string { return fmt.Sprintf("%.6g %%", 100*p) }
