package campaign

import (
	"context"
	"fmt"
	"time"

	bucketmem "github.com/entrain-network/entrain/bucket/mem"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/lab/adversary"
	"github.com/entrain-network/entrain/lab/market"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/wire"
)

// Buckets is the configuration of a trial of a run that exchanges by buckets.
type Buckets struct {
	Seed    uint64
	Miners  []string // their kinds; "" is honest
	Judges  []string // the validators' kinds; "" is honest
	Steps   uint32
	Period  uint32        // windows of a scoring period
	Crashes int           // validators that crash and come back
	Fail    int           // operations of the first miner's bucket that fail, per thousand
	Lag     time.Duration // until an object of the second miner's bucket is seen
	// Verification is the part in per cent of the results whose gradients other miners recompute.
	Verification uint8
	Down         int  // honest miners that crash and come back
	Pooled       bool // the first miner's stake is a pool's
}

func (d *draws) buckets(seed uint64) Buckets {
	b := Buckets{Seed: seed, Steps: uint32(d.between(10, 28)), Period: uint32(d.between(3, 8))}
	miners := d.between(3, 8)
	kinds, judges := adversary.Miners(), adversary.Judges()
	cheats := miners * d.between(0, gangPercentMax) / 100
	for i := range miners {
		kind := ""
		if i >= miners-cheats {
			kind = kinds[d.between(0, len(kinds)-1)].Name
		}
		b.Miners = append(b.Miners, kind)
	}
	validators := d.between(1, 4)
	liars := d.between(0, (validators-1)/2) // less than half of the weight
	for i := range validators {
		kind := ""
		if i >= validators-liars {
			kind = judges[d.between(0, len(judges)-1)].Name
		}
		b.Judges = append(b.Judges, kind)
	}
	if d.between(0, 2) > 0 {
		b.Crashes = d.between(0, 2)
		b.Fail = d.between(0, 100)
		b.Lag = d.millis(0, 2000)
	}
	b.Verification = []uint8{0, 5, 25, 100}[d.between(0, 3)]
	if d.between(0, 1) > 0 {
		b.Down = d.between(0, (miners-cheats)/2)
	}
	b.Pooled = b.Verification > 0 && d.between(0, 1) > 0
	return b
}

func (b Buckets) faults() int {
	n := b.Crashes + b.Down
	for _, kind := range append(append([]string(nil), b.Miners...), b.Judges...) {
		if kind != "" {
			n++
		}
	}
	if b.Fail > 0 {
		n++
	}
	if b.Lag > 0 {
		n++
	}
	return n
}

// simulate runs the market to its end, and checks after every event that tokens and points add up,
// that no honest miner is convicted, or pays a fee while it is well, that honest miners hold the
// same parameters, and that what is settled stays; and in the end that no cheat earned more than
// the best of the honest.
func (b Buckets) simulate(ctx context.Context) (Report, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w := watch{b: b, params: map[coordinator.Round]wire.Hash{}}
	cfg := market.Config{Steps: b.Steps, Period: b.Period, Verification: b.Verification, Seed: wire.Sum("entrain/campaign/market", wire.AppendU64(nil, b.Seed))}
	cfg.Disks, cfg.Pooled = b.Down > 0, b.Pooled
	for _, kind := range b.Miners {
		cfg.Miners = append(cfg.Miners, market.Miner{Kind: kind})
		if kind == "" {
			cfg.Start++ // a cheat that was ejected must not keep the others waiting
		}
	}
	for _, kind := range b.Judges {
		j := market.Judge{}
		if k, ok := adversary.FindJudge(kind); ok {
			j.Say = k.Say
		}
		cfg.Validators = append(cfg.Validators, j)
	}
	cfg.Inspect = func(m *market.Market) {
		if text := w.inspect(m); text != "" {
			cancel(fmt.Errorf("seed %d, window %d: %s", b.Seed, m.State().Window(), text))
		}
	}
	m, err := market.New(ctx, cfg)
	if err != nil {
		return Report{}, err
	}
	defer m.Close()
	start := m.Clock.Now()
	b.disturb(m)
	r, err := m.Run()
	report := Report{Rounds: uint32(m.State().Round()), Virtual: m.Clock.Now().Sub(start)}
	if cause := context.Cause(ctx); cause != nil && ctx.Err() != nil {
		return report, cause
	}
	if err != nil {
		return report, fmt.Errorf("seed %d: %w", b.Seed, err)
	}
	return report, b.fair(r)
}

// disturb schedules the faults.
func (b Buckets) disturb(m *market.Market) {
	d := draws{prng.New(wire.Sum("entrain/campaign", wire.AppendU64(nil, b.Seed)), "faults")}
	m.Buckets.Break(market.Place(0), bucketmem.Faults{Fail: b.Fail})
	if len(b.Miners) > 1 {
		m.Buckets.Break(market.Place(1), bucketmem.Faults{Appear: b.Lag})
	}
	for k := range min(b.Crashes, len(b.Judges)) {
		down := d.millis(10_000, 100_000)
		m.Clock.After(down, func() { m.Crash(k) })
		m.Clock.After(down+d.millis(1000, 30_000), func() {
			if err := m.Revive(k); err != nil {
				panic(err)
			}
		})
	}
	for i := range min(b.Down, b.honests()) {
		down := d.millis(10_000, 100_000)
		m.Clock.After(down, func() { m.CrashMiner(i) })
		m.Clock.After(down+d.millis(500, downMax), func() {
			if err := m.ReviveMiner(i); err != nil {
				panic(err)
			}
		})
	}
}

// downMax is for how many milliseconds a miner is down at most: shorter than a move of a dispute,
// so that no honest miner loses one by silence.
const downMax = 5000

// honests returns the number of honest miners, which are the first.
func (b Buckets) honests() (n int) {
	for _, kind := range b.Miners {
		if kind == "" {
			n++
		}
	}
	return n
}

// unwell reports whether a miner crashes, or has a bucket that fails or is slow.
func (b Buckets) unwell(miner int) bool {
	return miner < b.Down || miner == 0 && b.Fail > 0 || miner == 1 && b.Lag > 0
}

// fair reports a cheat that earned more than the best of the honest, where nothing failed.
func (b Buckets) fair(r market.Result) error {
	best := uint64(0)
	for _, e := range r.Earners {
		if e.Kind == "" {
			best = max(best, e.Reward)
		}
	}
	for i, e := range r.Earners {
		if e.Kind != "" && e.Reward*20 > best*21 && b.Fail == 0 && b.Lag == 0 && b.Down == 0 {
			return fmt.Errorf("seed %d: miner %d, a %s, earned %d, the best of the honest %d", b.Seed, i, e.Kind, e.Reward, best)
		}
	}
	return nil
}

// watch is what was seen of a market and must stay true.
type watch struct {
	b       Buckets
	height  uint64
	params  map[coordinator.Round]wire.Hash
	settled uint32
	given   uint64
}

// inspect returns what is wrong, or "".
func (w *watch) inspect(m *market.Market) string {
	s := m.State()
	for i, kind := range w.b.Miners {
		round, hash, ok := m.Params(i)
		if kind != "" || !ok || round == 0 || s.Rollbacks() > 0 {
			continue
		}
		if first, seen := w.params[round]; seen && first != hash {
			return fmt.Sprintf("miner %d holds %s at window %d, others %s", i, hash, round, first)
		}
		w.params[round] = hash
		delete(w.params, round-min(round, 8))
	}
	if h := m.Chain.Host().Height(); h == w.height {
		return ""
	} else {
		w.height = h
	}
	tokens, points := s.Treasury(), s.PointsRetired()
	for i := range s.Count() {
		v := s.Member(i)
		tokens += v.Stake + v.Balance + v.Unvested
		points += v.Points
	}
	for _, v := range append(s.Validators(), s.Benched()...) {
		tokens += v.Stake + v.Balance
	}
	given, taken := s.Emitted()
	last, _ := s.LastScores()
	switch {
	case tokens != s.Escrow():
		return fmt.Sprintf("members, validators and treasury have %d tokens, the escrow is %d", tokens, s.Escrow())
	case points != s.PointsTotal():
		return fmt.Sprintf("members and retired have %d points of %d", points, s.PointsTotal())
	case given < w.given || last.Period < w.settled:
		return fmt.Sprintf("%d tokens were given and %d periods settled, now %d and %d", w.given, w.settled, given, last.Period)
	case given > taken+uint64(last.Period)*market.Emission:
		return fmt.Sprintf("%d tokens were given for %d periods", given-taken, last.Period)
	}
	w.given, w.settled = given, last.Period
	for _, v := range s.Convictions() {
		if i := w.honest(v.Key); i >= 0 && (!v.Offence.Lesser() || !w.b.unwell(i)) {
			return fmt.Sprintf("honest miner %d is convicted of %v in window %d", i, v.Offence, v.Round)
		}
	}
	return ""
}

// honest returns the honest miner that has a key, -1 if none has.
func (w *watch) honest(k key.Public) int {
	for i, kind := range w.b.Miners {
		if kind == "" && market.MinerKey(i).Public() == k {
			return i
		}
	}
	return -1
}

// buckets lifts a simplification of a run by buckets.
func buckets(simplify func(Buckets) (Buckets, bool)) func(Config) (Config, bool) {
	return func(c Config) (Config, bool) {
		if c.Buckets == nil {
			return c, false
		}
		smaller, ok := simplify(*c.Buckets)
		return Config{Buckets: &smaller}, ok
	}
}

// shorter removes the last of a list of at least two.
func shorter(field func(*Buckets) *[]string) func(Buckets) (Buckets, bool) {
	return func(b Buckets) (Buckets, bool) {
		list := *field(&b)
		if len(list) < 2 {
			return b, false
		}
		*field(&b) = list[:len(list)-1]
		return b, true
	}
}
