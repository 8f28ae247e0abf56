package sparseloco

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/exact"
)

// Runs have every chunk once, where it is, and none goes over an end.
func TestRunsAreAllChunks(t *testing.T) {
	c := mixedCodec(t)
	for _, ends := range [][]int{nil, {0, 29 * 18}} {
		next := 0
		for _, r := range c.Runs(ends) {
			for i := range r.Count {
				if k := c.chunks[next]; r.First+i != next || r.From+i*r.N != k.from || r.N != k.n || i > 0 && slices.Contains(ends, k.from) {
					t.Errorf("chunk %d of %+v is %+v", i, r, k)
				}
				next++
			}
		}
		if next != len(c.chunks) {
			t.Errorf("%d of %d chunks", next, len(c.chunks))
		}
	}
}

// What a device does with Payload and Sent is Encode and Apply.
func TestChunksElsewhere(t *testing.T) {
	pool := exact.NewPool(2)
	defer pool.Close()
	c := newCodec(t, Config{Chunk: 50, TopK: 7, Decay: .9, OuterRate: 1}, pool, mixed...)
	state, change := normals(1, c.n), normals(2, c.n)
	apart, picks, values := slices.Clone(state), []uint16(nil), []float32(nil)
	for _, k := range c.chunks {
		e := apart[k.from : k.from+k.n]
		for i := range e {
			e[i] = float32(c.cfg.Decay*e[i]) + change[k.from+i]
		}
		order := make([]int, k.n)
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int {
			if magnitude(e[a]) > magnitude(e[b]) {
				return -1
			}
			return 1
		})
		order = order[:k.space.K]
		slices.Sort(order)
		for i := range c.Picks() {
			pick, value := uint16(None), float32(0)
			if i < len(order) {
				pick, value = uint16(order[i])|uint16(math.Float32bits(e[order[i]])>>31)*Minus, e[order[i]]
			}
			picks, values = append(picks, pick), append(values, value)
		}
	}
	want := encode(t, c, state, change)
	got, err := c.Payload(picks, values)
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("another payload: %v", err)
	}
	add := func(x []float32, payload []byte, factor float32) {
		words := make([]uint32, len(c.chunks)*c.SentLen())
		c.Sent(words, payload, 0, len(c.chunks), factor)
		for i, k := range c.chunks {
			w := words[i*c.SentLen() : (i+1)*c.SentLen()]
			last := w[len(w)-3:]
			for j := range last[2] {
				pick := w[j/2] >> (j % 2 * 16) & 0xffff
				x[k.from+int(pick&(Large-1))] += math.Float32frombits(last[pick/Large&1] ^ pick/Minus<<31)
			}
		}
	}
	if add(apart, want, -1); !slices.Equal(apart, state) {
		t.Error("another state")
	}
	payloads := [][]byte{want, encode(t, c, normals(3, c.n), normals(4, c.n)), encode(t, c, make([]float32, c.n), make([]float32, c.n))}
	params, sums := normals(5, c.n), make([]float32, c.n)
	alone := slices.Clone(params)
	factors := c.Factors(payloads)
	for i, p := range payloads {
		add(sums, p, factors[i])
	}
	for i, k := range c.chunks {
		c.ApplyChunk(i, alone[k.from:k.from+k.n], payloads, factors)
	}
	for i := range sums {
		sums[i] = params[i] - float32(sums[i]/3)
	}
	if err := c.Apply(params, payloads, .1); err != nil || !slices.Equal(params, sums) || !slices.Equal(params, alone) {
		t.Errorf("other parameters: %v", err)
	}
	for name, spoil := range map[string]func(picks []uint16, values []float32){
		"twice the same position": func(p []uint16, _ []float32) { p[1] = p[0] },
		"a position beyond":       func(p []uint16, _ []float32) { p[6] = 50 },
		"a gap":                   func(p []uint16, _ []float32) { p[2] = None },
		"another sign":            func(_ []uint16, v []float32) { v[3] = -v[3] },
		"a zero":                  func(_ []uint16, v []float32) { v[3] = 0 },
	} {
		p, v := slices.Clone(picks), slices.Clone(values)
		if spoil(p, v); !slices.Equal(p, picks) || !slices.Equal(v, values) {
			if _, err := c.Payload(p, v); err == nil {
				t.Errorf("%s makes a payload", name)
			}
		}
	}
}
