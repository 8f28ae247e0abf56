package runlog

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func anyTrust(t *rapid.T) *Trust {
	u32, u64, yes := rapid.Uint32(), rapid.Uint64(), rapid.Bool()
	v := &Trust{Whole: yes.Draw(t, "whole"), TrustHead: TrustHead{Percent: rapid.Uint8().Draw(t, "percent"), Stake: u64.Draw(t, "stake"),
		Treasury: u64.Draw(t, "treasury"), Drawn: u32.Draw(t, "drawn"), Convicted: u32.Draw(t, "convicted")}}
	for i := range rapid.Uint32Range(0, 3).Draw(t, "accounts") {
		v.Accounts = append(v.Accounts, Account{Index: i, Stake: u64.Draw(t, "at stake"), Doubt: rapid.Uint8().Draw(t, "doubt"), Passed: u32.Draw(t, "passed")})
	}
	for range rapid.IntRange(0, 3).Draw(t, "checks") {
		v.Checks = append(v.Checks, Check{Share: Share{u32.Draw(t, "round"), u32.Draw(t, "member")}, Verifier: u32.Draw(t, "verifier"), Disputed: yes.Draw(t, "disputed")})
		v.Closed = append(v.Closed, Share{u32.Draw(t, "round"), 7})
	}
	for range rapid.IntRange(0, 3).Draw(t, "disputes") {
		d := Dispute{ID: u32.Draw(t, "id"), Share: Share{5, 2}, Accuser: NoMember, Stage: rapid.SampledFrom(append(stages, "resting")).Draw(t, "stage"),
			Level: rapid.SampledFrom(levels).Draw(t, "level"), Traces: [2]string{anyText.Draw(t, "trace"), ""}, Revealed: [2]bool{false, true}, Depth: 3}
		for range rapid.IntRange(0, votesMax).Draw(t, "votes") {
			d.Votes = append(d.Votes, Vote{Member: u32.Draw(t, "voter"), Vote: 2, Trace: anyText.Draw(t, "trace")})
		}
		v.Disputes, v.Ended = append(v.Disputes, d), append(v.Ended, d.ID)
	}
	for range rapid.IntRange(0, 2).Draw(t, "convictions") {
		v.Convictions = append(v.Convictions, Conviction{Number: u32.Draw(t, "number"), Key: anyText.Draw(t, "key"), Offence: rapid.SampledFrom(offences).Draw(t, "offence"),
			Lesser: yes.Draw(t, "lesser"), By: NoMember, Slashed: u64.Draw(t, "slashed"), Results: 4})
	}
	return v
}

func TestTrustReadsAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var in, out codec
		r := Record{Time: time.UnixMicro(9).UTC(), Standing: anyStanding(t)}
		r.Standing.Trust = anyTrust(t)
		b := in.append(nil, r)
		got, err := out.parse(b)
		if err != nil || !reflect.DeepEqual(got, r) {
			t.Fatalf("wrote %+v\nread  %+v, %v", r.Standing.Trust, got.Standing, err)
		}
		for n := range b {
			if _, err := new(codec).parse(b[:n]); err == nil {
				t.Fatalf("%d of %d bytes are a record", n, len(b))
			}
		}
	})
}

func FuzzParseTrust(f *testing.F) {
	var c codec
	f.Add(c.append(nil, Record{Standing: &Standing{Head: Head{Run: "r"}, Trust: &Trust{Whole: true, Accounts: []Account{{Index: 1, Stake: 5}},
		Checks: []Check{{Share: Share{3, 1}, Verifier: 2}}, Closed: []Share{{2, 1}}, Ended: []uint32{4},
		Disputes:    []Dispute{{ID: 5, Stage: "evidence", Level: "tiles", Traces: [2]string{strings.Repeat("ab", 32), ""}, Votes: []Vote{{Member: 1, Vote: 2}}}},
		Convictions: []Conviction{{Number: 1, Key: strings.Repeat("cd", 32), Offence: "wrong result", By: NoMember}}}}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		var in, out codec
		r, err := in.parse(b)
		if err != nil {
			return
		}
		if again := out.append(nil, r); !bytes.Equal(again, b) {
			t.Errorf("%x parses but is written as %x", b, again)
		}
	})
}

// What changed between two looks, added to the first, is the second.
func TestTrustTellsWhatChanged(t *testing.T) {
	check, dispute := Check{Share: Share{3, 1}, Verifier: 2}, Dispute{ID: 1, Share: Share{3, 1}, Stage: "defending"}
	one := &Trust{Whole: true, TrustHead: TrustHead{Percent: 5, Drawn: 2}, Accounts: []Account{{Index: 0, Stake: 5}, {Index: 1, Stake: 5}},
		Checks: []Check{check, {Share: Share{3, 4}}}}
	disputed := check
	disputed.Disputed = true
	two := &Trust{Whole: true, TrustHead: TrustHead{Percent: 5, Drawn: 2, Passed: 1, Disputed: 1}, Accounts: []Account{{Index: 0, Stake: 5}, {Index: 1, Stake: 5, Doubt: 7}},
		Checks: []Check{disputed}, Disputes: []Dispute{dispute}}
	three := &Trust{Whole: true, TrustHead: TrustHead{Percent: 5, Drawn: 2, Passed: 1, Disputed: 1, Convicted: 1}, Accounts: []Account{{Index: 0, Stake: 7}, {Index: 1}},
		Convictions: []Conviction{{Number: 1, Member: 1}}}
	if got := one.since(nil); got != one {
		t.Errorf("the first look is %+v", got)
	}
	if got := two.since(two); got != nil {
		t.Errorf("nothing changed, and it says %+v", got)
	}
	if got, want := two.since(one), (&Trust{TrustHead: two.TrustHead, Accounts: two.Accounts[1:], Checks: two.Checks, Closed: []Share{{3, 4}}, Disputes: two.Disputes}); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got, want := three.since(two), (&Trust{TrustHead: three.TrustHead, Accounts: three.Accounts, Closed: []Share{{3, 1}}, Ended: []uint32{1}, Convictions: three.Convictions}); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}
