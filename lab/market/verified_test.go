package market

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/entrain-network/entrain/bucket"
	bucketmem "github.com/entrain-network/entrain/bucket/mem"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/lab/adversary"
	"github.com/entrain-network/entrain/node"
	"github.com/entrain-network/entrain/tests/campaign"
	"github.com/entrain-network/entrain/wire"
)

// Attacks on runs of buckets in which miners recompute each other's gradients.

// convicted returns the offences that cost a stake, by miners.
func convicted(m *Market) map[int]dispute.Offence {
	list := map[int]dispute.Offence{}
	for _, c := range m.State().Convictions() {
		for i := range m.cfg.Miners {
			if MinerKey(i).Public() == c.Key && !c.Offence.Lesser() {
				list[i] = c.Offence
			}
		}
	}
	return list
}

// TestCheatsAreConvicted has a cheat of each kind among five honest miners, where a quarter of the
// results are verified. Those whose gradient is not the committed one lose stake and rewards, and
// stay in the model for as long as the draw of checks and a dispute take; no other does.
func TestCheatsAreConvicted(t *testing.T) {
	t.Parallel()
	for _, k := range adversary.Miners() {
		switch k.Name {
		case "copy", "vanish", "stale", "wrong-data", "scale", "sign-flip", "blend", "earlier", "long", "hide":
			continue // they differ from others in what a verifier does not look at
		}
		t.Run(k.Name, func(t *testing.T) {
			m := begin(t, Config{Miners: append(honest(5), Miner{Kind: k.Name}), Validators: []Judge{{}, {}}, Steps: 24, Verification: 25})
			r := finish(t, m)
			got := convicted(m)
			for i, e := range r.Earners[:5] {
				if e.Accepted != 24 || e.Reward == 0 || got[i] != 0 {
					t.Errorf("honest miner %d: %d results accepted, earned %d, %s; notes %q", i, e.Accepted, e.Reward, got[i], tail(m.miners[i].notes))
				}
			}
			if k.Provable() != k.Convicts(got[5]) {
				t.Errorf("convicted of %s", got[5])
			}
			s := m.State()
			at, _ := s.Find(MinerKey(5).Public())
			who, e := s.Member(at), r.Earners[5]
			if k.Checked && (who.Stake != 0 || e.Reward != 0 || who.Balance != 0 || e.Accepted > 16) {
				t.Errorf("it has a stake of %d and earned %d with %d results accepted", who.Stake, e.Reward, e.Accepted)
			}
			t.Logf("%d of %d results accepted, convicted of %s", e.Accepted, r.Windows, got[5])
		})
	}
}

// TestALateMinerIsNotConvicted has a miner show what it committed to when the window is over. It
// is checked for nothing, because nothing of it is accepted.
func TestALateMinerIsNotConvicted(t *testing.T) {
	m := begin(t, Config{Miners: honest(4), Validators: []Judge{{}, {}}, Steps: 16, Verification: 50})
	m.Buckets.Break(Place(3), bucketmem.Faults{Appear: 15 * time.Second})
	unpaid(t, m, finish(t, m))
	if got := convicted(m); len(got) > 0 {
		t.Errorf("convicted were %v", got)
	}
}

// secretive is a bucket whose owner shows its commitments to some members only.
type secretive struct{ bucket.Store }

func (s secretive) Get(ctx context.Context, key string, offset, n int64) ([]byte, bucket.Object, error) {
	if name, err := bucket.ParseName(key); err == nil && name.Kind == bucket.KindCommitment {
		return nil, bucket.Object{}, bucket.ErrMissing
	}
	return s.Store.Get(ctx, key, offset, n)
}

// TestCommitmentsThatVerifiersDoNotGet has a miner seal noise and hide its commitments from two of
// nine members, which check and apply copies. It is convicted, and the others lose nothing.
func TestCommitmentsThatVerifiersDoNotGet(t *testing.T) {
	t.Parallel()
	var m *Market
	open := func(at bucket.Location) (bucket.Store, error) {
		s, err := m.Buckets.Open(at)
		if at.Bucket == Place(8).Bucket {
			s = secretive{s}
		}
		return s, err
	}
	miners := append(honest(8), Miner{Kind: "noise"})
	for i := 6; i < 8; i++ {
		miners[i].Configure = func(cfg *node.Config) {
			x := bucket.NewExchange(cfg.Loop, cfg.Bucket.Exchange.Writer(), bucket.NewReader(open, bucket.Options{}), bucket.ExchangeOptions{Simulated: true})
			cfg.Bucket = &node.Bucket{Exchange: x, Registered: cfg.Bucket.Registered}
		}
	}
	m = begin(t, Config{Miners: miners, Validators: []Judge{{}, {}}, Steps: 32, Verification: 25})
	r := finish(t, m)
	if got := convicted(m); len(got) != 1 || got[8] == 0 {
		t.Errorf("convicted were %v, want miner 8 only", got)
	}
	s := m.State()
	for i, e := range r.Earners[:8] {
		at, _ := s.Find(MinerKey(i).Public())
		if who := s.Member(at); e.Accepted != 32 || who.Stake < stake {
			t.Errorf("honest miner %d has a stake of %d, and %d of its results were accepted; notes %q", i, who.Stake, e.Accepted, tail(m.miners[i].notes))
		}
	}
	t.Logf("%d of its results were accepted", r.Earners[8].Accepted)
}

// TestResultsHiddenFromSome has miners of nine hide their commitments and reveals from the same two to four of the others, alone and as a gang of
// a third. The run goes on, nobody is dropped, and all hold the same parameters.
func TestResultsHiddenFromSome(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ hiders, from coordinator.Member }{{3, 4}, {1, 2}, {1, 4}, {3, 2}} {
		if c.hiders == 1 && !campaign.Whole() {
			continue
		}
		t.Run(fmt.Sprintf("%d from %d", c.hiders, c.from), func(t *testing.T) {
			miners := honest(9 - int(c.hiders))
			for range c.hiders {
				miners = append(miners, Miner{Kind: "hide", Hide: c.from})
			}
			m := begin(t, Config{Miners: miners, Validators: []Judge{{}}, Steps: 12, Verification: 5})
			r := finish(t, m)
			s := m.State()
			for i, e := range r.Earners {
				at, _ := s.Find(MinerKey(i).Public())
				who := s.Member(at)
				t.Logf("%s%d: accepted %d, stake %d, missed %d", e.Kind, i, e.Accepted, who.Stake, who.Missed)
				if e.Kind == "" && (e.Accepted != 12 || who.Stake != stake) {
					t.Errorf("honest miner %d has a stake of %d, and %d of its results were accepted; notes %q", i, who.Stake, e.Accepted, tail(m.miners[i].notes))
				}
			}
			t.Logf("%d rollbacks, %d rounds", s.Rollbacks(), s.Round())
			if got := convicted(m); len(got) > 0 || s.Rollbacks() > 0 {
				t.Errorf("convicted were %v, %d rollbacks", got, s.Rollbacks())
			}
		})
	}
}

// TestASlowMinerChecksOthers has a miner need four fifths of a window for its share: it misses the
// window in which it recomputes another's. With the default of 2 % that costs it little.
func TestASlowMinerChecksOthers(t *testing.T) {
	t.Parallel()
	campaign.Only(t)
	for _, percent := range []uint8{2, 5} {
		m := begin(t, Config{Miners: append(honest(5), Miner{Slow: 2}), Validators: []Judge{{}}, Steps: 40, Verification: percent, Seed: wire.Hash{2}, Model: Model})
		r := finish(t, m)
		drawn, passed := m.State().ChecksDrawn()
		t.Logf("%d %%: %d of 40 results of the slow miner accepted, %d of another's; %d checks, %d passed", percent, r.Earners[5].Accepted, r.Earners[0].Accepted, drawn, passed)
		if len(convicted(m)) > 0 || drawn != passed || percent == 2 && r.Earners[5].Accepted < 38 {
			t.Errorf("%d %%: %v convicted, %d of %d checks passed, %d of 40 results of the slow miner accepted", percent, convicted(m), passed, drawn, r.Earners[5].Accepted)
		}
	}
}
