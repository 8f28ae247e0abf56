package web

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/view"
)

// memberRow is a member in a table.
type memberRow struct {
	Rank uint32 `json:"rank"` // from 1
	view.Member
}

// rows returns rows of the table for members by place.
func (d *desk) rows(places []coordinator.Member) []memberRow {
	rank := make(map[coordinator.Member]uint32, len(places))
	for r, i := range d.ranks {
		rank[i] = uint32(r) + 1
	}
	rows := make([]memberRow, len(places))
	for k, i := range places {
		rows[k] = memberRow{rank[i], d.run.Members[i]}
	}
	return rows
}

// pageMax bounds the rows of a table in one answer.
const pageMax = 200

// memberPage is a part of the table of members.
type memberPage struct {
	Version string      `json:"version"`
	Total   int         `json:"total"`
	From    int         `json:"from"`
	Rows    []memberRow `json:"rows"`
}

// members is a part of the table: the members with a status and a part of a key, a name or a team,
// sorted by rank (if the query says nothing), points, score, earned, results, missed, joined ...
func (d *desk) members(r *http.Request) any {
	find, status := strings.ToLower(r.FormValue("find")), r.FormValue("status")
	var places []coordinator.Member
	for _, i := range d.ranks {
		m := d.run.Members[i]
		if (status == "" || m.Status == status) && (strings.Contains(m.Key, find) || strings.Contains(m.Name, find) || strings.Contains(m.Team, find)) {
			places = append(places, i)
		}
	}
	sortMembers(places, d.run.Members, r.FormValue("sort"), r.FormValue("up") == "1")
	from, to := part(r, len(places))
	return memberPage{d.versionText(), len(places), from, d.rows(places[from:to])}
}

// part returns which of n rows a query asks for, at most pageMax.
func part(r *http.Request, n int) (from, to int) {
	from = min(max(number(r, "from", 0), 0), n)
	return from, min(from+min(max(number(r, "count", pageMax), 0), pageMax), n)
}

// order compares members by a column of the table.
var order = map[string]func(a, b view.Member) int{
	"score":   func(a, b view.Member) int { return cmp.Compare(a.Score, b.Score) },
	"earned":  func(a, b view.Member) int { return cmp.Compare(a.Earned, b.Earned) },
	"points":  func(a, b view.Member) int { return cmp.Compare(a.Points, b.Points) },
	"share":   func(a, b view.Member) int { return cmp.Compare(a.Points, b.Points) },
	"results": func(a, b view.Member) int { return cmp.Compare(a.Results, b.Results) },
	"missed":  func(a, b view.Member) int { return cmp.Compare(a.Missed, b.Missed) },
	"idle":    func(a, b view.Member) int { return cmp.Compare(a.Idle, b.Idle) },
	"joined":  func(a, b view.Member) int { return cmp.Compare(a.JoinedMs, b.JoinedMs) },
	"stake":   func(a, b view.Member) int { return cmp.Compare(a.Stake, b.Stake) },
	"doubt":   func(a, b view.Member) int { return cmp.Compare(a.Doubt, b.Doubt) },
	"passed":  func(a, b view.Member) int { return cmp.Compare(a.Passed, b.Passed) },
	"speed":   func(a, b view.Member) int { return cmp.Compare(a.Speed, b.Speed) },
	"status":  func(a, b view.Member) int { return cmp.Compare(a.Status, b.Status) },
	"key":     func(a, b view.Member) int { return cmp.Compare(a.Key, b.Key) },
}

// sortMembers sorts places, which are in the order of ranks.
func sortMembers(places []coordinator.Member, members []view.Member, by string, up bool) {
	compare := order[by]
	switch {
	case compare != nil:
		slices.SortStableFunc(places, func(a, b coordinator.Member) int {
			if up {
				a, b = b, a
			}
			return compare(members[b], members[a])
		})
	case (by == "" || by == "rank") && !up:
		slices.Reverse(places)
	}
}

// memberDetail is all that is known of a member.
type memberDetail struct {
	Version string       `json:"version"`
	Member  memberRow    `json:"member"`
	Share   []batch.Span `json:"sequences"` // its share of the round that runs
	Seat    bool         `json:"seat"`      // it is a witness of the round that runs
	Turns   []view.Turn  `json:"turns"`     // newest first
	// Convictions are its own, newest first.
	Convictions []view.Conviction `json:"convictions"`
	Score       *scoreRow         `json:"score"`  // in the period settled last
	Rounds      []view.Work       `json:"rounds"` // newest first
	Rate        uint64            `json:"rate"`   // tokens that the run pays for a point
	Due         uint64            `json:"due"`    // tokens that it can claim, besides its stake
}

// member is what is known of the member of a key.
func (d *desk) member(r *http.Request) any {
	key := r.PathValue("key")
	at := slices.IndexFunc(d.run.Members, func(m view.Member) bool { return m.Key == key })
	if at < 0 {
		return refused{http.StatusNotFound, "the run has no member of this key"}
	}
	i := coordinator.Member(at)
	md := memberDetail{
		Version: d.versionText(), Member: d.rows([]coordinator.Member{i})[0], Share: []batch.Span{}, Turns: d.fold.Turns(key, pageMax),
		Rounds: d.fold.WorksOf(i, key), Convictions: d.convictionsOf(key), Score: d.scoreOf(key),
	}
	m := md.Member
	md.Due = m.Balance
	if t := d.run.Trust; t != nil && t.Rate > 0 {
		md.Rate = t.Rate
		md.Due += t.Rate * min(m.Settled-min(m.Settled, m.Claimed), t.Treasury/t.Rate)
	}
	if d.state != nil && i < d.state.Count() {
		if now, ok := d.state.At(d.state.Round()); ok {
			md.Share, md.Seat = append(md.Share, now.Share(i)...), now.Elected(i)
		}
	}
	return md
}
