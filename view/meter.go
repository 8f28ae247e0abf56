package view

import (
	"fmt"
	"time"
)

// meterEvery is the time between two reports of a Meter.
const meterEvery = 2 * time.Second

// Meter paces the progress reports of long work, and estimates the time that is left.
type Meter struct {
	begun, last time.Time
	from        uint64
}

// Tick reports whether a report is due, and returns the words about the time that is left.
func (m *Meter) Tick(done, of uint64) (left string, ok bool) {
	now := time.Now()
	if m.begun.IsZero() {
		m.begun, m.last, m.from = now, now, done
	}
	if now.Sub(m.last) < meterEvery {
		return "", false
	}
	m.last = now
	if done > m.from && of > done {
		rest := time.Duration(float64(now.Sub(m.begun)) * float64(of-done) / float64(done-m.from))
		left = fmt.Sprintf(", about %s left", rest.Round(time.Second))
	}
	return left, true
}

// Transferred returns a function that reports from time to time how many bytes have arrived.
func Transferred(say func(format string, args ...any)) func(done, total uint64) {
	var m Meter
	return func(done, total uint64) {
		if left, due := m.Tick(done, total); due {
			say("%s of %s%s", Bytes(done), Bytes(total), left)
		}
	}
}

// Counted returns a function that tells, now and then, how many of total are done.
func Counted(name string, total int, say func(format string, args ...any)) func(done int) {
	last := time.Now()
	return func(done int) {
		if time.Since(last) >= 5*time.Second {
			last = time.Now()
			say("%s: %d of %d", name, done, total)
		}
	}
}
