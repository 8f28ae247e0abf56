package main

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

func TestStakeCalculator(t *testing.T) {
	for args, want := range map[string]stakeReport{
		"--check 5% --reward 10":                                 {Rounds: 22, Work: 420, Idle: 420, Stake: 420},
		"--check 5% --reward 10 --delay 0 --loss 100%":           {Rounds: 20, Work: 190, Idle: 190, Stake: 190},
		"--check 1 --reward 0 --saved 1 --delay 0 --loss 100":    {Rounds: 100, Work: 100, Idle: 0, Stake: 100},
		"--check 10 --detect 50% --reward 2 --saved 1 --delay 0": {Rounds: 20, Work: 36, Idle: 76, Stake: 76},
		"--check 100 --reward 10 --saved 1 --delay 0 --loss 100": {Rounds: 1, Work: 0, Idle: 0, Stake: 0},
		"--check 3 --reward 7 --saved 6 --delay 1 --loss 60":     {Rounds: 1/0.03 + 1, Work: ((1/0.03+1)*6 - 7) / 0.6, Idle: 7 / 0.03 / 0.6, Stake: math.Ceil(7 / 0.03 / 0.6)},
	} {
		var got stakeReport
		if err := json.Unmarshal([]byte(ok(t, append([]string{"stake", "--json"}, strings.Fields(args)...)...)), &got); err != nil {
			t.Fatal(err)
		}
		near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(b)) }
		if !near(got.Rounds, want.Rounds) || !near(got.Work, want.Work) || !near(got.Idle, want.Idle) || got.Stake != want.Stake {
			t.Errorf("%s: got %+v, want %+v", args, got, want)
		}
		for _, d := range got.Detected {
			if p := 1 - math.Pow(1-got.Caught, d.Rounds); math.Abs(d.Probability-p) > 1e-12 {
				t.Errorf("%s: found out within %v rounds with %v, want %v", args, d.Rounds, d.Probability, p)
			}
		}
		for _, u := range got.Until {
			if 1-math.Pow(1-got.Caught, u.Rounds) < u.Probability-1e-12 {
				t.Errorf("%s: %v rounds are too few for %v", args, u.Rounds, u.Probability)
			}
		}
	}
	out := ok(t, "stake", "--check", "5%", "--reward", "10")
	for _, want := range []string{"least stake   420 tokens", "cheats in 22 rounds", "over 99.9999 %", "\n99 %       90\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	fails(t, []string{"stake", "--check", "0"}, "probability of a check")
	fails(t, []string{"stake", "--check", "101%", "--loss", "0", "--delay", "-1"}, "probability of a check", "part of the stake", "delay")
	fails(t, []string{"stake", "--check", "x"}, "not a percentage")
}
