// Package holders counts who holds ranges of results, from what aggregators show of them.
//
// An aggregator shows a byte for each author: 0, or the tag of the commitment whose range it holds.
// A bit would take an eighth. But an author could then name one payload to witnesses and another to
// aggregators, and its result would be accepted although nobody can sum it. Each aggregator takes
// another byte of the commitment's ID, so two commitments that look the same to many are not found.
package holders

import (
	"slices"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// Quorum returns how many members of a group of n must hold their range of a payload.
func Quorum(n int) int { return (n + 1) / 2 }

// Tag returns what a member shows of a commitment whose range it holds. It is not 0.
func Tag(id wire.Hash, by key.Public) byte { return tag(id, place(by)) }

func tag(id wire.Hash, place byte) byte { return max(1, id[place]) }

// place returns the index of the byte of IDs that a member shows.
func place(by key.Public) byte { return by[0] % byte(len(wire.Hash{})) }

// Table is what the members of groups show to one member.
type Table struct {
	groups  [][]coordinator.Member
	own     int
	group   []int    // by member, -1: none
	places  []byte   // by member
	shown   [][]byte // by member
	some    bool     // a member has shown something
	ids     []wire.Hash
	holders [][]uint16 // by group and author: members that show ids[author]
}

// New returns the table of a member of groups[own], or of none. There are as many authors as given,
// and as many members as keys.
func New(groups [][]coordinator.Member, own, authors, members int, keys func(coordinator.Member) key.Public) *Table {
	t := &Table{groups: groups, own: own, group: make([]int, members), places: make([]byte, members),
		shown: make([][]byte, members), ids: make([]wire.Hash, authors), holders: make([][]uint16, len(groups))}
	for i := range t.group {
		t.group[i], t.places[i] = -1, place(keys(coordinator.Member(i)))
	}
	for g, group := range groups {
		t.holders[g] = make([]uint16, authors)
		for _, i := range group {
			t.group[i] = g
		}
	}
	return t
}

// Show takes what a member of a group shows, in place of what it showed before. It ignores what is
// too long.
func (t *Table) Show(i coordinator.Member, tags []byte) {
	if len(tags) > len(t.ids) {
		return
	}
	t.count(i, ^uint16(0))
	t.shown[i], t.some = tags, true
	t.count(i, 1)
}

// Shown returns what a member shows.
func (t *Table) Shown(i coordinator.Member) []byte { return t.shown[i] }

// count adds what a member shows to the holders, or takes it from them. To look for each result
// through all members takes far longer.
func (t *Table) count(i coordinator.Member, by uint16) {
	holders, at := t.holders[t.group[i]], t.places[i]
	for author, b := range t.shown[i] {
		if b != 0 && b == tag(t.ids[author], at) {
			holders[author] += by
		}
	}
}

// Held reports whether a quorum of each group shows the author's commitment with this ID. Of this
// member's group no member has to: who asks holds the range itself.
func (t *Table) Held(author coordinator.Member, id wire.Hash) bool {
	if t.ids[author] != id {
		t.recount(author, id)
	}
	for g := range t.groups {
		if t.lacks(g, author) {
			return false
		}
	}
	return true
}

// lacks reports whether too few of a group show the author's commitment.
func (t *Table) lacks(g int, author coordinator.Member) bool {
	return g != t.own && int(t.holders[g][author]) < Quorum(len(t.groups[g]))
}

func (t *Table) shows(i, author coordinator.Member) bool {
	shown := t.shown[i]
	return int(author) < len(shown) && shown[author] == tag(t.ids[author], t.places[i])
}

// recount counts who shows a commitment, in place of another one of its author.
func (t *Table) recount(author coordinator.Member, id wire.Hash) {
	t.ids[author] = id
	for g, group := range t.groups {
		t.holders[g][author] = 0
		if !t.some {
			continue // most are looked at before any member is asked
		}
		for _, i := range group {
			if t.shows(i, author) {
				t.holders[g][author]++
			}
		}
	}
}

// Ask returns the members whose answer can bring a result closer to Held: they do not show one of
// these authors' commitments, and too few of their group do. An author that serves too few members
// of one group has that group asked, and not all.
func (t *Table) Ask(authors []coordinator.Member) (ask []coordinator.Member) {
	var lacking []coordinator.Member
	for g, group := range t.groups {
		lacking = lacking[:0]
		for _, author := range authors {
			if t.lacks(g, author) {
				lacking = append(lacking, author)
			}
		}
		for _, i := range group {
			if slices.ContainsFunc(lacking, func(author coordinator.Member) bool { return !t.shows(i, author) }) {
				ask = append(ask, i)
			}
		}
	}
	return ask
}
