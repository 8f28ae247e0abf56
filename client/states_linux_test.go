package client

import (
	"bytes"
	"os"
	"runtime/debug"
	"syscall"
	"testing"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
)

// A state comes with each block, to each member: to look at all members then would cost the square
// of their number. So a machine is given states in which nothing has moved, and of which it cannot
// read the pages that have places of other members alone.
func TestAStateCostsNoLookAtAllMembers(t *testing.T) {
	const n = 1024
	for _, c := range []struct {
		percent          uint8
		witness, follows bool
	}{{0, false, false}, {0, true, false}, {10, false, true}, {10, true, true}} {
		crowd := newCrowd(t, n, c.percent)
		r, _ := crowd.state.At(1)
		self := coordinator.Member(n / 2)
		for r.Elected(self) != c.witness {
			self++
		}
		cfg := Config{Self: crowd.keys[self], PayloadMax: 1000}
		if c.follows {
			cfg.Update, cfg.UpdateMax = 10, 20
		}
		a := &attendance{crowd: crowd, self: self, params: crowd.initial, machine: New(cfg), list: crowd.commitments(crowd.initial)}
		a.step(crowd.snapshot())
		a.step(Loaded{Known: true, Params: crowd.initial})
		for i, o := range a.list {
			a.step(CommitmentReceived{Signed: &dispute.Signed{Commitment: o}, Signer: crowd.keys[i], ID: o.ID()})
		}
		for range 10 { // it looks for what is missing, once
			a.env.NowMs += 500
			a.step(Tick{})
		}
		for range 3 {
			a.env.NowMs += 250
			s, reveal := crowd.hiddenBut(self)
			defer reveal()
			if where := faults(func() { a.step(StateChanged{State: s, TimeMs: a.env.NowMs}) }); where != "" {
				t.Fatalf("%+v: a state in which nothing has moved has it look at other members:\n%s", c, where)
			}
		}
	}
}

// faults returns where f reads memory that it cannot, if it does.
func faults(f func()) (where string) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() != nil {
			where = string(debug.Stack())
		}
	}()
	f()
	return ""
}

// hiddenBut returns the crowd's state in memory of which pages with places of members but one cannot
// be read, and what gives it back.
func (c *crowd) hiddenBut(self coordinator.Member) (s coordinator.State, reveal func()) {
	c.tb.Helper()
	b := c.state.Bytes()
	memory, err := syscall.Mmap(-1, 0, len(b), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		c.tb.Fatal(err)
	}
	copy(memory, b)
	if s, err = coordinator.Open(memory); err != nil {
		c.tb.Fatal(err)
	}
	at := func(i coordinator.Member) int { return bytes.Index(b, c.keys[i][:]) }
	// Keys of the first members are like other numbers.
	const few = 256
	place := at(few+1) - at(few)
	first := at(few) - few*place
	page, hidden := os.Getpagesize(), 0
	for p := first/page*page + page; p+page <= first+len(c.keys)*place; p += page {
		if own := first + int(self)*place; own < p+page && own+place > p {
			continue
		}
		if err := syscall.Mprotect(memory[p:p+page], syscall.PROT_NONE); err != nil {
			c.tb.Fatal(err)
		}
		hidden += page
	}
	if hidden < len(c.keys)*place/2 {
		c.tb.Fatalf("%d bytes are hidden of %d places of %d bytes: the test shows nothing", hidden, len(c.keys), place)
	}
	return s, func() {
		if err := syscall.Munmap(memory); err != nil {
			c.tb.Error(err)
		}
	}
}
