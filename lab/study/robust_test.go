package study

import (
	"context"
	"errors"
	"reflect"
	"testing"
)

// A few members and steps: enough for the attackers to make a difference.
var small = RobustOptions{Members: 9, Steps: 40, Shares: []int{33}, Attacks: []Attack{Together}, Rules: []Rule{Rules()[0], Rules()[2]}}

func TestAttackersAreHeldDownByTheRule(t *testing.T) {
	r, err := MeasureRobust(t.Context(), small)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != 4 {
		t.Fatalf("%d rows, want an honest one and one attacked under each of two rules", len(r.Rows))
	}
	honest, attacked, bounded := r.Rows[0], r.Rows[1], r.Rows[3]
	if honest.Loss > r.Start-.5 || honest.Loss < r.Floor {
		t.Errorf("honest members come from %.3f to %.3f, and a perfect model has %.3f", r.Start, honest.Loss, r.Floor)
	}
	if attacked.Attackers != 3 || attacked.Loss < honest.Loss+.05 {
		t.Errorf("%d attackers make %.3f of the loss %.3f: they do not attack", attacked.Attackers, attacked.Loss, honest.Loss)
	}
	if bounded.Loss > attacked.Loss || bounded.All > attacked.All {
		t.Errorf("with %s the loss is %.3f and the influence %.3f; without %.3f and %.3f", bounded.Rule, bounded.Loss, bounded.All, attacked.Loss, attacked.All)
	}
}

func TestTheMeasurementIsAFunctionOfItsOptions(t *testing.T) {
	o := small
	o.Steps, o.Attacks, o.Rules = 10, attacks(), Rules()[2:3]
	a, err := MeasureRobust(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	b, err := MeasureRobust(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(a, b) {
		t.Errorf("%+v and %+v", a, b)
	}
	for _, row := range a.Rows[1:] {
		if row.One <= 0 || row.All <= row.One/4 {
			t.Errorf("%s: one attacker moves %.3f of a step, all of them %.3f", row.Attack, row.One, row.All)
		}
	}
}

// Liars do as little where groups of chunks are clipped as where payloads are.
func TestClippingGroupsHoldsLiarsDown(t *testing.T) {
	o := small
	o.Rules, o.Attacks = SparseRules(), []Attack{Scale}
	r, err := MeasureRobust(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	honest, payloads, groups := r.Rows[2], r.Rows[1], r.Rows[3]
	if honest.Loss > r.Start-.3 || groups.Loss < honest.Loss+.05 {
		t.Errorf("honest members come from %.3f to %.3f, with liars to %.3f", r.Start, honest.Loss, groups.Loss)
	}
	if groups.Loss > 1.01*payloads.Loss || groups.All > 1.1*payloads.All {
		t.Errorf("with %s the loss is %.3f and the influence %.3f; with %s %.3f and %.3f", groups.Rule, groups.Loss, groups.All, payloads.Rule, payloads.Loss, payloads.All)
	}
}

func TestTheMeasurementEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := MeasureRobust(ctx, small); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
