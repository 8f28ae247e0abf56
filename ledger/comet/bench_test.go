package comet

import (
	"fmt"
	"testing"
	"time"

	"github.com/entrain-network/entrain/host"
)

// BenchmarkSubmit measures a transaction from Submit to its outcome, one at a time, on a chain with
// default settings: half a block on average to the next one. It reports the time between blocks
// too.
func BenchmarkSubmit(b *testing.B) {
	dir := replicaDir(b, Options{Block: DefaultBlock})
	r, _ := start(b, dir)
	c := newClient(b, r.Endpoint())
	owner := signer("owner")
	if err := submit(b, c, owner, createRun("demo", owner.Key.Public(), 256)); err != nil {
		b.Fatal(err)
	}
	first, err := c.Status(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	var total time.Duration
	for i := range b.N {
		<-time.After(DefaultBlock * time.Duration(i*7919%1000) / 1000) // clients are not in step with blocks
		begin := time.Now()
		if err := submit(b, c, owner, host.Announce{Run: "demo", Addrs: []string{fmt.Sprint("/", i)}}); err != nil {
			b.Fatal(err)
		}
		total += time.Since(begin)
	}
	b.ReportMetric(0, "ns/op")
	last, err := c.Status(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(total.Milliseconds())/float64(b.N), "ms/tx")
	if n := last.Height - first.Height; n > 0 {
		b.ReportMetric(float64(last.TimeMs-first.TimeMs)/float64(n), "ms/block")
	}
}
