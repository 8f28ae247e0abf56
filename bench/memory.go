package bench

import (
	"bytes"
	"context"
	"fmt"

	"github.com/entrain-network/entrain/exact"
)

// measureMemory measures how many bytes a second come from memory, and how many a copy reads and
// writes.
func (b *bench) measureMemory(ctx context.Context, r *Report) error {
	b.progress("memory bandwidth")
	size := b.memory
	src, dst := bytes.Repeat([]byte{1}, size), make([]byte, size)
	read := b.both(float64(size), func(p *exact.Pool) func() error {
		return func() error {
			p.Run(p.Workers(), func(i int) {
				from, to := part(size, p.Workers(), i)
				// The runtime looks for a byte with vector instructions; there is none.
				if at := bytes.IndexByte(src[from:to], 2); at >= 0 {
					panic(fmt.Sprintf("bench: byte %d of the memory that is read has changed", from+at))
				}
			})
			return nil
		}
	})
	copied := b.both(float64(2*size), func(p *exact.Pool) func() error {
		return func() error {
			p.Run(p.Workers(), func(i int) {
				from, to := part(size, p.Workers(), i)
				copy(dst[from:to], src[from:to])
			})
			return nil
		}
	})
	if err := b.alternate(ctx, read, copied); err != nil {
		return err
	}
	r.Read, r.Copy = read.rate(), copied.rate()
	return nil
}

// part returns the range of part i, if n is cut into parts.
func part(n, parts, i int) (from, to int) { return n * i / parts, n * (i + 1) / parts }
