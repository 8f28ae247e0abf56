package loop

// Monotonic is a loop's time in milliseconds that never goes back. When the machine's clock is set
// back, it continues from where it was; when the clock is set ahead, it follows. Its zero value is
// ready.
type Monotonic struct{ last, ahead uint64 }

// Ms returns the milliseconds since 1970, or more if the clock was ever set back.
func (m *Monotonic) Ms(l Loop) uint64 {
	now := uint64(l.Now().UnixMilli())
	if now < m.last {
		m.ahead += m.last - now
	}
	m.last = now
	return now + m.ahead
}
