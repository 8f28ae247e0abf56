package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/bench"
)

func TestBenchDisputePlaysDisputes(t *testing.T) {
	s := newShell(t)
	var r bench.Dispute
	out := s.ok("bench", "dispute", "nano", "--sequences", "1", "--sequence", "8", "--threads", "2", "--json")
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

func TestBenchDisputeRefusesWhatCannotBe(t *testing.T) {
	s := newShell(t)
	s.fails([]string{"bench", "dispute"}, "accepts 1 arg")
	s.fails([]string{"bench", "dispute", "huge"}, `"huge"`, "124m")
	s.fails([]string{"bench", "dispute", "nano", "--threads", "0"}, "--threads 0")
	s.fails([]string{"bench", "dispute", "nano", "--sequences", "0"}, "--sequences 0")
	s.fails([]string{"bench", "dispute", "nano", "--sequence", "4096"}, "4096", "128")
}
