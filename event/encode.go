package event

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// All holds a zero value of each type above, the vocabulary that logs and JSON are read by.
func All() []Event {
	return []Event{
		State{}, Loaded{}, Peers{}, Trained{}, Signed{}, Committed{}, Fetched{}, Applied{}, Evaluated{},
		Sample{}, Scored{}, Healing{}, Healed{}, Revealed{}, Traffic{}, Tidied{}, Checkpoint{},
		Refused{}, Check{}, Verdict{}, Dispute{}, Convicted{}, Note{}, Kept{}, Finished{}, Process{},
	}
}

// Other is an event of a kind that this version of the program does not know.
type Other struct {
	Name string `json:"-"`
}

// Kind returns the event's name.
func (o Other) Kind() string { return o.Name }

// Marshal returns an event as one JSON object: the fields of head, which must encode as an object
// with at least one field, then "event" with the kind, then the event's own fields.
func Marshal(head any, ev Event) ([]byte, error) {
	kind := struct {
		Kind string `json:"event"`
	}{ev.Kind()}
	var out []byte
	for _, part := range []any{head, kind, ev} {
		b, err := json.Marshal(part)
		if err != nil {
			return nil, err
		}
		b = bytes.TrimSuffix(bytes.TrimPrefix(b, []byte("{")), []byte("}"))
		if len(b) == 0 {
			continue
		}
		out = append(append(out, ','), b...)
	}
	out[0] = '{'
	return append(out, '}'), nil
}

// Timed is an event with the time at which it happened. Its JSON is one object, as Marshal writes.
type Timed struct {
	Time  string `json:"time"`
	Event Event  `json:"-"`
}

// MarshalJSON implements json.Marshaler.
func (t Timed) MarshalJSON() ([]byte, error) {
	type head Timed
	return Marshal(head(t), t.Event)
}

// Unmarshal reads an event from an object as Marshal writes it. One of an unknown kind is an Other.
func Unmarshal(b []byte) (Event, error) {
	var head struct {
		Kind string `json:"event"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return nil, err
	}
	for _, ev := range All() {
		if ev.Kind() != head.Kind {
			continue
		}
		p := reflect.New(reflect.TypeOf(ev))
		if err := json.Unmarshal(b, p.Interface()); err != nil {
			return nil, err
		}
		return p.Elem().Interface().(Event), nil
	}
	return Other{Name: head.Kind}, nil
}
