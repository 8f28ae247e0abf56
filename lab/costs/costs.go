// Package costs counts what the chain's messages cost: bytes hashed, signatures checked, places of
// members looked at, and bytes of memory taken, when a message is accepted and when it is refused.
// It plays runs of a chosen number of members on a real host, and at each stage delivers every
// message that is due there, and dozens of wrong ones made from it.
//
// Counts do not depend on the machine or the clock. They need a program built with -tags counted
// (package tally).
package costs

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/internal/tally"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// The numbers of members that can be measured.
const (
	MembersMin = 8
	MembersMax = coordinator.MembersMax - 2
)

// ErrNotCounted is the error of a program that does not count.
var ErrNotCounted = errors.New("this program does not count: build it with -tags counted")

// Cost is what the delivery of one transaction takes.
type Cost struct {
	Signatures uint64 // checked
	// Hashed bytes, beyond the two passes over the transaction that its ID and its signature take.
	Hashed  uint64
	Members uint64 // places of members looked at
	// Memory is the number of bytes allocated, beyond four times the transaction.
	Memory uint64
}

func (c Cost) most(d Cost) Cost {
	return Cost{max(c.Signatures, d.Signatures), max(c.Hashed, d.Hashed), max(c.Members, d.Members), max(c.Memory, d.Memory)}
}

// Row holds the dearest deliveries of one kind of message, in each respect.
type Row struct {
	Kind     string
	Members  int
	Accepts  int
	Accepted Cost
	Refusals int
	Refused  Cost
	// Dear lists the refusals that exceed the dearest acceptance: the kind of fault, and the answer.
	Dear []string

	refused []refusal
}

type refusal struct {
	fault string
	cost  Cost
}

// A refusal may exceed the dearest acceptance by a little: it makes a text, and what it looks up
// before it fails may be stored in a place near the table's end.
const (
	hashedSlack = 512
	memorySlack = 2048
)

// exceeds reports whether a refusal costs more than the dearest acceptance a, among n members: it
// may look at all of them twice.
func (c Cost) exceeds(a Cost, n int) bool {
	return c.Signatures > max(1, a.Signatures) || c.Hashed > a.Hashed+hashedSlack ||
		c.Members > max(a.Members, 2*uint64(n))+64 || c.Memory > a.Memory+memorySlack
}

// Run measures all kinds of messages among the given numbers of members.
func Run(members ...int) ([]Row, error) {
	if !tally.Enabled {
		return nil, ErrNotCounted
	}
	// Memory is counted for the whole process: nothing else may take any.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var rows []Row
	for _, n := range members {
		for _, play := range []func(*world){(*world).peers, (*world).buckets} {
			played, err := perform(n, play)
			if err != nil {
				return nil, fmt.Errorf("%d members: %w", n, err)
			}
			for _, r := range played {
				rows = merge(rows, *r)
			}
		}
	}
	for i := range rows {
		rows[i].judge()
	}
	slices.SortStableFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Members, b.Members))
	})
	return rows, nil
}

// perform plays a run, and returns as an error that it takes another course than it should.
func perform(n int, play func(*world)) (rows []*Row, err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case lost:
			err = p.error
		default:
			panic(p)
		}
	}()
	w := newWorld(n)
	play(w)
	return w.rows, nil
}

// lost is the panic of a play that cannot continue.
type lost struct{ error }

func merge(rows []Row, r Row) []Row {
	i := slices.IndexFunc(rows, func(o Row) bool { return o.Kind == r.Kind && o.Members == r.Members })
	if i < 0 {
		return append(rows, r)
	}
	o := &rows[i]
	o.Accepts, o.Accepted = o.Accepts+r.Accepts, o.Accepted.most(r.Accepted)
	o.Refusals, o.Refused = o.Refusals+r.Refusals, o.Refused.most(r.Refused)
	o.refused = append(o.refused, r.refused...)
	return rows
}

func (r *Row) judge() {
	for _, f := range r.refused {
		if text := fmt.Sprintf("%s: %+v", f.fault, f.cost); f.cost.exceeds(r.Accepted, r.Members) && !slices.Contains(r.Dear, text) {
			r.Dear = append(r.Dear, text)
		}
	}
}

// kindOf returns the kind of a transaction's body, or of the message in it.
func kindOf(body host.Body) string {
	if m, ok := body.(host.RunMessage); ok {
		if parsed, err := coordinator.ParseMessage(m.Message); err == nil {
			return reflect.TypeOf(parsed).Name()
		}
		return "malformed"
	}
	return "tx " + reflect.TypeOf(body).Name()
}

// deliver counts what the delivery of a transaction takes.
func deliver(h *host.Host, tx []byte) (Cost, host.Code) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	tally.Take()
	err := h.Deliver(tx)
	work := tally.Take()
	runtime.ReadMemStats(&after)
	c := Cost{Signatures: work.Signatures, Hashed: work.Hashed, Members: work.Members, Memory: after.TotalAlloc - before.TotalAlloc}
	c.Hashed -= min(c.Hashed, 2*uint64(len(tx)))
	c.Memory -= min(c.Memory, 4*uint64(len(tx))) // what is parsed, and signed, is copied
	return c, host.CodeOf(err)
}

// stage is the chain at the moment at which a sample is taken.
type stage struct {
	w     *world
	bytes []byte
	h     *host.Host // nil after it has accepted something
}

func (s *stage) host() *host.Host {
	if s.h == nil {
		h, err := host.ParseHost(s.bytes, s.w.rules())
		if err != nil {
			panic(err)
		}
		h.Begin(host.Block{Height: h.Height() + 1, TimeMs: h.TimeMs(), Seed: s.w.seed})
		// Keys that the chain meets for the first time lengthen its table, whatever they send.
		for _, k := range []key.Private{s.w.stranger, s.w.owner, s.w.keys[0], s.w.keys[len(s.w.keys)-1]} {
			_ = h.Deliver(s.w.tx(k, host.CloseRun{Run: "none"}))
		}
		s.h = h
		runtime.GC()
	}
	return s.h
}

// try delivers a transaction to the stage and notes its cost.
func (s *stage) try(fault string, kind string, tx []byte) host.Code {
	cost, code := deliver(s.host(), tx)
	r := s.w.row(kind)
	if code == host.CodeOK {
		r.Accepts, r.Accepted = r.Accepts+1, r.Accepted.most(cost)
		return code
	}
	r.Refusals, r.Refused = r.Refusals+1, r.Refused.most(cost)
	r.refused = append(r.refused, refusal{fmt.Sprintf("%s: %v", fault, code), cost})
	return code
}

// sample is a transaction that was accepted at some stage.
type sample struct {
	from key.Private
	body host.Body
}

// flips is the number of places at which a sample's message is changed.
const flips = 24

// sample measures a message that is due now, wrong ones made from it, and those of earlier stages;
// and then delivers it to the chain.
func (w *world) sample(from key.Private, body host.Body) {
	if w.plain {
		w.block(0, w.tx(from, body))
		return
	}
	kind := kindOf(body)
	s := &stage{w: w, bytes: w.h.Append(nil)}
	refused := func(fault, kind string, tx []byte) {
		if s.try(fault, kind, tx) == host.CodeOK {
			s.h = nil
		}
	}
	good := w.tx(from, body)
	forged := slices.Clone(good)
	forged[len(forged)-1] ^= 1
	refused("forged", kind, forged)
	refused("short", kind, good[:len(good)-1])
	for name, k := range map[string]key.Private{"a stranger": w.stranger, "the owner": w.owner, "the last member": w.keys[len(w.keys)-1]} {
		if k.Public() != from.Public() {
			refused("from "+name, kind, w.tx(k, body))
		}
	}
	if m, ok := body.(host.RunMessage); ok {
		w.bend(m, func(fault string, m host.RunMessage) { refused(fault, kind, w.tx(from, m)) })
	}
	for _, old := range w.sent {
		refused("at another stage", kindOf(old.body), w.tx(old.from, old.body))
	}
	s.h = nil
	if code := s.try("", kind, good); code != host.CodeOK {
		w.fail("%s is refused: %v", kind, code)
	}
	refused("again", kind, w.tx(from, body))
	w.sent = append(w.sent, sample{from, body})
	w.block(0, good)
}

// bend makes wrong messages of a right one.
func (w *world) bend(m host.RunMessage, each func(fault string, m host.RunMessage)) {
	for k := range flips {
		if at := 1 + k*(len(m.Message)-1)/flips; at < len(m.Message) {
			b := slices.Clone(m.Message)
			b[at] ^= 1
			each(fmt.Sprintf("changed at %d of %d", at, len(b)), host.RunMessage{Run: m.Run, Value: m.Value, Message: b})
		}
	}
	each("with 64 KiB more", host.RunMessage{Run: m.Run, Message: append(slices.Clone(m.Message), make([]byte, 64<<10)...)})
	each("with tokens", host.RunMessage{Run: m.Run, Value: m.Value + 1, Message: m.Message})
	each("with all tokens", host.RunMessage{Run: m.Run, Value: wealth, Message: m.Message})
	each("from a pool", host.RunMessage{Run: m.Run, Value: 1, From: "none", Message: m.Message})
	each("to no run", host.RunMessage{Run: "none", Message: m.Message})
}

func (w *world) row(kind string) *Row {
	i := slices.IndexFunc(w.rows, func(r *Row) bool { return r.Kind == kind })
	if i < 0 {
		i = len(w.rows)
		w.rows = append(w.rows, &Row{Kind: kind, Members: w.n})
	}
	return w.rows[i]
}

func (w *world) fail(format string, args ...any) { panic(lost{fmt.Errorf(format, args...)}) }

// hash is a value of the given name.
func hash(name string) wire.Hash { return wire.Sum("entrain/lab/costs", []byte(name)) }
