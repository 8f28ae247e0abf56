package market_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/audit"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/lab/market"
	"github.com/entrain-network/entrain/participant"
	"github.com/entrain-network/entrain/report"
	"github.com/entrain-network/entrain/view"
)

// TestScoresAreExplained runs miners and validators, one of the miners a cheat, and explains what came of a good one and of the cheat.
func TestScoresAreExplained(t *testing.T) {
	m, err := market.New(t.Context(), market.Config{
		Miners: []market.Miner{{}, {}, {}, {Kind: "half-data"}}, Validators: []market.Judge{{}, {}}, Steps: 24,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var p uint32
	if !m.Until(1<<40, func() bool { last, ok := m.State().LastScores(); p = last.Period; return ok && p == 2 }) {
		t.Fatal("no period was settled")
	}
	s := m.State()
	dir := t.TempDir()
	lines := []byte{}
	for _, x := range m.Scored(0) {
		line, err := json.Marshal(participant.Scored{Event: "scored", Scored: x})
		if err != nil {
			t.Fatal(err)
		}
		lines = append(append(lines, line...), '\n')
	}
	lines = append(lines, `{"event":"scored","window":1`...) // as a crash leaves it
	if err := os.WriteFile(filepath.Join(dir, participant.ScoreLogName), lines, 0o600); err != nil {
		t.Fatal(err)
	}

	cheat, ok := s.Find(market.MinerKey(3).Public())
	good, ok2 := s.Find(market.MinerKey(0).Public())
	if !ok || !ok2 {
		t.Fatal("a miner is not a member")
	}
	period, err := view.FindPeriod(s, p)
	if err != nil {
		t.Fatal(err)
	}
	for member, want := range map[coordinator.Member][]string{
		good:  {"right", "fair", "weighted median", "Its weight is its score times its sequences", "20 % is the validators'"},
		cheat: {"wrong", "wrong-work", "-1.000", "A score of 0 or less is paid nothing"},
	} {
		if got, err := audit.FindMember(s, s.Key(member).String()[:12]); err != nil || got != member {
			t.Fatalf("member %d is found as %d, %v", member, got, err)
		}
		e := period.Explain(s, member)
		if e.Seen, err = participant.ReadScoreLog(dir, s.Key(member), e.First, e.Last); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := report.Explain(&out, e); err != nil {
			t.Fatal(err)
		}
		for _, text := range want {
			if !strings.Contains(out.String(), text) {
				t.Errorf("member %d: %q is not in\n%s", member, text, out.String())
			}
		}
		if len(e.Validators) != 2 || len(e.Validators[0].Said) != 1 || len(e.Seen) == 0 || len(e.Members) != 1 || e.Members[0].Reward == 0 != (member == cheat) {
			t.Errorf("member %d: %+v", member, e)
		}
		b, err := json.Marshal(e)
		var back view.Explanation
		if err != nil || json.Unmarshal(b, &back) != nil || len(back.Seen) != len(e.Seen) || back.Seen[0].Verdict != e.Seen[0].Verdict || back.Last != e.Last {
			t.Errorf("member %d does not come back from JSON: %s", member, b)
		}
	}
	var table bytes.Buffer
	if err := report.Period(&table, *period); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(table.String(), "\n"); n < 9 {
		t.Errorf("a table of four members and two validators:\n%s", table.String())
	}
	if _, err := audit.FindMember(s, "99"); err == nil {
		t.Error("there is a member 99")
	}
	if _, err := participant.ReadScoreLog(t.TempDir(), s.Key(good), 0, 99); err == nil {
		t.Error("an empty directory has a log of scores")
	}
	if _, err := view.FindPeriod(s, 77); err == nil {
		t.Error("there is a period 77")
	}
}
