package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	simmarket "github.com/entrain-network/entrain/lab/market"
	"github.com/entrain-network/entrain/participant"
)

// TestScoresAreExplained runs miners and validators, one of the miners a cheat, and explains what came of a good one and of the cheat.
func TestScoresAreExplained(t *testing.T) {
	m, err := simmarket.New(t.Context(), simmarket.Config{
		Miners: []simmarket.Miner{{}, {}, {}, {Kind: "half-data"}}, Validators: []simmarket.Judge{{}, {}}, Steps: 24,
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
	log, err := participant.OpenScoreLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range m.Scored(0) {
		if err := log.Add(participant.Scored{Event: "scored", Scored: e}); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	cut, err := os.OpenFile(filepath.Join(dir, participant.ScoreLogName), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cut.WriteString(`{"event":"scored","window":1`); err != nil { // as a crash leaves it
		t.Fatal(err)
	}
	cut.Close()

	cheat, ok := s.Find(simmarket.MinerKey(3).Public())
	good, ok2 := s.Find(simmarket.MinerKey(0).Public())
	if !ok || !ok2 {
		t.Fatal("a miner is no member")
	}
	scores, err := choosePeriod(s, scoreOptions{period: p})
	if err != nil {
		t.Fatal(err)
	}
	for member, want := range map[uint32][]string{
		good:  {"right", "fair", "Their median by weight", "Its weight is that times its sequences", "20 % is the validators'"},
		cheat: {"wrong", "wrong-work", "-1.000", "A score of 0 or less is paid nothing"},
	} {
		e, err := explain(s, scores, scoreOptions{explain: s.Key(member).String()[:12], log: dir})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := e.write(&out); err != nil {
			t.Fatal(err)
		}
		for _, text := range want {
			if !strings.Contains(out.String(), text) {
				t.Errorf("member %d: %q is not in\n%s", member, text, out.String())
			}
		}
		if len(e.Opinions) != 2 || len(e.Seen) == 0 || !e.Worked || e.Member.Reward == 0 != (member == cheat) {
			t.Errorf("member %d: %+v", member, e)
		}
		b, err := json.Marshal(e)
		var back explanation
		if err != nil || json.Unmarshal(b, &back) != nil || len(back.Seen) != len(e.Seen) || back.Seen[0].Verdict != e.Seen[0].Verdict {
			t.Errorf("member %d does not come back from JSON: %s", member, b)
		}
	}
	var table bytes.Buffer
	if err := newPeriodReport(s, scores).write(&table); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(table.String(), "\n"); n < 9 {
		t.Errorf("a table of four members and two validators:\n%s", table.String())
	}
	for _, wrong := range []scoreOptions{{explain: "99"}, {explain: "0", log: t.TempDir()}} {
		if _, err := explain(s, scores, wrong); err == nil {
			t.Errorf("%+v is explained", wrong)
		}
	}
	if _, err := choosePeriod(s, scoreOptions{period: 77}); err == nil {
		t.Error("there is a period 77")
	}
}

func TestValidateRefusesWhatItCannotDo(t *testing.T) {
	for _, c := range []struct {
		o    validateOptions
		want string
	}{
		{validateOptions{ValidatorOptions: participant.ValidatorOptions{Workers: 0, Stake: 1}}, "--workers"},
		{validateOptions{ValidatorOptions: participant.ValidatorOptions{Workers: 1}}, "--stake"},
		{validateOptions{ValidatorOptions: participant.ValidatorOptions{Workers: 1, Stake: 1, Pool: "No Pool"}}, "--pool"},
	} {
		if err := c.o.check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.o, err)
		}
	}
	if _, err := (validateOptions{payee: "me"}).decide(); err == nil {
		t.Error("payee \"me\" is a key")
	}
}

func TestTheLogOfScoresTurns(t *testing.T) {
	dir := t.TempDir()
	l, err := participant.OpenScoreLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	l.Size = participant.ScoreLogMost + 1
	for range 2 {
		if err := l.Add(struct{}{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{participant.ScoreLogName: "{}\n{}\n", participant.ScoreLogName + ".1": ""} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != want {
			t.Errorf("%s holds %q, %v", name, b, err)
		}
	}
}
