package lp2p

import (
	"context"
	"strings"
	"testing"
	"time"
)

// Whoever runs with a key is found, although it lets no stranger in; nobody is found where nobody
// runs, or somebody else does.
func TestProbeFindsWhoHasTheKey(t *testing.T) {
	t.Parallel()
	for _, listen := range []string{loopbackTCP, loopbackQUIC} {
		p := begin(t, 1, func(o *Options) { o.Listen = []string{listen} })
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		addrs := append([]string{"/memory/7"}, p.Addrs()...)
		if at, ok := Probe(ctx, p.Self(), addrs); !ok || at != addrs[1] {
			t.Errorf("%s: found %v at %q", listen, ok, at)
		}
		bare, _, _ := strings.Cut(addrs[1], "/p2p/")
		if at, ok := Probe(ctx, secret(2).Public(), []string{bare}); ok {
			t.Errorf("%s: another key is found at %s", listen, at)
		}
		self := p.Self()
		p.Close()
		gone, end := context.WithTimeout(t.Context(), time.Second)
		if _, ok := Probe(gone, self, addrs); ok {
			t.Errorf("%s: it is found after its end", listen)
		}
		end()
	}
}
