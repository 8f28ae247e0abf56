//go:build unix

package sim

import (
	"fmt"
	"math"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/entrain-network/entrain/spec"
)

// BenchmarkNetwork is the processor time and memory that a simulated network takes, by its members,
// with and without followers, and with slices of 16 members each, where payloads are larger. The
// exponent is the slope of the logarithm of the time over that of the members, from the size before:
// two where there is an event for each pair of members. What a member takes is all that its client,
// its node, its network and its training do; its exponent is one less.
func BenchmarkNetwork(b *testing.B) {
	for _, aggregate := range []string{spec.AggregateNone, spec.AggregateFollowers, spec.AggregateSlices} {
		b.Run(aggregate, func(b *testing.B) { benchmarkNetwork(b, aggregate) })
	}
}

func benchmarkNetwork(b *testing.B, aggregate string) {
	const steps = 3
	before, members := 0.0, 0.0
	for _, n := range []int{64, 128, 256, 512, 1024, 2048, 4096, 10_000} {
		b.Run(fmt.Sprintf("members=%d", n), func(b *testing.B) {
			began := spent(b)
			var rounds uint32
			for range b.N {
				cfg := Config{Seed: 1, Clients: n, Steps: steps, Delay: 30 * time.Millisecond, Jitter: 40 * time.Millisecond, Limit: 30 * time.Minute}
				cfg.Followers = aggregate == spec.AggregateFollowers
				if aggregate == spec.AggregateSlices {
					cfg.Overlap, cfg.Aggregators = 1, 16
				}
				r, err := Run(b.Context(), cfg)
				if err != nil {
					b.Fatal(err)
				}
				rounds += r.Rounds
			}
			cost := (spent(b) - began).Seconds() / float64(rounds)
			b.ReportMetric(cost, "cpu-s/round")
			b.ReportMetric(cost*1e6/float64(n)/float64(n), "us/pair")
			b.ReportMetric(cost*1e3/float64(n), "ms/member")
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			b.ReportMetric(float64(m.HeapSys)/(1<<20), "MiB") // of this size or a smaller one
			b.ReportMetric(0, "ns/op")
			if before > 0 {
				slope := math.Log(cost/before) / math.Log(float64(n)/members)
				b.ReportMetric(slope, "exponent")
				b.ReportMetric(slope-1, "exponent/member")
			}
			before, members = cost, float64(n)
		})
	}
}

// spent is the processor time of this process.
func spent(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
