package trace

import (
	"context"
	"testing"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
	_ "github.com/entrain-network/entrain/tests/heap"
)

// benchCase is one sequence of the nano model: its tiles are whole, and no chain is short.
func benchCase(b *testing.B) modelCase {
	b.Helper()
	cfg, err := llama.Preset("nano")
	if err != nil {
		b.Fatal(err)
	}
	return modelCase{"bench", cfg, cfg.Context, 1, 0}
}

// BenchmarkJudge is what a dispute costs a referee, by kind of operation: its slowest slice, in
// plain Go.
func BenchmarkJudge(b *testing.B) {
	pool := exact.NewPool(2)
	defer pool.Close()
	c := benchCase(b)
	p := gameProgram(b, c)
	made, err := Run(context.Background(), pool, p, c.allSources())
	if err != nil {
		b.Fatal(err)
	}
	for _, op := range kinds(p) {
		o := p.Op(op)
		tile := longest(o)
		slice := o.Slices(tile) / 2
		b.Run(o.Name(), func(b *testing.B) {
			evidence, err := made.Evidence(context.Background(), op, tile, slice)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := Judge(p, openSources{&made.machine}, op, tile, slice, made.Root(), evidence); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(evidence)), "bytes")
		})
	}
}

// BenchmarkProgram is what a referee does first in each of its answers.
func BenchmarkProgram(b *testing.B) {
	for _, preset := range []string{"nano", "124m", "1b"} {
		cfg, err := llama.Preset(preset)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(preset, func(b *testing.B) {
			for b.Loop() {
				if _, err := newProgram(Setup{cfg, cfg.Context}, 16, newPlainTail(cfg)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkRun compares tracing a step with doing it.
func BenchmarkRun(b *testing.B) {
	pool := exact.NewPool(2)
	defer pool.Close()
	c := benchCase(b)
	c.sequences = 4
	b.Run("step", func(b *testing.B) {
		for b.Loop() {
			c.gradient(b, pool)
		}
	})
	b.Run("trace", func(b *testing.B) {
		p, src := gameProgram(b, c), c.allSources()
		for b.Loop() {
			if _, err := Run(context.Background(), pool, p, src); err != nil {
				b.Fatal(err)
			}
		}
	})
}
