package web

import (
	"cmp"
	"net/http"
	"slices"
	"sort"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/view"
)

// scoresPage holds the validators' scores of members, and the pay for them.
type scoresPage struct {
	Version  string `json:"version"`
	Known    bool   `json:"known"` // validators score in this run
	Finished bool   `json:"finished"`
	view.Windows
	Members int        `json:"members"` // scored; Rows has the best pageMax
	Rows    []scoreRow `json:"rows"`
}

// scoreRow is a member of a settled period, with what each validator said of it.
type scoreRow struct {
	view.MemberScore
	Average  float64  `json:"average"` // of its scores so far
	Earned   uint64   `json:"earned"`
	Unvested uint64   `json:"unvested"`
	Said     []saidOf `json:"said"`
}

// saidOf is a validator's score of a member.
type saidOf struct {
	Seat  uint32  `json:"seat"`
	Key   string  `json:"key"`
	Score float64 `json:"score"`
}

func (d *desk) scores(*http.Request) any {
	p := scoresPage{Version: d.versionText(), Rows: []scoreRow{}, Finished: d.run.Phase == coordinator.Finished.String()}
	p.Validators = []view.Validator{}
	if d.run.Windows == nil || d.run.Windows.ScoreWindows == 0 {
		return p
	}
	p.Known, p.Windows = true, *d.run.Windows
	if p.Validators == nil {
		p.Validators = []view.Validator{}
	}
	if p.Period == nil {
		return p
	}
	last := *p.Period
	all := slices.Clone(last.Members)
	sort.SliceStable(all, func(i, j int) bool {
		return cmp.Or(cmp.Compare(all[j].Reward, all[i].Reward), cmp.Compare(all[j].Score, all[i].Score)) < 0
	})
	p.Members = len(all)
	for _, m := range all[:min(len(all), pageMax)] {
		p.Rows = append(p.Rows, d.scoreRow(last, m))
	}
	last.Members, last.Validators = nil, slices.Clone(last.Validators)
	for i := range last.Validators {
		last.Validators[i].Said = nil
	}
	p.Period = &last
	return p
}

// scoreRow is one of the rows.
func (d *desk) scoreRow(p view.Period, m view.MemberScore) scoreRow {
	row := scoreRow{MemberScore: m, Said: []saidOf{}}
	if int(m.Member) < len(d.run.Members) && d.run.Members[m.Member].Key == m.Key {
		x := d.run.Members[m.Member]
		row.Average, row.Earned, row.Unvested = x.Score, x.Earned, x.Unvested
	}
	for _, v := range p.Validators {
		i, ok := slices.BinarySearchFunc(v.Said, m.Member, func(s view.Said, n coordinator.Member) int { return cmp.Compare(s.Member, n) })
		if ok {
			row.Said = append(row.Said, saidOf{v.Seat, v.Key, v.Said[i].Score})
		}
	}
	return row
}

// scoreOf is the row of a member in the period that was settled last, nil if it had none.
func (d *desk) scoreOf(key string) *scoreRow {
	if d.run.Windows == nil || d.run.Windows.Period == nil {
		return nil
	}
	for _, m := range d.run.Windows.Period.Members {
		if m.Key == key {
			row := d.scoreRow(*d.run.Windows.Period, m)
			return &row
		}
	}
	return nil
}
