package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/lab/study"
)

func TestDisputePlaysDisputes(t *testing.T) {
	var r study.Dispute
	out := ok(t, "dispute", "nano", "--sequences", "1", "--sequence", "8", "--threads", "2", "--json")
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	if r.Model != "nano" || r.Params != 988544 || r.Operations < 100 || !(r.Step > 0 && r.Verify > 0 && r.Trace > 0) || len(r.Overhead) != 3 || len(r.Games) < 7 {
		t.Errorf("result is %+v", r)
	}
	for _, g := range r.Games {
		if g.Convicted != "accuser" || g.Messages < 3 || g.Evidence == 0 || !(g.Referee > 0) {
			t.Errorf("a dispute went so: %+v", g)
		}
	}
	var text strings.Builder
	if err := writeDispute(&text, r); err != nil || !strings.Contains(text.String(), "988,544 parameters") || strings.Count(text.String(), " accuser ") != len(r.Games) {
		t.Errorf("for people: %v\n%s", err, text.String())
	}
}

func TestDisputeRefusesWhatCannotBe(t *testing.T) {
	fails(t, []string{"dispute"}, "accepts 1 arg")
	fails(t, []string{"dispute", "huge"}, `"huge"`, "124m")
	fails(t, []string{"dispute", "nano", "--threads", "0"}, "--threads 0")
	fails(t, []string{"dispute", "nano", "--sequences", "0"}, "--sequences 0")
	fails(t, []string{"dispute", "nano", "--sequence", "4096"}, "4096", "128")
}
