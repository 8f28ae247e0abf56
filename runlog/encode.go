package runlog

import (
	"math"
	"slices"
	"time"

	"github.com/entrain-network/entrain/node"
)

// The types of records.
const (
	typeEvent    = 1
	typeStanding = 2
	typeTrust    = 3 // a standing, and what changed of checks, disputes and tokens
	typeHeard    = 4
	typeWindows  = 5 // a standing, and what changed of windows, scores and validators
	typeBoth     = 6 // a standing, and what changed of both
)

// codec encodes and decodes the records of one file. It remembers the members told of, because their rows are written in full
// only when more than their counters changed.
type codec struct{ members []Member }

// kinds of events have a number, from 1; 0 stands for another kind, whose name follows. New ones go to the end.
var kinds = []string{"state", "loaded", "trained", "applied", "evaluated", "healing", "healed", "checkpoint", "refused", "note",
	"peers", "committed", "fetched", "kept", "finished", "process", "check", "verdict", "dispute", "convicted", "signed",
	"sample", "scored"}

// words are the names of phases and of members' statuses, likewise.
var words = []string{"", "Uninitialized", "WaitingForMembers", "Warmup", "RoundTrain", "RoundWitness", "Cooldown", "Finished", "Paused",
	"waiting", "ready", "active", "dropped", "withdrawn", "ejected", "none", "replaced"}

// Append appends the encoding of a record.
func (c *codec) append(dst []byte, r Record) []byte {
	p := pen{b: dst}
	kind := uint8(typeEvent)
	if r.Standing != nil {
		kind = typeStanding
		switch trust, windows := r.Standing.Trust != nil, r.Standing.Windows != nil; {
		case trust && windows:
			kind = typeBoth
		case windows:
			kind = typeWindows
		case trust:
			kind = typeTrust
		}
	}
	if r.Heard != nil {
		kind = typeHeard
	}
	p.u8(kind)
	p.uint(uint64(max(0, r.Time.UnixMicro())))
	p.text(r.Who)
	switch {
	case r.Heard != nil:
		appendHeard(&p, r.Heard)
	case r.Standing != nil:
		c.standing(&p, r.Standing)
		if r.Standing.Trust != nil {
			appendTrust(&p, r.Standing.Trust)
		}
		if r.Standing.Windows != nil {
			appendWindows(&p, r.Standing.Windows)
		}
	default:
		appendEvent(&p, r.Event)
	}
	return p.b
}

// parse reads a record.
func (c *codec) parse(b []byte) (Record, error) {
	e := eye{b: b}
	kind := e.u8()
	r := Record{Time: time.UnixMicro(int64(e.uint(math.MaxInt64))).UTC(), Who: e.text()}
	switch kind {
	case typeEvent:
		r.Event = parseEvent(&e)
	case typeStanding:
		r.Standing = c.parseStanding(&e)
	case typeTrust, typeWindows, typeBoth:
		r.Standing = c.parseStanding(&e)
		if r.Standing != nil && kind != typeWindows {
			r.Standing.Trust = parseTrust(&e)
		}
		if r.Standing != nil && kind != typeTrust && !e.bad {
			r.Standing.Windows = parseWindows(&e)
		}
	case typeHeard:
		r.Heard = parseHeard(&e)
	default:
		e.fail()
	}
	if e.bad || len(e.b) > 0 {
		return Record{}, errFormat
	}
	return r, nil
}

// name writes one of a list of names, or another.
func (p *pen) name(list []string, s string) {
	i := slices.Index(list, s)
	p.uint(uint64(i + 1))
	if i < 0 {
		p.text(s)
	}
}

func (e *eye) name(list []string) string {
	i := e.uint(uint64(len(list)))
	if i > 0 {
		return list[i-1]
	}
	s := e.text()
	if slices.Contains(list, s) {
		e.fail()
	}
	return s
}

// field is one of an event's fields: a pointer to it, of one of the types below.
func fields(ev *node.Event) []any {
	// The order is the format: bit i of the mask says whether field i follows. New fields go to the end.
	return []any{&ev.Phase, &ev.Epoch, &ev.Round, &ev.Step, &ev.Steps, &ev.Members, &ev.Status, &ev.Points, &ev.Loss, &ev.HeldOut,
		&ev.Tokens, &ev.Seconds, &ev.Bytes, &ev.Total, &ev.Results, &ev.Params, &ev.Manifest, &ev.Text,
		&ev.Member, &ev.Peers, &ev.LR, &ev.GradNorm, &ev.Commitment,
		&ev.PeakShare, &ev.Prompt, &ev.Task, &ev.Acc, &ev.AccNorm}
}

// appendEvent writes the kind, a mask of the fields that are not zero, and those.
func appendEvent(p *pen, ev *node.Event) {
	copied := *ev // fields points into it, and must not into the caller's
	p.name(kinds, ev.Kind)
	all := fields(&copied)
	var mask uint64
	for i, f := range all {
		if !isZero(f) {
			mask |= 1 << i
		}
	}
	p.uint(mask)
	for i, f := range all {
		if mask>>i&1 == 0 {
			continue
		}
		switch f := f.(type) {
		case *string:
			p.text(*f)
		case *uint32:
			p.uint(uint64(*f))
		case *uint64:
			p.uint(*f)
		case *int:
			p.uint(uint64(max(0, *f)))
		case *float32:
			p.f32(*f)
		case *float64:
			p.f64(*f)
		}
	}
}

func isZero(f any) bool {
	switch f := f.(type) {
	case *string:
		return *f == ""
	case *uint32:
		return *f == 0
	case *uint64:
		return *f == 0
	case *int:
		return *f <= 0
	case *float32:
		return math.Float32bits(*f) == 0
	case *float64:
		return math.Float64bits(*f) == 0
	}
	panic("runlog: a field of an event has a type that the format has not")
}

func parseEvent(e *eye) *node.Event {
	ev := &node.Event{Kind: e.name(kinds)}
	all := fields(ev)
	mask := e.uint(1<<len(all) - 1)
	for i, f := range all {
		if mask>>i&1 == 0 {
			continue
		}
		switch f := f.(type) {
		case *string:
			*f = e.text()
		case *uint32:
			*f = e.u32()
		case *uint64:
			*f = e.u64()
		case *int:
			*f = int(e.uint(math.MaxInt32))
		case *float32:
			*f = e.f32()
		case *float64:
			*f = e.f64()
		}
		if isZero(f) {
			e.fail()
		}
	}
	return ev
}
