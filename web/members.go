package web

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/entrain-network/entrain/batch"
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

// pageMax is how many rows of a table are given at once: some windows full.
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

// sortMembers sorts places, which are in the order of ranks.
func sortMembers(places []uint32, members []view.Member, by string, up bool) {
	compare := func(a, b view.Member) int { return 0 }
	switch by {
	case "", "rank":
		if !up {
			slices.Reverse(places)
		}
		return
	case "score":
		compare = func(a, b view.Member) int { return cmp.Compare(a.Score, b.Score) }
	case "earned":
		compare = func(a, b view.Member) int { return cmp.Compare(a.Earned, b.Earned) }
	case "points", "share":
		compare = func(a, b view.Member) int { return cmp.Compare(a.Points, b.Points) }
	case "results":
		compare = func(a, b view.Member) int { return cmp.Compare(a.Results, b.Results) }
	case "missed":
		compare = func(a, b view.Member) int { return cmp.Compare(a.Missed, b.Missed) }
	case "idle":
		compare = func(a, b view.Member) int { return cmp.Compare(a.Idle, b.Idle) }
	case "joined":
		compare = func(a, b view.Member) int { return cmp.Compare(a.JoinedMs, b.JoinedMs) }
	case "stake":
		compare = func(a, b view.Member) int { return cmp.Compare(a.Stake, b.Stake) }
	case "doubt":
		compare = func(a, b view.Member) int { return cmp.Compare(a.Doubt, b.Doubt) }
	case "passed":
		compare = func(a, b view.Member) int { return cmp.Compare(a.Passed, b.Passed) }
	case "speed":
		compare = func(a, b view.Member) int { return cmp.Compare(a.Speed, b.Speed) }
	case "status":
		compare = func(a, b view.Member) int { return cmp.Compare(a.Status, b.Status) }
	case "key":
		compare = func(a, b view.Member) int { return cmp.Compare(a.Key, b.Key) }
	}
	slices.SortStableFunc(places, func(a, b uint32) int {
		if c := compare(members[a], members[b]); up {
			return c
		} else {
			return -c
		}
	})
}

// memberDetail is all that is known of a member.
type memberDetail struct {
	Version string       `json:"version"`
	Member  memberRow    `json:"member"`
	Share   []batch.Span `json:"sequences"` // its share of the round that runs
	Seat    bool         `json:"seat"`      // it is a witness of the round that runs
	Turns   []turnLine   `json:"turns"`     // newest first
	// Convictions are its own, newest first.
	Convictions []view.Conviction `json:"convictions"`
	Score       *scoreRow         `json:"score"`  // in the period that was settled last, if it was scored
	Rounds      []memberWork      `json:"rounds"` // newest first, at most detailsMax
}

// turnLine is a member's coming or going.
type turnLine struct {
	Ms    uint64 `json:"ms"`
	Round uint32 `json:"round"`
	What  string `json:"what"`
}

// memberWork is what a member did in a round, and what it got for it.
type memberWork struct {
	Round    uint32 `json:"round"`
	Step     uint32 `json:"step"`
	Epoch    uint32 `json:"epoch"`
	Shared   bool   `json:"shared"` // it had a share
	Final    bool   `json:"final"`
	Accepted bool   `json:"accepted"`
	Holders  int    `json:"holders"` // witnesses that held its result; -1: not known
	Quorum   uint32 `json:"quorum"`
	Seats    uint32 `json:"seats"`
	Points   uint64 `json:"points"` // earned
	Seat     bool   `json:"seat"`   // it was a witness
	Reported bool   `json:"reported"`
	Complete bool   `json:"complete"`
	Check    string `json:"check"` // of its result: open, disputed, right, convicted or ""
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
	md := memberDetail{Version: versionText(boot, d.version), Member: d.rows([]uint32{i})[0], Share: []batch.Span{}, Turns: []turnLine{}, Rounds: []memberWork{},
		Convictions: d.convictionsOf(key), Score: d.scoreOf(key)}
	if d.state != nil && i < d.state.Count() {
		if r, ok := d.state.At(d.state.Round()); ok {
			md.Share, md.Seat = append(md.Share, r.Share(i)...), r.Elected(i)
		}
	}
	for _, t := range slices.Backward(d.past.turns) {
		if t.member == key && len(md.Turns) < pageMax {
			md.Turns = append(md.Turns, turnLine{t.ms, t.round, t.what})
		}
	}
	for _, detail := range slices.Backward(d.past.details) {
		if w, ok := d.work(detail, i, key); ok {
			w.Check = d.checkOf(w.Round, i)
			md.Rounds = append(md.Rounds, w)
		}
	}
	return md, true
}

// work returns what the member of a place did in a round; false if it was not of the round.
func (d *desk) work(detail *roundDetail, i uint32, key string) (memberWork, bool) {
	at, ok := d.past.find(detail.number)
	if !ok || !detail.active.Has(i) || d.past.keyOf(detail, i) != key {
		return memberWork{}, false
	}
	rec := d.past.rounds[at]
	w := memberWork{
		Round: rec.number, Step: rec.step, Epoch: rec.epoch, Shared: detail.expected.Has(i), Final: rec.final,
		Accepted: detail.accepted.Has(i), Holders: -1, Quorum: uint32(rec.quorum), Seats: uint32(rec.seats),
	}
	if int(i) < len(detail.holders) {
		w.Holders = int(detail.holders[i])
	}
	if w.Accepted {
		w.Points = detail.sequences(rec, i)
	}
	for _, seat := range detail.witnesses {
		if seat.member == i {
			w.Seat, w.Reported, w.Complete = true, seat.reported, seat.complete
		}
	}
	return w, true
}
