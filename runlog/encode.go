package runlog

import (
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/wire"
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

// Types of an event's fields.
const (
	aText = iota
	aNumber
	aFloat32
	aFloat64
)

type eventField struct {
	name string
	typ  uint8
}

// eventFields are the fields of events by their names in JSON. The order is the format: bit i of a
// mask says whether field i follows. New fields go to the end.
var eventFields = []eventField{
	{"phase", aText}, {"epoch", aNumber}, {"round", aNumber}, {"step", aNumber}, {"steps", aNumber},
	{"members", aNumber}, {"status", aText}, {"points", aNumber}, {"loss", aFloat32},
	{"heldout", aFloat32}, {"tokens", aNumber}, {"seconds", aFloat64}, {"bytes", aNumber},
	{"total", aNumber}, {"results", aNumber}, {"params", aText}, {"manifest", aText}, {"text", aText},
	{"member", aNumber}, {"peers", aNumber}, {"lr", aFloat32}, {"grad_norm", aFloat64},
	{"commitment", aText}, {"peak_share", aFloat64}, {"prompt", aText}, {"task", aText},
	{"acc", aFloat64}, {"acc_norm", aFloat64},
}

// fieldName returns the name of a struct's field in the format, and whether its zero is left out; ""
// for a field that is not written.
func fieldName(f reflect.StructField) (name string, omits bool) {
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	return strings.TrimPrefix(name, "-"), options != ""
}

// valuesOf returns the fields of an event that are written, by name. Each is a string, uint64,
// float32 or float64.
func valuesOf(ev event.Event) map[string]any {
	if o, ok := ev.(event.Other); ok {
		return o.Fields
	}
	values := make(map[string]any)
	for field, v := range reflect.ValueOf(ev).Fields() {
		name, omits := fieldName(field)
		if name == "" || omits && v.IsZero() {
			continue
		}
		switch x := v.Interface().(type) {
		case int:
			values[name] = uint64(max(0, x))
		case uint32:
			values[name] = uint64(x)
		case wire.Hash:
			values[name] = x.String()
		default:
			values[name] = x
		}
	}
	return values
}

// eventOf returns the event of a kind with these fields. What the vocabulary has no place for makes
// it an event.Other, so that nothing of a log is lost.
func eventOf(kind string, values map[string]any) event.Event {
	other := event.Other{Name: kind, Fields: values}
	for _, ev := range event.All() {
		if ev.Kind() != kind {
			continue
		}
		made := reflect.New(reflect.TypeOf(ev)).Elem()
		for field, v := range made.Fields() {
			name, _ := fieldName(field)
			x, ok := values[name]
			if !ok {
				continue
			}
			if v.Type() == reflect.TypeFor[wire.Hash]() {
				text, _ := x.(string)
				if v.Addr().Interface().(*wire.Hash).UnmarshalText([]byte(text)) != nil {
					return other
				}
				continue
			}
			v.Set(reflect.ValueOf(x).Convert(v.Type()))
		}
		if ev = made.Interface().(event.Event); maps.EqualFunc(valuesOf(ev), values, same) {
			return ev
		}
	}
	return other
}

// same reports whether two values of a field are equal, or both not a number.
func same(a, b any) bool { return a == b || a != a && b != b }

// appendEvent writes the kind, a mask of the fields that follow, and these.
func appendEvent(p *pen, ev event.Event) {
	p.name(kinds, ev.Kind())
	values := valuesOf(ev)
	var mask uint64
	for i, f := range eventFields {
		if _, ok := values[f.name]; ok {
			mask |= 1 << i
		}
	}
	p.uint(mask)
	for _, f := range eventFields {
		switch x := values[f.name].(type) {
		case string:
			p.text(x)
		case uint64:
			p.uint(x)
		case float32:
			p.f32(x)
		case float64:
			p.f64(x)
		}
	}
}

func parseEvent(e *eye) event.Event {
	kind := e.name(kinds)
	mask := e.uint(1<<len(eventFields) - 1)
	values := make(map[string]any)
	for i, f := range eventFields {
		if mask>>i&1 == 0 {
			continue
		}
		switch f.typ {
		case aText:
			values[f.name] = e.text()
		case aNumber:
			values[f.name] = e.u64()
		case aFloat32:
			values[f.name] = e.f32()
		case aFloat64:
			values[f.name] = e.f64()
		}
	}
	return eventOf(kind, values)
}
