package coordinator

import (
	"fmt"
	"testing"
)

// Keys that leave with one token owed to each fill no table: a newcomer takes the place of one, which
// is paid.
func TestPlacesOfThoseGoneAreGivenAway(t *testing.T) {
	const places = 8
	w := newWorld(t, Limits{Members: places, Witnesses: 4}, testConfig(), "squat")
	for i := range places {
		k := testKey(fmt.Sprint("squatter", i))
		if err := w.applyWith(k, 1, Join{}); err != nil {
			t.Fatal(err)
		}
		if err := w.apply(k, Withdraw{}); err != nil {
			t.Fatal(err)
		}
		w.now++
	}
	for i := range 2 * places {
		k := testKey(fmt.Sprint("newcomer", i))
		if err := w.applyWith(k, 1, Join{}); err != nil {
			t.Fatalf("newcomer %d: %v", i, err)
		}
		if to, amount := w.s.Payout(); amount != 1 || i == 0 && to != testKey("squatter0") {
			t.Fatalf("newcomer %d: %d tokens are paid out, to %v", i, amount, to)
		}
		if err := w.apply(k, Withdraw{}); err != nil {
			t.Fatal(err)
		}
		w.now++
	}
}

// A member whose points the treasury cannot pay keeps its place for PlaceMs.
func TestAPoorTreasuryDoesNotCostAPlaceAtOnce(t *testing.T) {
	c := testConfig()
	c.MinMembers, c.StartMembers, c.Rate, c.TotalSteps = 1, 1, 3, 1
	sc := &scenario{t: t, world: newWorld(t, Limits{Members: 1, Witnesses: 1}, c, "poor")}
	w := sc.world
	ann, bob := testKey("ann"), testKey("bob")
	if err := w.apply(ann, Join{}); err != nil {
		t.Fatal(err)
	}
	// One round's points, as if the run had been through it.
	b := w.s.place(0)
	b.SetPoints(8)
	w.s.h().SetPointsTotal(8)
	for n := range uint64(8) {
		w.fates.acceptedIn[n] = 1
	}
	w.rewarded = 8
	w.s.h().SetDataIndex(8)
	if err := w.apply(ann, Withdraw{}); err != nil {
		t.Fatal(err)
	}
	w.now += PlaceMs - 1
	if err := w.apply(bob, Join{}); err != ErrFull {
		t.Fatal(err)
	}
	w.now++
	if err := w.apply(bob, Join{}); err != nil {
		t.Fatal(err)
	}
}
