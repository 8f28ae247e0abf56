package web

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/view"
)

// memberRow is a member in a table.
type memberRow struct {
	Rank uint32 `json:"rank"` // from 1
	view.Member
}

// rows returns rows of the table for members by place. It is called with the lock held.
func (d *desk) rows(places []uint32) []memberRow {
	rank := make(map[uint32]uint32, len(places))
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

// memberQuery asks for a part of the table of members.
type memberQuery struct {
	sort   string // rank (if empty), points, score, earned, results, missed, joined, speed, key ...
	up     bool
	find   string // part of a key
	status string
	from   int
	count  int
}

// memberPage is the answer.
type memberPage struct {
	Version string      `json:"version"`
	Total   int         `json:"total"`
	From    int         `json:"from"`
	Rows    []memberRow `json:"rows"`
}

func (d *desk) memberPage(boot string, q memberQuery, now time.Time) memberPage {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refresh(now)
	var places []uint32
	for _, i := range d.ranks {
		m := d.run.Members[i]
		if (q.status == "" || m.Status == q.status) && strings.Contains(m.Key, q.find) {
			places = append(places, i)
		}
	}
	sortMembers(places, d.run.Members, q.sort, q.up)
	from := min(max(q.from, 0), len(places))
	to := min(from+min(max(q.count, 0), pageMax), len(places))
	return memberPage{versionText(boot, d.version), len(places), from, d.rows(places[from:to])}
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
func sortMembers(places []uint32, members []view.Member, by string, up bool) {
	compare := order[by]
	switch {
	case compare != nil:
		slices.SortStableFunc(places, func(a, b uint32) int {
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
}

// member returns what is known of the member of a key.
func (d *desk) member(boot, key string, now time.Time) (memberDetail, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refresh(now)
	at := slices.IndexFunc(d.run.Members, func(m view.Member) bool { return m.Key == key })
	if at < 0 {
		return memberDetail{}, false
	}
	i := uint32(at)
	md := memberDetail{
		Version: versionText(boot, d.version), Member: d.rows([]uint32{i})[0], Share: []batch.Span{}, Turns: d.fold.Turns(key, pageMax),
		Rounds: d.fold.WorksOf(i, key), Convictions: d.convictionsOf(key), Score: d.scoreOf(key),
	}
	if d.state != nil && coordinator.Member(i) < d.state.Count() {
		if r, ok := d.state.At(d.state.Round()); ok {
			md.Share, md.Seat = append(md.Share, r.Share(coordinator.Member(i))...), r.Elected(coordinator.Member(i))
		}
	}
	return md, true
}
