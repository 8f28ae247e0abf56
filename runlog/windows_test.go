package runlog

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func anyWindows(t *rapid.T) *Windows {
	u32, u64, yes, i16 := rapid.Uint32(), rapid.Uint64(), rapid.Bool(), rapid.Int16()
	w := &Windows{Whole: yes.Draw(t, "whole"), SeatsTold: yes.Draw(t, "seats"), WindowsHead: WindowsHead{Buckets: yes.Draw(t, "buckets"), Window: u32.Draw(t, "window"),
		DeadlineHeight: u64.Draw(t, "height"), Stage: rapid.Uint8().Draw(t, "stage"), Given: u64.Draw(t, "given"), ScoreWindows: u32.Draw(t, "windows")}}
	for i := range rapid.Uint32Range(0, 3).Draw(t, "miners") {
		w.Miners = append(w.Miners, Miner{Index: i, Since: u32.Draw(t, "since"), Score: i16.Draw(t, "score"), Scored: yes.Draw(t, "scored"), Earned: u64.Draw(t, "earned")})
		w.Commits = append(w.Commits, Commits{u32.Draw(t, "round"), i})
	}
	for range rapid.IntRange(0, 2).Draw(t, "validators") {
		if w.SeatsTold {
			w.Validators = append(w.Validators, Seat{Seat: u32.Draw(t, "seat"), Key: anyText.Draw(t, "key"), Stake: u64.Draw(t, "stake"), Trust: 7})
		}
	}
	if yes.Draw(t, "settled") {
		w.Period = &Period{Number: u32.Draw(t, "period"), Last: 9}
		for i := range rapid.Uint32Range(0, 3).Draw(t, "scores") {
			w.Period.Members = append(w.Period.Members, MemberScore{Member: i, Scored: yes.Draw(t, "scored"), Score: i16.Draw(t, "score"), Weight: u32.Draw(t, "weight"), Reward: u64.Draw(t, "reward")})
			w.Period.Validators = append(w.Period.Validators, SeatScores{Seat: i, Key: anyText.Draw(t, "key"), Agreement: rapid.Uint16().Draw(t, "agreement"), Revealed: true,
				Said: []Said{{i, i16.Draw(t, "said")}, {9, -32767}}})
		}
	}
	return w
}

func TestWindowsReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var in, out codec
		r := Record{Time: time.UnixMicro(9).UTC(), Standing: anyStanding(t)}
		if rapid.Bool().Draw(t, "both") {
			r.Standing.Trust = anyTrust(t)
		}
		r.Standing.Windows = anyWindows(t)
		b := in.append(nil, r)
		got, err := out.parse(b)
		if err != nil || !reflect.DeepEqual(got, r) {
			t.Fatalf("wrote %+v\nread  %+v, %v", r.Standing.Windows, got.Standing, err)
		}
		for n := range b {
			if _, err := new(codec).parse(b[:n]); err == nil {
				t.Fatalf("%d of %d bytes are a record", n, len(b))
			}
		}
	})
}

func FuzzParseWindows(f *testing.F) {
	var c codec
	f.Add(c.append(nil, Record{Standing: &Standing{Head: Head{Run: "r"}, Windows: &Windows{Whole: true, SeatsTold: true, Commits: []Commits{{3, 2}},
		Miners: []Miner{{Index: 1, Score: -5, Scored: true}}, Validators: []Seat{{Seat: 1, Key: "k"}},
		Period: &Period{Number: 1, Members: []MemberScore{{Member: 1}}, Validators: []SeatScores{{Seat: 1, Said: []Said{{1, 8}}}}}}}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		var in, out codec
		r, err := in.parse(b)
		if err == nil && !bytes.Equal(out.append(nil, r), b) {
			t.Errorf("%x parses but is written otherwise", b)
		}
	})
}

// Of windows and scores only what changed is written: the rows of those whose scores did, the validators if any of them did, and a settled
// period once.
func TestOnlyChangesOfWindowsAreWritten(t *testing.T) {
	one := &Windows{Whole: true, SeatsTold: true, WindowsHead: WindowsHead{Buckets: true, Window: 7}, Commits: []Commits{{7, 2}},
		Miners: []Miner{{Index: 0, Earned: 4}, {Index: 1, Earned: 9}}, Validators: []Seat{{Key: "k", Trust: 3}}, Period: &Period{Number: 3}}
	same := *one
	if got := same.since(one); got != nil {
		t.Errorf("nothing changed, but told is %+v", got)
	}
	two := *one
	two.Miners = []Miner{{Index: 0, Earned: 4}, {Index: 1, Earned: 12}}
	two.Commits = []Commits{{7, 3}}
	want := &Windows{WindowsHead: two.WindowsHead, Commits: two.Commits, Miners: two.Miners[1:]}
	if got := two.since(one); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	two.Validators, two.Period = []Seat{{Key: "k", Trust: 4}}, &Period{Number: 4}
	if got := two.since(one); !got.SeatsTold || len(got.Validators) != 1 || got.Period.Number != 4 {
		t.Errorf("got %+v", got)
	}
}
