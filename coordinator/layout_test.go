package coordinator

import (
	"slices"
	"testing"

	"github.com/entrain-network/entrain/bloom"
	"github.com/entrain-network/entrain/committee"
	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

// The parts of the buffer follow each other without overlap, each at a multiple of its fields' size, whole pages each.
func TestLayoutHasNoOverlaps(t *testing.T) {
	for _, l := range []Limits{
		{1, 1, 0, false, true}, {2, 3, 1, true, false}, {63, 4, 2, false, true}, {64, 5, 0, true, true}, {65, 32, 7, true, true},
		{256, 32, 0, false, false}, {256, 32, 8, true, false}, {1000, 7, 3, false, true}, {MembersMax, WitnessesMax, ValidatorsMax, true, true},
	} {
		a := l.layout()
		w, n := uint32(l.Witnesses), l.Members
		parts := []struct{ at, end, align uint32 }{
			{0, hEnd, PageBytes},
			{a.Table, a.Table + n*record.PlaceBytes, PageBytes},
			{a.Redo, a.Redo + record.RedoMax*record.SpanBytes, PageBytes},
			{a.Ring, a.Ring + record.SlotBytes, PageBytes},
			{a.Ring + a.Elected, a.Ring + a.Elected + 4*w, 4},
			{a.Ring + a.Reports, a.Ring + a.Reports + record.ReportBytes*w, 8},
			{a.Ring + a.Active, a.Ring + a.Active + a.Bitmap, 8},
			{a.Ring + a.Expected, a.Ring + a.Expected + a.Bitmap, 8},
			{a.Ring + a.Accepted, a.Ring + a.Accepted + a.Bitmap, 8},
			{a.Ring + a.Counts, a.Ring + a.Counts + n, 1},
			{a.Ring + a.Filters, a.Ring + a.Filters + a.FiltersLen, 8},
			{a.Ring + a.Commits, a.Ring + a.Commits, 8},
			{a.Ring + a.Shares, a.Ring + a.Shares, 4},
			{a.Ring + a.Slot, a.Ring + a.Slot, PageBytes},
			{a.Checks, a.Checks + record.CheckBytes*a.ChecksMax, PageBytes},
			{a.Disputes, a.Disputes + record.DisputeBytes*record.DisputesMax, PageBytes},
			{a.Convictions, a.Convictions + record.ConvictionBytes*record.ConvictionsMax, PageBytes},
			{a.Seats, a.Seats + 2*record.SeatBytes*a.Validators, PageBytes},
			{a.Tallies, a.Tallies + record.TalliesKept*a.Tally, PageBytes},
			{a.Periods, a.Periods + record.BallotsKept*a.Period, PageBytes},
			{a.Total, a.Total, PageBytes},
		}
		for i, p := range parts {
			if p.at%p.align != 0 {
				t.Errorf("%+v: part %d begins at %d, no multiple of %d", l, i, p.at, p.align)
			}
			if i > 0 && p.at < parts[i-1].end {
				t.Errorf("%+v: part %d begins at %d, before the end of the one before at %d", l, i, p.at, parts[i-1].end)
			}
		}
		if a.Bitmap*8 < n || a.Checks != a.Ring+record.RingRounds*a.Slot || Size(l) != int(a.Total) {
			t.Errorf("%+v: layout %+v does not add up", l, a)
		}
	}
}

// The filters of any round a run can have fit the space its limits leave for them.
func TestFiltersFit(t *testing.T) {
	for _, l := range []Limits{{Members: 1, Witnesses: 32}, {Members: 7, Witnesses: 32}, {Members: 256, Witnesses: 32}, {Members: 256, Witnesses: 3}, {Members: MembersMax, Witnesses: 32}} {
		space := l.layout().FiltersLen
		for w := uint32(1); w <= uint32(l.Witnesses); w++ {
			for items := uint32(1); items <= l.Members; items += 1 + items/16 {
				if p := bloom.Size(items, w, committee.Quorum(w)); w*p.Bits/8 > space {
					t.Fatalf("%+v: %d filters of %d items need %d bytes, there are %d", l, w, items, w*p.Bits/8, space)
				}
			}
		}
		if p := bloom.Size(l.Members, 1, 1); p.Bytes() > filterBytesMax {
			t.Errorf("%+v: a filter of %d bytes fits no message", l, p.Bytes())
		}
	}
}

func TestSizes(t *testing.T) {
	for _, c := range []struct {
		l    Limits
		most int
		why  string
	}{
		{Limits{Members: 256, Witnesses: 32}, 160_000, "what a chain with rent can still afford"},
		{Limits{Members: MembersMax, Witnesses: 32}, 4_620_000, "what the package comment promises"},
	} {
		if n := Size(c.l); n == 0 || n > c.most {
			t.Errorf("%+v take %d bytes, more than %d, %s", c.l, n, c.most, c.why)
		}
	}
	for _, l := range []Limits{
		{}, {Members: 1}, {Witnesses: 1}, {Members: MembersMax + 1, Witnesses: 1}, {Members: 1, Witnesses: WitnessesMax + 1},
		{Members: 1, Witnesses: 1, Validators: ValidatorsMax + 1},
	} {
		if Size(l) != 0 || l.Check() != ErrLimits {
			t.Errorf("%+v are taken for limits", l)
		}
	}
}

// Hash is the root over the leaves of the pages, each alone: a host can prove a page.
func TestHashIsRootOfPages(t *testing.T) {
	s, err := New(Limits{Members: 20, Witnesses: 3}, testConfig(), Env{})
	if err != nil {
		t.Fatal(err)
	}
	var leaves []wire.Hash
	for page := range slices.Chunk(s.Bytes(), PageBytes) {
		leaves = append(leaves, merkle.Leaf(page))
	}
	if s.Hash() != merkle.Root(leaves) {
		t.Error("hash is not the root over the pages")
	}
	before := s.Hash()
	s.Bytes()[len(s.Bytes())-1] ^= 1
	if s.Hash() == before {
		t.Error("hash does not cover the last byte")
	}
}

func TestRunsHaveDifferentIDs(t *testing.T) {
	id := func(l Limits, c Config, env Env) wire.Hash {
		s, err := New(l, c, env)
		if err != nil {
			t.Fatal(err)
		}
		return s.ID()
	}
	l, c := Limits{Members: 8, Witnesses: 4}, testConfig()
	first := id(l, c, Env{})
	other := c
	other.TotalSteps++
	for what, got := range map[string]wire.Hash{
		"limits": id(Limits{Members: 9, Witnesses: 4}, c, Env{}), "configuration": id(l, other, Env{}),
		"height": id(l, c, Env{Height: 1}), "time": id(l, c, Env{NowMs: 1}), "seed": id(l, c, Env{Seed: wire.Hash{1}}),
	} {
		if got == first {
			t.Errorf("runs that differ in %s have the same ID", what)
		}
	}
	if id(l, c, Env{}) != first {
		t.Error("the same run has two IDs")
	}
}
