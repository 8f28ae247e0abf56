package market

import (
	"testing"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/tests/campaign"
)

// paced runs five miners that are alike and others that are not. It returns the run's result, its
// members, and what each member earned for a sequence of its accepted results.
func paced(t *testing.T, sharing coordinator.Sharing, others ...Miner) (r Result, members []coordinator.MemberState, each []float64) {
	t.Helper()
	m := begin(t, Config{Miners: append(honest(5), others...), Validators: []Judge{{Sample: 7}, {Sample: 7}}, Steps: 32, Sharing: sharing})
	r = finish(t, m)
	s := m.State()
	for i, e := range r.Earners {
		at, ok := s.Find(MinerKey(i).Public())
		if !ok {
			t.Fatalf("miner %d is not a member", i)
		}
		v := s.Member(at)
		members, each = append(members, v), append(each, float64(e.Reward)/float64(max(v.Points, 1)))
	}
	for i, o := range others {
		v := members[5+i]
		t.Logf("%v shares, %+v: %d of %d sequences, %d results; paid %.3f of what the others are for a sequence",
			sharing, o, v.Points, total(members), v.Results, each[5+i]/mean(each[:5]))
	}
	return r, members, each
}

func mean(list []float64) (sum float64) {
	for _, v := range list {
		sum += v / float64(len(list))
	}
	return sum
}

// TestASlowMinerIsGivenWhatItManages has one that computes four times as long as the others,
// which is more than a window lasts. With equal shares it is late in each of its windows, until
// it is dropped; with shares by speed nothing of it is late, and it is paid as the others for
// what it does.
func TestASlowMinerIsGivenWhatItManages(t *testing.T) {
	t.Parallel()
	_, members, _ := paced(t, coordinator.EqualShares, Miner{Slow: 4})
	if v := members[5]; v.Results != 0 {
		t.Errorf("with equal shares the slow one had %d results accepted", v.Results)
	}
	lost := total(members)
	r, members, each := paced(t, coordinator.SpeedShares, Miner{Slow: 4})
	if v := members[5]; v.Results != 32 || v.Points*5 < members[0].Points || v.Points*2 > members[0].Points {
		t.Errorf("by speed the slow one had %d results accepted, of %d sequences, another %d", v.Results, v.Points, members[0].Points)
	}
	if now := total(members); now != 32*6*8 || now <= lost {
		t.Errorf("%d sequences were accepted with equal shares, %d by speed", lost, now)
	}
	if rate := each[5] / mean(each[:5]); rate < 0.8 || rate > 1.1 {
		t.Errorf("the slow one is paid %.3f of what others are for a sequence: %+v", rate, r.Earners[5].Evidence)
	}
}

func total(members []coordinator.MemberState) (sum uint64) {
	for _, v := range members {
		sum += v.Points
	}
	return sum
}

// TestBoastingDoesNotPay has one that says it is ten times as fast as it is: it is given no more
// than four equal shares, cannot do it in time, and earns nothing. One that says half as much
// again, and just manages it, is paid for what it did and no more.
func TestBoastingDoesNotPay(t *testing.T) {
	t.Parallel()
	campaign.Only(t)
	_, members, each := paced(t, coordinator.SpeedShares, Miner{Claims: 1000}, Miner{Claims: 150})
	if v := members[5]; v.Results != 0 || v.Earned != 0 || v.Points != 0 {
		t.Errorf("it had %d results accepted, and earned %d", v.Results, v.Earned)
	}
	for i, v := range members[:5] {
		if v.Results != 32 {
			t.Errorf("of miner %d %d results were accepted", i, v.Results)
		}
	}
	if v := members[6]; v.Results != 32 || v.Points <= members[0].Points {
		t.Errorf("who manages more had %d results accepted, of %d sequences, another %d", v.Results, v.Points, members[0].Points)
	}
	if rate := each[6] / mean(each[:5]); rate > 1.1 {
		t.Errorf("it is paid %.3f of what others are for a sequence", rate)
	}
}

// TestUnderstatingDoesNotPay has one that says it is far slower than it is, to be paid for little
// work: pay is for sequences, and each is paid no better than the others'.
func TestUnderstatingDoesNotPay(t *testing.T) {
	t.Parallel()
	campaign.Only(t)
	for _, claims := range []uint32{25, 1} {
		r, members, each := paced(t, coordinator.SpeedShares, Miner{Claims: claims})
		if v := members[5]; v.Results != 32 || v.Points*5/2 > members[0].Points {
			t.Errorf("at %d %% it had %d results accepted, of %d sequences, another %d", claims, v.Results, v.Points, members[0].Points)
		}
		if rate := each[5] / mean(each[:5]); rate > 1 {
			t.Errorf("at %d %% it is paid %.3f of what others are for a sequence: %+v", claims, rate, r.Earners[5].Evidence)
		}
		if share := r.Earners[5].Share; share > float64(members[5].Points)/float64(total(members)) {
			t.Errorf("at %d %% it earned %.4f of all for %d of %d sequences", claims, share, members[5].Points, total(members))
		}
	}
}
