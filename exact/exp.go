package exact

import "math"

// Exp and the functions built on it run over every attention score, gate and logit. They use only
// binary32 and no branches, so that vector kernels can follow them step by step.

const (
	log2E = 1.44269504088896341 // 1/ln 2, rounded to binary32 where it is used
	// ln2Hi + ln2Lo = ln 2 to 2^-41. ln2Hi has 15 significant bits, so its product with an integer
	// of up to 9 bits is exact.
	ln2Hi = 0.693145751953125
	ln2Lo = 1.42860682030941723212e-6
	// magic is 1.5·2^23. Adding a binary32 of magnitude up to 2^22 rounds it to an integer, held in
	// the low bits of the sum.
	magic     = 12582912
	magicBits = 0x4b400000

	// The result is +0 below expLeast and +Inf above expMost. Arguments are clamped to this range.
	expLeast = -104
	expMost  = 89

	// exp(r) = 1 + r + r²·(exp2 + exp3·r + exp4·r² + exp5·r³ + exp6·r⁴) with a relative error of at
	// most 0.06·2^-24 for |r| ≤ ln(2)/2 (Remez exchange in 120 bits, before the coefficients are
	// rounded to binary32).
	exp2 = 0.49999993451
	exp3 = 0.166665206791
	exp4 = 0.0416683874878
	exp5 = 0.00836871112901
	exp6 = 0.00138146105581
)

// Exp returns e to the power x, within 1.0 ulp; subnormal results within 1.1 ulp. Exp(-Inf) is +0
// and Exp(+Inf) is +Inf.
func Exp(x float32) float32 {
	if x < expLeast {
		x = expLeast
	}
	if x > expMost {
		x = expMost
	}
	t := float32(x*log2E) + magic
	n := t - magic
	r := x - float32(n*ln2Hi)
	r = r - float32(n*ln2Lo)
	q := float32(r*exp6) + exp5
	q = float32(q*r) + exp4
	q = float32(q*r) + exp3
	q = float32(q*r) + exp2
	q = float32(float32(q*r)*r) + r
	q = q + 1
	// 2^n is applied as two factors because it may be subnormal or too large. The first product is
	// exact.
	i := int32(math.Float32bits(t) - magicBits)
	return float32(float32(q*power2(i>>1)) * power2(i-i>>1))
}

// power2 returns 2^n for -126 ≤ n ≤ 127.
func power2(n int32) float32 { return math.Float32frombits(uint32(n+127) << 23) }

// Sigmoid returns 1/(1+e^-x), within 2.5 ulp. Sigmoid(-Inf) is +0 and Sigmoid(+Inf) is 1.
func Sigmoid(x float32) float32 {
	// Using -|x| avoids overflow, so results near zero keep their precision.
	e := Exp(math.Float32frombits(math.Float32bits(x) | 1<<31))
	n := float32(1)
	if x < 0 {
		n = e
	}
	return n / (1 + e)
}

// Silu returns x·Sigmoid(x), within 3.5 ulp where the result is not subnormal. Silu(-Inf) is NaN.
func Silu(x float32) float32 { return float32(x * Sigmoid(x)) }
