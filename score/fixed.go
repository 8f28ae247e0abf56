package score

// One is the fixed-point number that stands for a score of 1: a score is told as a signed number of
// 16 bits, in units of 1/32767.
const One = 1<<15 - 1

// Fixed returns the fixed-point number nearest to a score, halves away from zero. What is beyond
// [-1,1] is taken as its end, and what is no number as 0.
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

// Float is the score that a fixed-point number stands for. The one number without an opposite
// stands for -1 too.
func Float(v int16) float64 { return max(-1, float64(v)/One) }
