package runlog

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/wire"
)

// anyText draws texts, also such as look like hashes.
var anyText = rapid.OneOf(rapid.StringN(0, 40, TextBytesMax), rapid.StringMatching(`[0-9a-f]{64}`), rapid.StringMatching(`[0-9a-f]{13,18}`))

func anySet(t *rapid.T) Set {
	return append(Set{}, rapid.SliceOfN(rapid.SampledFrom([]byte{0, 255, 7}), 0, 40).Draw(t, "set")...)
}

// anyEvent draws an event of the vocabulary, or another.
func anyEvent(t *rapid.T) event.Event {
	all := append(event.All(), event.Other{})
	ev := all[rapid.IntRange(0, len(all)-1).Draw(t, "kind")]
	if _, ok := ev.(event.Other); ok {
		return event.Other{Name: rapid.SampledFrom([]string{"some other", ""}).Draw(t, "name"), Fields: map[string]any{
			"text": anyText.Draw(t, "text"), "round": rapid.Uint64().Draw(t, "u64"), "loss": rapid.Float32().Draw(t, "f32"),
		}}
	}
	made := reflect.New(reflect.TypeOf(ev)).Elem()
	for field, v := range made.Fields() {
		if name, _ := fieldName(field); name == "" || !rapid.Bool().Draw(t, "set") {
			continue
		}
		switch p := v.Addr().Interface().(type) {
		case *string:
			*p = anyText.Draw(t, "text")
		case *wire.Hash:
			*p = wire.Hash{rapid.Byte().Draw(t, "byte")}
		case *uint32:
			*p = rapid.Uint32().Draw(t, "u32")
		case *uint64:
			*p = rapid.Uint64().Draw(t, "u64")
		case *int:
			*p = rapid.IntRange(0, math.MaxInt32).Draw(t, "int")
		case *float32:
			*p = rapid.Float32().Draw(t, "f32")
		case *float64:
			*p = rapid.Float64().Draw(t, "f64")
		}
	}
	return made.Interface().(event.Event)
}

func anyStanding(t *rapid.T) *Standing {
	s := &Standing{Height: rapid.Uint64().Draw(t, "height"), TimeMs: rapid.Uint64().Draw(t, "time")}
	for _, f := range headTexts(&s.Head) {
		*f = anyText.Draw(t, "text")
	}
	for _, f := range headFields(&s.Head) {
		*f = rapid.Uint32().Draw(t, "field")
	}
	s.Phase = rapid.SampledFrom(append(slices.Clone(words), "Resting")).Draw(t, "phase")
	s.Points, s.Pausing, s.Draining = rapid.Uint64().Draw(t, "points"), rapid.Bool().Draw(t, "pausing"), rapid.Uint8().Draw(t, "draining")
	for i := range rapid.Uint32Range(0, 5).Draw(t, "members") {
		s.Members = append(s.Members, Member{
			Index: i, Key: rapid.SampledFrom([]string{strings.Repeat("ab", 32), strings.Repeat("cd", 32)}).Draw(t, "key"), Status: "active",
			Points: rapid.Uint64().Draw(t, "points"), Missed: rapid.Uint8().Draw(t, "missed"), LeftMs: rapid.Uint64Range(0, 1).Draw(t, "left"),
		})
	}
	for range rapid.IntRange(0, 4).Draw(t, "rounds") {
		s.Rounds = append(s.Rounds, Round{
			Number: rapid.Uint32().Draw(t, "number"), Seed: anyText.Draw(t, "seed"), Final: rapid.Bool().Draw(t, "final"),
			Witnesses: []Witness{{Member: rapid.Uint32Range(0, membersMax-1).Draw(t, "witness"), Reported: true}},
			Active:    anySet(t), Expected: anySet(t), Accepted: anySet(t),
			Sequences: append([]uint32(nil), rapid.SliceOfN(rapid.Uint32(), -1, 5).Draw(t, "sequences")...),
		})
	}
	return s
}

func TestRecordsReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var in, out codec
		for range rapid.IntRange(1, 4).Draw(t, "records") {
			r := Record{Time: time.UnixMicro(rapid.Int64Range(0, 1<<50).Draw(t, "time")).UTC(), Who: anyText.Draw(t, "who")}
			switch rapid.IntRange(0, 2).Draw(t, "type") {
			case 0:
				r.Event = anyEvent(t)
			case 1:
				r.Standing = anyStanding(t)
			default:
				r.Heard = &Heard{
					Round: rapid.Uint32().Draw(t, "round"), Committed: rapid.Uint32().Draw(t, "committed"), LossSum: rapid.Float64().Draw(t, "sum"),
					LossMin: rapid.Float32().Draw(t, "min"), Bytes: rapid.Uint64().Draw(t, "bytes"), Fetched: rapid.Uint32().Draw(t, "fetched"),
				}
			}
			got, err := out.parse(in.append(nil, r))
			if err != nil {
				t.Fatalf("%+v: %v", r, err)
			}
			if !reflect.DeepEqual(got, r) {
				t.Fatalf("wrote %+v\nread  %+v", r, got)
			}
		}
	})
}

// Every field of every event is in the format, with its type.
func TestAllFieldsOfAnEventAreWritten(t *testing.T) {
	for _, ev := range event.All() {
		for field := range reflect.ValueOf(ev).Fields() {
			name, _ := fieldName(field)
			if i := slices.IndexFunc(eventFields, func(f eventField) bool { return f.name == name }); name != "" && i < 0 {
				t.Errorf("%T.%s: %q is not among eventFields", ev, field.Name, name)
			} else if name != "" && eventFields[i].typ != typeOf(field.Type) {
				t.Errorf("%T.%s: %q has another type in eventFields", ev, field.Name, name)
			}
		}
	}
}

func typeOf(t reflect.Type) uint8 {
	switch t.Kind() {
	case reflect.Float32:
		return aFloat32
	case reflect.Float64:
		return aFloat64
	case reflect.String, reflect.Array:
		return aText
	}
	return aNumber
}

// A log that was written once must be readable for ever: the lists are part of the format, and only grow at their ends.
func TestFormatStaysAsItWas(t *testing.T) {
	var c codec
	var got bytes.Buffer
	for _, r := range []Record{
		{Time: time.UnixMicro(1e15), Event: event.Other{Name: "trained", Fields: map[string]any{"step": uint64(3), "loss": float32(1.5), "text": "ä"}}},
		{Time: time.UnixMicro(1e15 + 1), Who: "bob", Standing: &Standing{Height: 7, Head: Head{Run: "r", ID: strings.Repeat("0f", 8), Phase: "RoundTrain"},
			Members: []Member{{Index: 1, Key: strings.Repeat("a0", 8), Status: "active", Points: 300}},
			Rounds:  []Round{{Number: 5, Active: Set{255, 255, 1}, Witnesses: []Witness{{Member: 1, Complete: true}}}}}},
	} {
		got.WriteString(hex.EncodeToString(c.append(nil, r)) + "\n")
	}
	// type 1, time, nobody, kind 3, fields 3, 8 and 17: 3, 1.5, "ä"; type 2, time, "bob", ...
	const want = "0180809aa6eaafe3010003888208030000c03f04c3a4\n" +
		"0281809aa6eaafe30106626f6207000272110f0f0f0f0f0f0f0f000000000000000000000000000000000500000000000000000103" +
		"11a0a0a0a0a0a0a0a000000000000cac0200000001050000000000000000000001050302ff01010000\n"
	if got.String() != want {
		t.Errorf("got\n%swant\n%s", got.String(), want)
	}
}

func TestReaderRefusesWhatIsNoLog(t *testing.T) {
	var c codec
	body := c.append(nil, Record{Event: event.Note{Text: "hello"}})
	file := func(bodies ...[]byte) []byte {
		b := []byte(fileMagic)
		for _, x := range bodies {
			b = appendFrame(b, x)
		}
		return b
	}
	flipped := file(body)
	flipped[len(flipped)-1] ^= 1
	for _, x := range []struct {
		name string
		file []byte
		want string
	}{
		{"other file", []byte("#!/bin/sh\n"), "does not begin as a log"},
		{"later version", []byte("ELOG\x02\x00\x00\x00"), "of this version"},
		{"flipped bit", flipped, "checksum"},
		{"unknown type", file([]byte{9, 0, 0}), "not in the format"},
		{"trailing byte", file(append(bytes.Clone(body), 0)), "not in the format"},
		{"empty record", file(nil), "a record of 0 bytes"},
		{"huge record", append([]byte(fileMagic), 255, 255, 255, 255, 0, 0, 0, 0), "a record of 4294967295 bytes"},
	} {
		r := NewReader(bytes.NewReader(x.file), "f")
		_, err := r.Next()
		var format *FormatError
		if !errors.As(err, &format) || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want %q", x.name, err, x.want)
		}
		if _, again := r.Next(); !errors.Is(again, err) {
			t.Errorf("%s: after the error came %v", x.name, again)
		}
	}
	whole := file(body, body)
	for n := range whole {
		r := NewReader(bytes.NewReader(whole[:n]), "f")
		var err error
		records := -1
		for ; err == nil; records++ {
			_, err = r.Next()
		}
		clean := n == 0 || n == len(fileMagic) || n == len(fileMagic)+frameBytes+len(body)
		if clean != (err == io.EOF) || clean == errors.Is(err, ErrTorn) {
			t.Errorf("cut after %d of %d bytes: %d records, then %v", n, len(whole), records, err)
		}
	}
}

// FuzzParse checks that what parses is the one encoding of what it says.
func FuzzParse(f *testing.F) {
	var c codec
	f.Add(c.append(nil, Record{Time: time.UnixMicro(5), Who: "w", Event: event.Applied{Step: 1, Params: wire.Hash{1}, Results: 3}}))
	f.Add(c.append(nil, Record{Standing: &Standing{Head: Head{Run: "r", Phase: "Warmup"}, Members: []Member{{Index: 2, Key: "k", Status: "ready"}, {Index: 2, Key: "k", Status: "active"}},
		Rounds: []Round{{Number: 1, Active: Set{1, 1, 2}, Witnesses: []Witness{{Member: 3, Reported: true}}}}}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		var in, out codec
		r, err := in.parse(b)
		if err != nil {
			return
		}
		if again := out.append(nil, r); !bytes.Equal(again, b) {
			t.Errorf("%x parses but is written as %x", b, again)
		}
	})
}

// FuzzReader checks that no file makes a reader fail other than by an error.
func FuzzReader(f *testing.F) {
	var c codec
	f.Add(appendFrame([]byte(fileMagic), c.append(nil, Record{Event: event.Note{}})))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := NewReader(bytes.NewReader(b), "f")
		for {
			if _, err := r.Next(); err != nil {
				break
			}
		}
		if r.Offset() > int64(len(b)) {
			t.Errorf("%d bytes read of %d", r.Offset(), len(b))
		}
	})
}

func TestListsOfNamesHaveNoTwice(t *testing.T) {
	for _, list := range [][]string{kinds, words} {
		sorted := slices.Sorted(slices.Values(list))
		if len(slices.Compact(sorted)) != len(list) {
			t.Errorf("a name is twice in %q", list)
		}
	}
}
