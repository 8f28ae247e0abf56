package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/entrain-network/entrain/audit"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/participant"
	"github.com/entrain-network/entrain/score"
)

// explanation is why a member was paid what it was paid.
type explanation struct {
	Period   uint32               `json:"period"`
	First    uint32               `json:"first_window"`
	Last     uint32               `json:"last_window"`
	Settled  bool                 `json:"settled"`
	Member   memberPay            `json:"member"`
	Worked   bool                 `json:"worked"` // some of its results in the period were accepted
	Emission uint64               `json:"emission"`
	Percent  uint8                `json:"validator_percent"`
	Weights  float64              `json:"sum_of_weights"` // score times sequences, over all members with a score above 0
	Opinions []opinion            `json:"opinions"`
	Seen     []participant.Scored `json:"seen,omitempty"` // by the validator whose log was given
}

// opinion is what one validator said of the member.
type opinion struct {
	Validator string  `json:"validator"`
	Stake     uint64  `json:"stake"`
	Trust     uint8   `json:"trust"`
	Revealed  bool    `json:"revealed"`
	Said      bool    `json:"said"`
	Score     float64 `json:"score"`
}

// explain gathers what there is to say of a member.
func explain(s coordinator.State, p coordinator.Scores, o scoreOptions) (explanation, error) {
	at, err := findMember(s, o.explain)
	if err != nil {
		return explanation{}, err
	}
	cfg := s.Config()
	e := explanation{
		Period: p.Period, First: p.First, Last: p.Last, Settled: p.Settled, Emission: cfg.Emission, Percent: cfg.ValidatorPercent,
		Member: newMemberPay(s, coordinator.MemberScore{Member: at}), Opinions: []opinion{},
	}
	for _, m := range p.Members {
		if m.Score > 0 {
			e.Weights += scoreOf(m.Score) * float64(m.Sequences)
		}
		if m.Member == at {
			e.Worked, e.Member = true, newMemberPay(s, m)
		}
	}
	for _, v := range p.Validators {
		said := opinion{Validator: v.Key.String(), Stake: v.Stake, Trust: v.Trust, Revealed: v.Revealed}
		if !p.Settled {
			if seat, ok := s.Validator(v.Key); ok {
				said.Stake, said.Trust = seat.Stake, seat.Trust
			}
		}
		for _, x := range v.Scores {
			if x.Member == at {
				said.Said, said.Score = true, scoreOf(x.Value)
			}
		}
		e.Opinions = append(e.Opinions, said)
	}
	if o.log != "" {
		e.Seen, err = readScoreLog(o.log, s.Key(at), p.First, p.Last)
	}
	return e, err
}

// findMember finds a member by its number or the beginning of its key.
func findMember(s coordinator.State, flag string) (uint32, error) {
	var found []uint32
	for i := range s.Count() {
		if flag == fmt.Sprint(i) || len(flag) >= audit.MemberPrefixMin && strings.HasPrefix(s.Key(i).String(), flag) {
			found = append(found, i)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return 0, fmt.Errorf("there is no member %q; entrain status shows the members, and a key needs at least %d digits", flag, audit.MemberPrefixMin)
	}
	return 0, fmt.Errorf("%d members have keys that begin with %q", len(found), flag)
}

// scoreLineMost bounds a line of a log of scores: thousands of tensors.
const scoreLineMost = 1 << 20

// readScoreLog returns the evaluations of a member in windows from first to last, in their order.
func readScoreLog(dir string, member key.Public, first, last uint32) ([]participant.Scored, error) {
	var list []participant.Scored
	for _, name := range []string{participant.ScoreLogName + ".1", participant.ScoreLogName} {
		f, err := os.Open(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) && name != participant.ScoreLogName {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("log of scores: %w; --log names the state directory of entrain validate", err)
		}
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, scoreLineMost)
		for lines.Scan() {
			var line participant.Scored
			if json.Unmarshal(lines.Bytes(), &line) != nil {
				continue // a line that a crash has cut off
			}
			if line.Key == member && line.Window >= first && line.Window <= last {
				list = append(list, line)
			}
		}
		if err := errors.Join(lines.Err(), f.Close()); err != nil {
			return nil, fmt.Errorf("log of scores: %w", err)
		}
	}
	return list, nil
}

// write says it in sentences.
func (e explanation) write(out io.Writer) error {
	m := e.Member
	fmt.Fprintf(out, "member %d (%s) in period %d, windows %d to %d, %s\n\n", m.Member, short(m.Key), e.Period, e.First, e.Last, stage(e.Settled))
	if !e.Worked {
		_, err := fmt.Fprintln(out, "None of its results was accepted in the period: there was nothing to score, and it is paid nothing.")
		return err
	}
	e.writeSeen(out)
	fmt.Fprintf(out, "Validators said of its %s accepted sequences, each with the weight of its stake times its trust:\n\n", thousands(uint64(m.Sequences)))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  validator\tstake\ttrust\tscore")
	for _, o := range e.Opinions {
		said := "nothing"
		switch {
		case !o.Revealed:
			said = "committed, and not revealed"
		case o.Said:
			said = fmt.Sprintf("%+.3f", o.Score)
		}
		fmt.Fprintf(w, "  %s\t%s\t%d\t%s\n", short(o.Validator), thousands(o.Stake), o.Trust, said)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	switch {
	case !e.Settled:
		fmt.Fprintln(out, "\nThe period is not settled yet: what they agree on is known when the next one ends.")
	case !m.Scored:
		fmt.Fprintln(out, "\nNo score came of that, because not more than half of the validators' weight scored it: it is paid nothing for the period.")
	default:
		e.writePay(out)
	}
	return nil
}

// writePay explains a score and what it paid.
func (e explanation) writePay(out io.Writer) {
	m := e.Member
	fmt.Fprintf(out, "\nTheir median by weight, and each clipped to it plus and minus the median of the distances from it, gives a mean of %+.3f.\n", m.Score)
	if m.Score <= 0 {
		fmt.Fprintf(out, "A score of 0 or less is paid nothing; the penalty was %s.\n", tokens(m.Penalty))
		return
	}
	fmt.Fprintf(out, "Its weight is that times its sequences, %.3f x %s = %.1f, of %.1f of all members with a score above 0: %.2f %%.\n",
		m.Score, thousands(uint64(m.Sequences)), m.Score*float64(m.Sequences), e.Weights, 100*m.Weight)
	fmt.Fprintf(out, "Of the period's emission of at most %s, %d %% is the validators'; of the rest that part is %s.\n", tokens(e.Emission), e.Percent, tokens(m.Reward))
}

// writeSeen shows what the validator whose log was given saw.
func (e explanation) writeSeen(out io.Writer) {
	if len(e.Seen) == 0 {
		return
	}
	fmt.Fprintf(out, "One validator evaluated it %d times. s is the lower of the cosine of its revealed update with the recomputed gradient over the whole slice,\n"+
		"and of the mean of the tensors' cosines:\n\n", len(e.Seen))
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
