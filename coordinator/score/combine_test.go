package score

import (
	"github.com/entrain-network/entrain/coordinator/internal/record"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestCombine: what validators agree on lies among what they say, whoever has less than half of the weight moves it by less than
// the others differ, and not at all where these agree; and it does not depend on their order.
func TestCombine(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		score := rapid.Uint32Range(1, highest)
		weight := rapid.Uint64Range(1, 1<<40)
		var honest, all []opinion
		total := uint64(0)
		base, spread := score.Draw(rt, "base"), rapid.SampledFrom([]uint32{0, 0, 10, 2000}).Draw(rt, "spread")
		lo, hi := uint32(highest), uint32(0)
		for range rapid.IntRange(1, 20).Draw(rt, "honest") {
			v := max(1, min(highest, base+rapid.Uint32Range(0, spread).Draw(rt, "off")))
			honest = append(honest, opinion{v, weight.Draw(rt, "weight")})
			total += honest[len(honest)-1].weight
			lo, hi = min(lo, v), max(hi, v)
		}
		all = append(all, honest...)
		left := total - 1
		for range rapid.IntRange(0, 20).Draw(rt, "liars") {
			w := weight.Draw(rt, "weight")
			if w > left {
				break
			}
			left -= w
			total += w
			all = append(all, opinion{score.Draw(rt, "lie"), w})
		}
		shuffled := rapid.Permutation(all).Draw(rt, "order")
		standing := score.Draw(rt, "standing")
		verdict, ok := combine(slices.Clone(all), total, standing)
		again, _ := combine(shuffled, total, standing)
		got := verdict.score
		if !ok || verdict != again {
			rt.Fatalf("combined %d, %t, in another order %d", verdict, ok, again)
		}
		if got+(hi-lo) < lo || got > hi+(hi-lo) {
			rt.Fatalf("the honest said %d to %d, the others, with less weight, made it %d", lo, hi, got)
		}
		if alone, _ := combine(honest, 0, standing); distance(got, alone.score) > 2*(hi-lo) {
			rt.Fatalf("the honest alone made it %d, with liars it is %d, and they differ by %d", alone.score, got, hi-lo)
		}
		if _, ok := combine(all, 2*total, standing); ok {
			rt.Fatal("half of the weight settles a score")
		}
	})
}

// TestTwoValidatorsOfOneWeight: where one lies, in any direction, the member keeps the score nearest to what it had, and the honest
// one is not found to disagree.
func TestTwoValidatorsOfOneWeight(t *testing.T) {
	for _, honest := range []uint32{Zero + 16000, Zero + 6000, Zero - 9000} {
		for _, lie := range []uint32{1, Zero, highest} {
			v, ok := combine([]opinion{{lie, 64 << 20}, {honest, 64 << 20}}, 128<<20, honest)
			if !ok || v.score != honest || v.off(honest) != 0 {
				t.Errorf("of %d and the lie %d they make %+v", honest, lie, v)
			}
			v, _ = combine([]opinion{{lie, 1 << 20}, {honest, 1<<20 + 1}}, 2<<20+1, Zero)
			if v.score != honest || lie != honest && v.off(lie) == 0 {
				t.Errorf("with a little more weight %d counts %+v against %d", honest, v, lie)
			}
		}
	}
}

// TestDistribute: nothing is lost or made, everybody is less than one from its part, and who has more weight has no less.
func TestDistribute(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		amount := rapid.Uint64Range(0, record.TokensMax).Draw(rt, "amount")
		weights := rapid.SliceOfN(rapid.OneOf(rapid.Just(uint64(0)), rapid.Uint64Range(0, 9), rapid.Uint64Range(0, 1<<56)), 0, 60).Draw(rt, "weights")
		sum, given := uint64(0), uint64(0)
		for _, w := range weights {
			sum += w
		}
		parts := distribute(amount, weights)
		for i, got := range parts {
			given += got
			if sum == 0 {
				continue
			}
			// got*sum is less than sum away from amount*weight.
			if d := wide(got, sum).minus(wide(amount, weights[i])); !d.below(sum) || weights[i] == 0 && got > 0 {
				rt.Fatalf("weight %d of %d gets %d of %d", weights[i], sum, got, amount)
			}
			for j := range i {
				if weights[j] > weights[i] && parts[j] < got || weights[j] < weights[i] && parts[j] > got {
					rt.Fatalf("weights %d and %d get %d and %d", weights[j], weights[i], parts[j], got)
				}
			}
		}
		if sum > 0 && given != amount || sum == 0 && given > 0 {
			rt.Fatalf("%d of %d were given", given, amount)
		}
	})
}

// TestTrust: it stays in its range, falls at most half of the way, rises slowly, more agreement is never worse, and who always
// agrees comes to full trust and stays there.
func TestTrust(t *testing.T) {
	for trust := uint64(TrustMin); trust <= TrustMax; trust++ {
		before := uint64(0)
		for near := uint64(0); near <= agreementRange; near += 64 {
			got := judgedTrust(trust, near)
			if got < TrustMin || got > TrustMax || got < before || got < trust/2 || got > trust+(TrustMax-trust)/trustRise+1 {
				t.Fatalf("trust %d with agreement %d becomes %d", trust, near, got)
			}
			before = got
		}
	}
	trust := uint64(TrustMin)
	for range 100 {
		trust = judgedTrust(trust, agreementRange)
	}
	if trust != TrustMax {
		t.Errorf("full agreement for long makes trust %d", trust)
	}
	for range 10 {
		trust = judgedTrust(trust, 0)
	}
	if trust != TrustMin {
		t.Errorf("none makes trust %d", trust)
	}
}
