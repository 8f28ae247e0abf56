package distro

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/exact"
)

// TestUpdatesAreCanonical decodes and encodes an update and its variants. None of these means what
// another one means.
func TestUpdatesAreCanonical(t *testing.T) {
	c := mixedCodec(t)
	update, err := c.Update(nil, [][]byte{anyPayload(c, 1)})
	if err != nil {
		t.Fatal(err)
	}
	if len(update) < c.UpdateLen()+4 {
		t.Fatalf("an update of %d bytes has fewer than two runs", len(update))
	}
	body, runs := update[:c.UpdateLen()], update[c.UpdateLen():]
	at := func(i int, flip byte) []byte {
		b := bytes.Clone(update)
		b[i] ^= flip
		return b
	}
	zeros, _ := c.parseUpdate(update)
	in := slices.IndexFunc(c.table(), func(b block) bool { return zeros[0].from < b.end() })
	zero := zeros[0].from - c.table()[in].state
	padded := slices.IndexFunc(c.table(), func(b block) bool { return b.shape.h*b.shape.w%8 != 0 })
	n := c.table()[padded].shape.h * c.table()[padded].shape.w
	for what, b := range map[string][]byte{
		"a sign where a weight only decays": at(codec.HeaderLen+c.table()[in].signs+zero/8, 1<<(zero%8)),
		"a bit after the last of a block":   at(codec.HeaderLen+c.table()[padded].signs+n/8, 0x80),
		"a run that is cut off":             update[:len(update)-1],
		"a run without its length":          append(bytes.Clone(body), 1),
		"an empty run":                      append(bytes.Clone(body), 1, 0),
		"a run that touches the one before": append(append(bytes.Clone(body), runs[:2]...), 0, 1),
		"a uvarint of a byte too many":      append(append(bytes.Clone(body), runs[0]|0x80, 0), runs[1:]...),
		"a run beyond the last weight":      append(bytes.Clone(body), 0, 0xff, 0xff, 0x7f),
		"a run of 2^64 weights":             append(bytes.Clone(body), 1, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1),
		"a distance of 2^64":                append(bytes.Clone(body), 255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 1),
	} {
		if c.CheckUpdate(b) == nil {
			t.Errorf("%s passes", what)
		}
	}
	if again := reencode(t, c, update); !bytes.Equal(again, update) {
		t.Error("an update decodes to another one")
	}
}

// reencode writes down what an update means.
func reencode(t testing.TB, c *Codec, update []byte) []byte {
	t.Helper()
	zeros, err := c.parseUpdate(update)
	if err != nil {
		t.Fatal(err)
	}
	out, tasks := slices.Clone(update[:c.UpdateLen()]), [][]span{}
	for _, b := range c.table() {
		direction := make([]float32, b.shape.h*b.shape.w)
		unpack(direction, update[codec.HeaderLen+b.signs:])
		for _, z := range zeros {
			for at := max(z.from, b.state); at < min(z.to, b.end()); at++ {
				direction[at-b.state] = 0
			}
		}
		tasks = append(tasks, pack(out[codec.HeaderLen+b.signs:], direction, b.state, nil))
	}
	return appendZeros(out, tasks)
}

// FuzzUpdate gives strangers' bytes to a follower: it refuses them and leaves the parameters alone,
// or takes them, and then no other bytes mean the same.
func FuzzUpdate(f *testing.F) {
	c := mixedCodec(f)
	for n := range 4 {
		var set [][]byte
		for m := range n + 1 {
			set = append(set, anyPayload(c, uint64(m)))
		}
		update, err := c.Update(nil, set)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(update[codec.HeaderLen:])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		update := append(slices.Clone(c.update[:]), body...)
		params := splitmix(3, c.n)
		kept := slices.Clone(params)
		err := c.Follow(params, update, 1e-3)
		if (err == nil) != (c.CheckUpdate(update) == nil) {
			t.Fatalf("CheckUpdate and Follow differ: %v", err)
		}
		if err != nil {
			if !slices.Equal(params, kept) {
				t.Fatal("a refused update changed the parameters")
			}
			return
		}
		if !bytes.Equal(reencode(t, c, update), update) {
			t.Fatal("two encodings mean the same")
		}
	})
}

// BenchmarkUpdate prints the size of an update in bits a weight, and the number of members from
// which it is smaller than what it is made of.
func BenchmarkUpdate(b *testing.B) {
	configs := append(slices.Clone(benchmarkedConfigs), Config{Block: 8, TopK: 2, Decay: .95, ClipNorm: 1})
	for _, cfg := range configs {
		pool := exact.NewPool(1)
		c := newCodec(b, cfg, pool, benchmarked...)
		for _, n := range []int{2, 8, 32} {
			payloads := payloadsOf(b, c, n)
			params := splitmix(7, c.n)
			update, err := c.Update(nil, payloads)
			if err != nil {
				b.Fatal(err)
			}
			b.Run(fmt.Sprintf("block=%d/k=%d/payloads=%d", cfg.Block, cfg.TopK, n), func(b *testing.B) {
				b.SetBytes(int64(4 * c.n))
				for b.Loop() {
					if err := c.Follow(params, update, 1e-3); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(8*len(update))/float64(c.n), "bits/param")
				b.ReportMetric(float64(len(update)/c.PayloadMax()+1), "members")
			})
		}
		pool.Close()
	}
}
