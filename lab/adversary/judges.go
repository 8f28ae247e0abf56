package adversary

import (
	"slices"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/score"
)

// Judge is a way for a validator to lie about its scores of a period.
type Judge struct {
	Name string
	// Tries describes, in a sentence, what it does and hopes for.
	Tries string
	Say   func(s coordinator.State, period uint32, honest []score.Score) []score.Score
}

// Judges returns all kinds of lying validators.
func Judges() []Judge {
	return []Judge{
		{Name: "inverse", Tries: "negates its scores, so that cheats are paid and the honest are not", Say: each(func(_ int, v int16) int16 { return -max(v, -score.One) })},
		{Name: "favour", Tries: "gives the first member the best score and the others the worst", Say: each(func(i int, _ int16) int16 {
			if i == 0 {
				return score.One
			}
			return -score.One
		})},
		{Name: "same", Tries: "gives all members the same score, without evaluating", Say: each(func(int, int16) int16 { return score.One / 2 })},
		{Name: "copy", Tries: "repeats the settled scores of the previous period, without evaluating", Say: repeat},
		{Name: "silent", Tries: "reveals no scores, to be paid for the commitment", Say: func(coordinator.State, uint32, []score.Score) []score.Score { return nil }},
	}
}

// FindJudge returns the named kind.
func FindJudge(name string) (Judge, bool) {
	list := Judges()
	i := slices.IndexFunc(list, func(j Judge) bool { return j.Name == name })
	if i < 0 {
		return Judge{}, false
	}
	return list[i], true
}

func each(f func(i int, honest int16) int16) func(coordinator.State, uint32, []score.Score) []score.Score {
	return func(_ coordinator.State, _ uint32, honest []score.Score) []score.Score {
		for i := range honest {
			honest[i].Value = f(i, honest[i].Value)
		}
		return honest
	}
}

// repeat repeats each member's settled score, and gives newcomers the mean.
func repeat(s coordinator.State, _ uint32, honest []score.Score) []score.Score {
	last, ok := s.LastScores()
	var sum, n int
	for _, m := range last.Members {
		if ok && m.Scored {
			sum, n = sum+int(m.Score), n+1
		}
	}
	for i := range honest {
		k := slices.IndexFunc(last.Members, func(m score.MemberScore) bool { return ok && m.Scored && m.Member == honest[i].Member })
		switch {
		case k >= 0:
			honest[i].Value = last.Members[k].Score
		case n > 0:
			honest[i].Value = int16(sum / n)
		default:
			honest[i].Value = score.One / 4
		}
	}
	return honest
}
