package holders

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// TestTableCounts compares a table with a count of all that is shown, whatever comes in which order.
func TestTableCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const authors = 6
		members := rapid.IntRange(3, 12).Draw(t, "members")
		groups := make([][]coordinator.Member, rapid.IntRange(1, 3).Draw(t, "groups"))
		for i := range members {
			groups[i%len(groups)] = append(groups[i%len(groups)], coordinator.Member(i))
		}
		own := rapid.IntRange(-1, len(groups)-1).Draw(t, "own")
		keys := func(i coordinator.Member) (k key.Public) { k[0] = byte(7 * i); return k }
		id := func(author coordinator.Member, second bool) wire.Hash {
			return wire.Sum("commitment", []byte{byte(author), map[bool]byte{true: 1}[second]})
		}
		table := New(groups, own, authors, members, keys)
		shown, counted := make([][]byte, members), make([]bool, authors) // the second commitment is
		for range rapid.IntRange(1, 30).Draw(t, "moves") {
			if author := coordinator.Member(rapid.IntRange(0, authors-1).Draw(t, "author")); rapid.Bool().Draw(t, "look") {
				counted[author] = rapid.Bool().Draw(t, "second")
				table.Held(author, id(author, counted[author]))
				continue
			}
			i := coordinator.Member(rapid.IntRange(0, members-1).Draw(t, "member"))
			tags := make([]byte, rapid.IntRange(0, authors).Draw(t, "length"))
			for author := range tags {
				if what := rapid.IntRange(0, 4).Draw(t, "holds"); what > 0 {
					tags[author] = Tag(id(coordinator.Member(author), what == 1), keys(i))
				}
			}
			table.Show(i, tags)
			shown[i] = tags
		}
		shows := func(i, author coordinator.Member) bool {
			return int(author) < len(shown[i]) && shown[i][author] == Tag(id(author, counted[author]), keys(i))
		}
		var lacking [][]coordinator.Member // by author: the groups' members, where too few show it
		for author := range coordinator.Member(authors) {
			var of []coordinator.Member
			for g, group := range groups {
				n := 0
				for _, i := range group {
					if shows(i, author) {
						n++
					}
				}
				if g != own && 2*n < len(group) {
					of = append(of, group...)
				}
			}
			if held := table.Held(author, id(author, counted[author])); held != (len(of) == 0) {
				t.Fatalf("author %d is held: %v, although members %v lack it", author, held, of)
			}
			lacking = append(lacking, of)
		}
		wanted := rapid.SliceOfDistinct(rapid.Uint32Range(0, authors-1), rapid.ID[uint32]).Draw(t, "wanted")
		var of []coordinator.Member
		for _, author := range wanted {
			of = append(of, coordinator.Member(author))
		}
		ask := table.Ask(of)
		for i := range coordinator.Member(members) {
			want := slices.ContainsFunc(of, func(author coordinator.Member) bool { return slices.Contains(lacking[author], i) && !shows(i, author) })
			if got := slices.Contains(ask, i); got != want {
				t.Fatalf("member %d is asked: %v, want %v", i, got, want)
			}
		}
	})
}

// TestTagsOfTwoCommitments: what holders of one commitment show does not count for another one.
func TestTagsOfTwoCommitments(t *testing.T) {
	var group []coordinator.Member
	for i := range coordinator.Member(128) {
		group = append(group, i)
	}
	keys := func(i coordinator.Member) key.Public { return key.Public(wire.Sum("key", []byte{byte(i)})) }
	table, one, other := New([][]coordinator.Member{group}, -1, 1, 128, keys), wire.Sum("one"), wire.Sum("other")
	for _, i := range group {
		table.Show(i, []byte{Tag(one, keys(i))})
	}
	if !table.Held(0, one) || table.Held(0, other) || table.holders[0][0] > 5 || !table.Held(0, one) {
		t.Errorf("%d of 128 that hold one commitment show the other", table.holders[0][0])
	}
	if table.Show(0, []byte{1, 2}); table.Shown(0)[0] != Tag(one, keys(0)) {
		t.Error("what is too long is taken")
	}
}
