package view

import (
	"fmt"
	"slices"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/score"
	"github.com/entrain-network/entrain/runlog"
)

// Windows is how far a run is whose results travel through buckets, and what its validators said.
type Windows struct {
	runlog.WindowsHead
	Stage      string      `json:"stage"`                // committing, revealing or none
	SliceSeed  string      `json:"slice_seed,omitempty"` // of the window before; only [Look] knows it
	Validators []Validator `json:"validators"`
	Period     *Period     `json:"period,omitempty"` // settled last
}

// Blocks returns how long a window is, and by whose blocks if they are not the chain's.
func (w *Windows) Blocks() string {
	if w.Bittensor {
		return fmt.Sprintf("%d of Bittensor's blocks", w.WindowBlocks)
	}
	return fmt.Sprintf("%d blocks", w.WindowBlocks)
}

// EndBlock returns the block with which the window ends.
func (w *Windows) EndBlock() string {
	if w.Bittensor {
		return fmt.Sprintf("Bittensor's block %d", w.DeadlineHeight)
	}
	return fmt.Sprintf("block %d", w.DeadlineHeight)
}

// Validator is a validator of a run.
type Validator struct {
	Seat    uint32 `json:"seat"`
	Key     string `json:"key"`
	Payee   string `json:"payee"`
	Stake   uint64 `json:"stake"`
	Balance uint64 `json:"balance"`
	Earned  uint64 `json:"earned"`
	Trust   uint8  `json:"trust"` // 1 to 255: with the stake, the weight of what it says
	Since   uint32 `json:"since"` // window
	// Said is what it did about the period being scored: nothing, committed or revealed. Only
	// [Look] knows it.
	Said string `json:"said,omitempty"`
}

// Period is a scoring period and its outcome.
type Period struct {
	Number     uint32        `json:"number"`
	First      uint32        `json:"first"` // window
	Last       uint32        `json:"last"`
	Settled    bool          `json:"settled"`
	Members    []MemberScore `json:"members"`
	Validators []SeatScores  `json:"validators"`
}

// MemberScore is the score and the pay of a member in a period.
type MemberScore struct {
	Member    coordinator.Member `json:"member"`
	Key       string             `json:"key"`
	Sequences uint32             `json:"sequences"` // of its accepted results
	Scored    bool               `json:"scored"`    // validators of more than half of the weight did
	Score     float64            `json:"score"`     // -1 to 1
	Weight    float64            `json:"weight"`    // its part of the members' emission
	Reward    uint64             `json:"reward"`
	Penalty   uint64             `json:"penalty"`
}

// SeatScores holds the scores and the pay of a validator in a period.
type SeatScores struct {
	Seat      uint32  `json:"seat"`
	Key       string  `json:"key"`
	Revealed  bool    `json:"revealed"`  // what it had committed to
	Agreement float64 `json:"agreement"` // with what was agreed on, 0 to 1
	Trust     uint8   `json:"trust"`     // after it
	Stake     uint64  `json:"stake"`
	Reward    uint64  `json:"reward"`
	Said      []Said  `json:"said"`
}

// Said is a validator's score of a member.
type Said struct {
	Member coordinator.Member `json:"member"`
	Score  float64            `json:"score"`
}

// scoreOf returns a fixed-point score as a number.
func scoreOf(v int16) float64 { return float64(v) / score.One }

// windows takes what changed of windows and scores. The members' and the rounds' rows come before
// it.
func (f *Fold) windows(ms uint64, w *runlog.Windows) {
	if w == nil {
		return
	}
	if f.run.Windows == nil {
		f.run.Windows = &Windows{}
	}
	v := f.run.Windows
	v.WindowsHead, v.Stage = w.WindowsHead, w.Stage.String()
	for _, c := range w.Commits {
		if r := f.find(c.Round); r != nil {
			r.OnChain = c.Count
		}
	}
	if w.SeatsTold {
		v.Validators = make([]Validator, len(w.Validators)) // earlier ones were given away
		for i, s := range w.Validators {
			v.Validators[i] = Validator{Seat: s.Seat, Key: s.Key.String(), Payee: hashText(s.Payee), Stake: s.Stake,
				Balance: s.Balance, Earned: s.Earned, Trust: s.Trust, Since: uint32(s.Since)}
		}
	}
	if p := w.Period; p != nil && (v.Period == nil || v.Period.Number != p.Period) {
		v.Period = newPeriod(*p, f.keyOf)
		if f.seen {
			f.say(ms, "info", "", v.Period.Words())
		}
	}
}

// newPeriod returns a period, with the keys of its members.
func newPeriod(p score.Scores, keyOf func(member coordinator.Member) string) *Period {
	out := &Period{Number: p.Period, First: uint32(p.First), Last: uint32(p.Last), Settled: p.Settled, Members: []MemberScore{}, Validators: []SeatScores{}}
	for _, m := range p.Members {
		out.Members = append(out.Members, MemberScore{
			Member: m.Member, Key: keyOf(m.Member), Sequences: m.Sequences, Scored: m.Scored, Score: scoreOf(m.Score),
			Weight: float64(m.Weight) / score.WeightOne, Reward: m.Reward, Penalty: m.Penalty,
		})
	}
	for _, s := range p.Validators {
		row := SeatScores{
			Seat: s.Seat, Key: s.Key.String(), Revealed: s.Revealed, Agreement: float64(s.Agreement) / score.AgreementOne,
			Trust: s.Trust, Stake: s.Stake, Reward: s.Reward, Said: []Said{},
		}
		for _, x := range s.Scores {
			row.Said = append(row.Said, Said{x.Member, scoreOf(x.Value)})
		}
		out.Validators = append(out.Validators, row)
	}
	return out
}

// keyOf returns the key of a member, "" if it is not known.
func (f *Fold) keyOf(member coordinator.Member) string {
	if int(member) < len(f.members) {
		return f.members[member].Key
	}
	return ""
}

// Words returns a settled period as a line.
func (p *Period) Words() string {
	var scored int
	var reward, penalty uint64
	for _, m := range p.Members {
		if m.Scored {
			scored++
		}
		reward, penalty = reward+m.Reward, penalty+m.Penalty
	}
	text := fmt.Sprintf("period %d, windows %d to %d: %d of %d members scored, %s tokens given", p.Number, p.First, p.Last, scored, len(p.Members), Thousands(reward))
	if penalty > 0 {
		text += fmt.Sprintf(", %s taken back", Thousands(penalty))
	}
	return text
}

// copy returns a copy for a reader. It shares what is settled, which no longer changes.
func (w *Windows) copy() *Windows {
	if w == nil {
		return nil
	}
	out := *w
	out.Validators = slices.Clone(w.Validators)
	return &out
}
