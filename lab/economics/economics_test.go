package economics

import (
	"math"
	"testing"

	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/wire"
)

func near(got, want, tolerance float64) bool {
	return math.Abs(got-want) <= tolerance*max(1, math.Abs(want))
}

func TestStakeAgainstKnownNumbers(t *testing.T) {
	for _, c := range []struct {
		game Game
		want float64
	}{
		// S = c/p, with the reward left aside: 200, 100, 50, 20 and 10 times the cost.
		{Game{Check: 0.005, Detect: 1, Saved: 1, Loss: 1}, 200},
		{Game{Check: 0.01, Detect: 1, Saved: 1, Loss: 1}, 100},
		{Game{Check: 0.02, Detect: 1, Saved: 1, Loss: 1}, 50},
		{Game{Check: 0.05, Detect: 1, Saved: 1, Loss: 1}, 20},
		{Game{Check: 0.1, Detect: 1, Saved: 1, Loss: 1}, 10},
		{Game{Check: 0.1, Detect: 1, Saved: 1, Loss: 0.5}, 20},         // half may go to an accomplice
		{Game{Check: 0.1, Detect: 1, Saved: 1, Delay: 5, Loss: 1}, 15}, // five more rounds
		{Game{Check: 0.2, Detect: 0.5, Saved: 1, Loss: 1}, 10},
		{Game{Check: 0.1, Detect: 1, Reward: 1, Saved: 1, Loss: 1}, 9},
		{Game{Check: 0.1, Detect: 1, Reward: 2, Saved: 1, Loss: 1}, 18}, // who could not work gains more than who could
		{Game{Check: 1, Detect: 1, Reward: 1, Saved: 1, Loss: 1}, 0},
		{Game{Check: 1, Detect: 1, Reward: 3, Saved: 1, Loss: 1}, 0},
	} {
		if got := c.game.Stake(); !near(got, c.want, 1e-12) {
			t.Errorf("%+v: stake %v, want %v", c.game, got, c.want)
		}
	}
}

func TestAtTheLeastStakeNobodyGains(t *testing.T) {
	chance := prng.New(wire.Sum("entrain/test/economics"), "games")
	unit := func() float64 { return float64(1+chance.Uint64n(1000)) / 1000 }
	for range 10_000 {
		g := Game{Check: unit(), Detect: unit(), Reward: 100 * unit(), Saved: 100 * unit(), Delay: float64(chance.Uint64n(20)), Loss: unit()}
		if err := g.Fault(); err != nil {
			t.Fatal(err)
		}
		s := g.Stake()
		slack := 1e-9 * (1 + g.Rounds()*(g.Saved+g.Reward))
		if g.Gain(s) > slack || g.IdleGain(s) > slack {
			t.Fatalf("%+v: at the stake of %v a cheat gains %v or %v", g, s, g.Gain(s), g.IdleGain(s))
		}
		if s > 0 && max(g.Gain(0.99*s), g.IdleGain(0.99*s)) <= 0 {
			t.Fatalf("%+v: less stake than %v would do", g, s)
		}
	}
}

// play plays the game once, and returns the rounds in which the cheat cheated, and when it was found out, counted from 1.
func play(g Game, chance *prng.Source) (cheated, found float64) {
	const whole = 1 << 53
	for n := 1.0; ; n++ {
		if float64(chance.Uint64n(whole))/whole < g.Check && float64(chance.Uint64n(whole))/whole < g.Detect {
			return n + g.Delay, n
		}
	}
}

// TestFormulasAgainstPlays plays each game many times, and compares the averages with what the formulas say.
func TestFormulasAgainstPlays(t *testing.T) {
	const plays = 100_000
	for i, g := range []Game{
		{Check: 0.05, Detect: 1, Reward: 10, Saved: 8, Loss: 0.5},
		{Check: 0.2, Detect: 0.9, Reward: 3, Saved: 4, Delay: 6, Loss: 1},
		{Check: 0.5, Detect: 0.5, Reward: 1, Saved: 1, Delay: 1, Loss: 0.25},
	} {
		chance := prng.New(wire.Sum("entrain/test/economics", []byte{byte(i)}), "plays")
		stake := 0.7 * g.Stake()
		gain, idle, rounds := 0.0, 0.0, 0.0
		within := make([]float64, 61) // plays that were found out by that round
		for range plays {
			cheated, found := play(g, &chance)
			paid := g.Reward * (cheated - 1) // all rounds but the one that was found out
			honest := g.Reward*cheated - g.Saved*cheated
			gain += paid - g.Loss*stake - honest
			idle += paid - g.Loss*stake
			rounds += cheated
			for n := int(found); n < len(within); n++ {
				within[n]++
			}
		}
		// The deviation of the mean number of rounds is sqrt(1-q)/q over the root of the plays; five of them are allowed.
		q := g.Caught()
		slack := 5 * math.Sqrt(1-q) / q / math.Sqrt(plays)
		if got := rounds / plays; math.Abs(got-g.Rounds()) > slack {
			t.Errorf("%+v: cheats in %v rounds, want %v", g, got, g.Rounds())
		}
		if got := gain / plays; math.Abs(got-g.Gain(stake)) > slack*g.Saved {
			t.Errorf("%+v: gains %v, want %v", g, got, g.Gain(stake))
		}
		if got := idle / plays; math.Abs(got-g.IdleGain(stake)) > slack*g.Reward {
			t.Errorf("%+v: gains %v without work, want %v", g, got, g.IdleGain(stake))
		}
		for n, k := range within {
			p := g.Detected(float64(n))
			if math.Abs(k/plays-p) > 5*math.Sqrt(p*(1-p)/plays)+1e-12 {
				t.Errorf("%+v: found out within %d rounds in %v of the plays, want %v", g, n, k/plays, p)
			}
		}
	}
}

func TestRoundsUntilDetection(t *testing.T) {
	for _, c := range []struct {
		check, p, want float64
	}{
		{0.05, 0.5, 14}, {0.05, 0.95, 59}, {0.05, 0.99, 90}, {0.01, 0.99, 459}, {1, 0.99, 1}, {0.5, 0.5, 1}, {0.5, 0.75, 2}, {0.5, 0.875, 3}, {1e-9, 0.5, 693147181},
	} {
		g := Game{Check: c.check, Detect: 1, Loss: 1}
		got := g.RoundsUntil(c.p)
		if got != c.want || g.Detected(got) < c.p || got > 1 && g.Detected(got-1) >= c.p {
			t.Errorf("checked with %v: found out with %v within %v rounds, want %v", c.check, c.p, got, c.want)
		}
	}
	if d := (Game{Check: 0.05, Detect: 1}).Detected(10); !near(d, 1-math.Pow(0.95, 10), 1e-12) {
		t.Errorf("ten rounds: %v", d)
	}
	if d := (Game{Check: 1e-12, Detect: 1}).Detected(10); !near(d*1e11, 1, 1e-9) {
		t.Errorf("a small probability of %v", d)
	}
}

func TestGamesThatAreNone(t *testing.T) {
	good := Game{Check: 0.5, Detect: 1, Reward: 1, Saved: 1, Loss: 1}
	if err := good.Fault(); err != nil {
		t.Error(err)
	}
	for _, change := range []func(*Game){
		func(g *Game) { g.Check = 0 }, func(g *Game) { g.Check = 1.1 }, func(g *Game) { g.Detect = -1 }, func(g *Game) { g.Loss = math.NaN() },
		func(g *Game) { g.Reward = -1 }, func(g *Game) { g.Saved = math.Inf(1) }, func(g *Game) { g.Delay = math.NaN() },
	} {
		g := good
		change(&g)
		if g.Fault() == nil {
			t.Errorf("%+v is accepted", g)
		}
	}
}
