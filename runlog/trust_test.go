package runlog

import (
	"reflect"
	"testing"

	"github.com/entrain-network/entrain/coordinator/dispute"
)

// What changed between two looks, added to the first, is the second.
func TestTrustTellsWhatChanged(t *testing.T) {
	check, open := dispute.Check{Round: 3, Member: 1, Verifier: 2}, dispute.Dispute{ID: 1, Accused: 1, Stage: dispute.StageDefending}
	one := &Trust{Whole: true, TrustHead: TrustHead{Percent: 5, Drawn: 2},
		Checks: []dispute.Check{check, {Round: 3, Member: 4}}}
	disputed := check
	disputed.Disputed = true
	two := &Trust{Whole: true, TrustHead: TrustHead{Percent: 5, Drawn: 2, Passed: 1, Disputed: 1},
		Checks: []dispute.Check{disputed}, Disputes: []dispute.Dispute{open}}
	three := &Trust{Whole: true, TrustHead: TrustHead{Percent: 5, Drawn: 2, Passed: 1, Disputed: 1, Convicted: 1},
		Convictions: []dispute.Conviction{{Number: 1, Member: 1}}}
	if got := one.since(nil); got != one {
		t.Errorf("the first look is %+v", got)
	}
	if got := two.since(two); got != nil {
		t.Errorf("nothing changed, and it says %+v", got)
	}
	if got, want := two.since(one), (&Trust{TrustHead: two.TrustHead, Checks: two.Checks, Closed: []Share{{3, 4}}, Disputes: two.Disputes}); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got, want := three.since(two), (&Trust{TrustHead: three.TrustHead, Closed: []Share{{3, 1}}, Ended: []uint32{1}, Convictions: three.Convictions}); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}
