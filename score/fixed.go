package score

// One is the fixed-point number for a score of 1: scores are sent as signed 16-bit numbers in units
// of 1/32767.
const One = 1<<15 - 1

// Fixed returns the fixed-point number nearest to a score, rounding halves away from zero. It
// clamps scores to [-1,1] and converts NaN to 0.
func Fixed(s float64) int16 {
	switch {
	case s >= 1:
		return One
	case s <= -1:
		return -One
	case s >= 0:
		return int16(float64(s*One) + 0.5)
	case s < 0:
		return -int16(float64(-s*One) + 0.5)
	}
	return 0
}

// Float returns the score that a fixed-point number stands for. The one number without a negation,
// -32768, also stands for -1.
func Float(v int16) float64 { return max(-1, float64(v)/One) }
