package runlog

import (
	"reflect"
	"testing"

	"github.com/entrain-network/entrain/coordinator/score"
)

// Of windows and scores only changes are written: the validators if one changed, and a settled
// period once.
func TestOnlyChangesOfWindowsAreWritten(t *testing.T) {
	one := &Windows{Whole: true, SeatsTold: true, WindowsHead: WindowsHead{Buckets: true, Window: 7}, Commits: []Commits{{7, 2}},
		Validators: []score.Validator{{Trust: 3}}, Period: &score.Scores{Period: 3}}
	same := *one
	if got := same.since(one); got != nil {
		t.Errorf("nothing changed, but told is %+v", got)
	}
	two := *one
	two.Commits = []Commits{{7, 3}}
	want := &Windows{WindowsHead: two.WindowsHead, Commits: two.Commits}
	if got := two.since(one); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	two.Validators, two.Period = []score.Validator{{Trust: 4}}, &score.Scores{Period: 4}
	if got := two.since(one); !got.SeatsTold || len(got.Validators) != 1 || got.Period.Period != 4 {
		t.Errorf("got %+v", got)
	}
}
