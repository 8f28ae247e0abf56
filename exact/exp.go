package exact

import "math"

// Exp and what is made of it run over every element of attention scores, gates and logits, so they
// are in binary32 throughout, without branches, in a form that vectors follow step by step.

const (
	log2E = 1.44269504088896341 // 1/ln 2, rounded to binary32 where it is used
	// ln2Hi + ln2Lo = ln 2 to 2^-41. ln2Hi has 15 significant bits, so its product with a whole
	// number of up to 9 bits is exact.
	ln2Hi = 0.693145751953125
	ln2Lo = 1.42860682030941723212e-6
	// magic is 1.5·2^23: a binary32 of a magnitude up to 2^22 that is added to it is rounded to a
	// whole number, which stands in the low bits.
	magic     = 12582912
	magicBits = 0x4b400000

	// Below expLeast the result is +0, above expMost it is +Inf; beyond, the argument is cut to
	// these.
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
	// Two factors, because 2^n itself may be subnormal or too large. The first product is exact.
	i := int32(math.Float32bits(t) - magicBits)
	return float32(float32(q*power2(i>>1)) * power2(i-i>>1))
}

// power2 returns 2^n for -126 ≤ n ≤ 127.
func power2(n int32) float32 { return math.Float32frombits(uint32(n+127) << 23) }

// Sigmoid returns 1/(1+e^-x), within 2.5 ulp. Sigmoid(-Inf) is +0 and Sigmoid(+Inf) is 1.
func Sigmoid(x float32) float32 {
	// e^-|x| cannot overflow, so the left side does not lose its last digits before it reaches
	// zero.
	e := Exp(math.Float32frombits(math.Float32bits(x) | 1<<31))
	n := float32(1)
	if x < 0 {
		n = e
	}
	return n / (1 + e)
}

// Silu returns x·Sigmoid(x), within 3.5 ulp where the result is not subnormal. Silu(-Inf), which is
// no number to train with, is NaN.
func Silu(x float32) float32 { return float32(x * Sigmoid(x)) }
