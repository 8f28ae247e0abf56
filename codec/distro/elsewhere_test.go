package distro

import (
	"bytes"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/tensor"
)

// Grids have every block once, where it is, and none goes over an end.
func TestGridsAreAllBlocks(t *testing.T) {
	layout := tensor.NewLayout(append(slices.Clone(mixed), tensor.Spec{Name: "wide", Shape: []int{9, 20}},
		tensor.Spec{Name: "again", Shape: []int{8, 8}}, tensor.Spec{Name: "more", Shape: []int{16, 8}}))
	c, err := New(layout, Config{Block: 8, TopK: 3}, nil)
	if err != nil {
		t.Fatal(err)
	}
	last := layout.Tensors()[len(layout.Tensors())-1].Offset
	for _, ends := range [][]int{nil, {0, last}} {
		seen := make([]bool, len(c.table()))
		grids := c.Grids(ends)
		for _, g := range grids {
			for i := range g.Down {
				for j := range g.Columns {
					n := g.First + i*g.Across + j
					b := c.at(n)
					if seen[n] || b.offset != g.Offset+i*g.Rows*g.Stride+j*g.Cols || b.state != g.State+i*g.Rows*g.Stride+j*g.Rows*g.Cols ||
						b.shape.h != g.Rows || b.shape.w != g.Cols || b.stride != g.Stride {
						t.Fatalf("block %d of %+v is %+v", n, g, b)
					}
					seen[n] = true
					if ends != nil && (b.offset < last) != (g.Offset < last) {
						t.Errorf("%+v goes over an end", g)
					}
				}
			}
		}
		if slices.Contains(seen, false) {
			t.Error("a block is in no grid")
		}
		if want := 10; ends == nil && len(grids) != want {
			t.Errorf("%d grids, want %d: %+v", len(grids), want, grids)
		}
	}
}

// What is picked of a payload makes the same payload, and what no Encode picks makes none.
func TestPicksAreThoseOfAPayload(t *testing.T) {
	pool := exact.NewPool(2)
	defer pool.Close()
	c := newCodec(t, Config{Block: 16, TopK: 5}, pool, tensor.Spec{Name: "w", Shape: []int{200, 150}}, tensor.Spec{Name: "v", Shape: []int{3}})
	picks := make([]uint16, c.PicksLen())
	for seed := range uint64(3) {
		want := anyPayload(c, seed)
		c.Picks(picks, want, 0, 70)
		c.Picks(picks[70*6:], want, 70, len(c.table()))
		got, err := c.Payload(picks)
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("another payload: %v", err)
		}
	}
	for name, change := range map[string]func(of []uint16){
		"twice the same position":   func(of []uint16) { of[0], of[1] = 7, 7|Minus },
		"a position beyond":         func(of []uint16) { of[0], of[1] = 255, 256 },
		"descending":                func(of []uint16) { of[0], of[1] = 9, 8 },
		"a gap":                     func(of []uint16) { of[0], of[1], of[2] = 1, None, 2 },
		"one more than are allowed": func(of []uint16) { copy(of, []uint16{1, 2, 3, 4, 5, 6}) },
	} {
		wrong := slices.Clone(picks)
		of := wrong[6*9 : 6*10]
		for i := range of {
			of[i] = None
		}
		change(of)
		if _, err := c.Payload(wrong); err == nil {
			t.Errorf("%s is a payload", name)
		}
	}
}
