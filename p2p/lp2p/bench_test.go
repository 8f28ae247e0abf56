package lp2p

import (
	"testing"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/p2p"
)

// BenchmarkFetch fetches 64 MiB over loopback; both ends share the machine.
func BenchmarkFetch(b *testing.B) {
	data := blob(64<<20, 9)
	for _, c := range []struct {
		name    string
		listen  string
		sources int
	}{
		{"tcp/1", loopbackTCP, 1},
		{"tcp/3", loopbackTCP, 3},
		{"quic/1", loopbackQUIC, 1},
		{"quic/3", loopbackQUIC, 3},
	} {
		b.Run(c.name, func(b *testing.B) {
			ps := together(b, 1+c.sources, func(o *Options) { o.Listen = []string{c.listen} })
			ref := put(b, data, ps[1:]...)
			var from []key.Public
			for _, p := range ps[1:] {
				from = append(from, p.Self())
			}
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := fetch(b, ps[0], p2p.Fetch{Ref: ref, From: from}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSmallFetch fetches 64 KiB, the size of a round's payload.
func BenchmarkSmallFetch(b *testing.B) {
	ps := together(b, 2, nil)
	ref := put(b, blob(64<<10, 9), ps[1])
	b.SetBytes(64 << 10)
	for b.Loop() {
		if _, err := fetch(b, ps[0], p2p.Fetch{Ref: ref, From: []key.Public{ps[1].Self()}}); err != nil {
			b.Fatal(err)
		}
	}
}
