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

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/coordinator/score"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/wire"
)

// anyText draws texts, also such as look like hashes.
var anyText = rapid.OneOf(rapid.StringN(0, 40, textBytesMax), rapid.StringMatching(`[0-9a-f]{64}`), rapid.StringMatching(`[0-9a-f]{13,18}`))

// draw fills the fields that the schema lists of a value with what a log may hold.
func draw(t *rapid.T, c *codec, v reflect.Value) {
	if rapid.Bool().Draw(t, "zero") {
		return
	}
	switch x := v.Addr().Interface().(type) {
	case *Set:
		*x = append(*x, rapid.SliceOfN(rapid.SampledFrom([]byte{0, 255, 7}), 0, 40).Draw(t, "set")...)
		return
	case *Member:
		x.Index = coordinator.Member(rapid.Uint32Range(0, 5).Draw(t, "index"))
		draw(t, c, v.Field(1))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(anyText.Draw(t, "text"))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int:
		v.SetInt(int64(rapid.IntRange(0, math.MaxInt32).Draw(t, "int")))
	case reflect.Int16:
		v.SetInt(int64(rapid.Int16().Draw(t, "int16")))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(rapid.Uint64Range(0, 1<<v.Type().Bits()-1).Draw(t, "uint"))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(rapid.Float32().Draw(t, "float")))
	case reflect.Array:
		for i := range v.Len() {
			draw(t, c, v.Index(i))
		}
	case reflect.Slice:
		for i := range rapid.IntRange(0, 3).Draw(t, "rows") {
			v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
			draw(t, c, v.Index(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		draw(t, c, v.Elem())
		if v.Elem().IsZero() {
			v.SetZero()
		}
	case reflect.Struct:
		for _, f := range c.plan(v.Type()) {
			draw(t, c, v.Field(f))
		}
	}
}

func TestRecordsReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var in, out codec
		for range rapid.IntRange(1, 4).Draw(t, "records") {
			r := Record{Time: time.UnixMicro(rapid.Int64Range(0, 1<<50).Draw(t, "time")).UTC(), Who: anyText.Draw(t, "who")}
			switch rapid.IntRange(0, 2).Draw(t, "type") {
			case 0:
				all := append(event.All(), event.Other{Name: "some other"})
				r.Event = all[rapid.IntRange(0, len(all)-1).Draw(t, "kind")]
				if typ := in.event(r.Event.Kind()); typ != nil {
					v := reflect.New(typ).Elem()
					draw(t, &in, v)
					r.Event = v.Interface().(event.Event)
				}
			case 1:
				r.Standing = &Standing{}
				draw(t, &in, reflect.ValueOf(r.Standing).Elem())
			default:
				r.Heard = &Heard{}
				draw(t, &in, reflect.ValueOf(r.Heard).Elem())
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

// The schema covers every field of what a log holds, but for those named here.
func TestSchemaCoversAllFields(t *testing.T) {
	var c codec
	seen := map[reflect.Type]bool{}
	var left []string
	var visit func(reflect.Type)
	visit = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Array, reflect.Slice, reflect.Pointer:
			visit(typ.Elem())
		case reflect.Struct:
			if typ == reflect.TypeFor[Member]() {
				typ = reflect.TypeFor[coordinator.MemberState]()
			}
			if seen[typ] {
				return
			}
			seen[typ] = true
			plan := c.plan(typ)
			for i := range typ.NumField() {
				if !slices.Contains(plan, i) {
					left = append(left, typ.Name()+"."+typ.Field(i).Name)
				} else {
					visit(typ.Field(i).Type)
				}
			}
		}
	}
	for _, ev := range event.All() {
		visit(reflect.TypeOf(ev))
	}
	visit(reflect.TypeFor[Standing]())
	visit(reflect.TypeFor[Heard]())
	slices.Sort(left)
	if want := []string{"Check.Params", "Check.Share", "Dispute.Children", "Heard.losses", "State.Snapshot", "Validator.Bench", "Validator.Until"}; !slices.Equal(left, want) {
		t.Errorf("the schema leaves out %q, want %q", left, want)
	}
	if lines := strings.Count(strings.TrimSpace(schema), "\n") + 1; lines != len(seen) {
		t.Errorf("the schema has %d lines for %d types", lines, len(seen))
	}
}

// A log that was written once must be readable for ever: the lists are part of the format, and only grow at their ends.
func TestFormatStaysAsItWas(t *testing.T) {
	var c codec
	var got bytes.Buffer
	for _, r := range []Record{
		{Time: time.UnixMicro(1e15), Event: event.Trained{Step: 3, Loss: 1.5}},
		{Time: time.UnixMicro(1e15 + 1), Who: "bob", Standing: &Standing{Height: 7, Head: Head{Name: "r", Phase: "RoundTrain"},
			Members: []Member{{Index: 1, MemberState: coordinator.MemberState{Status: coordinator.StatusActive, Points: 300}}},
			Rounds:  []Round{{Number: 5, Active: Set{255, 255, 1}, Witnesses: []Witness{{Member: 1, Complete: true}}}}}},
		{Time: time.UnixMicro(1e15 + 2), Standing: &Standing{Height: 8, Head: Head{Name: "r", Phase: "RoundWitness"},
			Members: []Member{{Index: 1, MemberState: coordinator.MemberState{Status: coordinator.StatusActive, Points: 301}}}}},
	} {
		got.WriteString(hex.EncodeToString(c.append(nil, r)) + "\n")
	}
	// Type 1, time, nobody, "trained"; fields 2 and 3: 3, 1.5. Type 2, time, "bob"; ... Of the third
	// record's head and member only what changed follows.
	const want = "0180809aa6eaafe301000e747261696e65640c030000c03f\n" +
		"0281809aa6eaafe30106626f621d078104027214526f756e64547261696e01010603ac0201811805010501010302ff0101\n" +
		"0282809aa6eaafe301000d08800418526f756e645769746e657373010104ad02\n"
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
		{"earlier version", []byte("ELOG\x01\x00\x00\x00"), "the log has version 1, this program reads version 2"},
		{"flipped bit", flipped, "checksum"},
		{"unknown type", file([]byte{9, 0, 0}), "not in the format"},
		{"trailing byte", file(append(bytes.Clone(body), 0)), "not in the format"},
		{"empty record", file(nil), "a record of 0 bytes"},
		{"huge record", append([]byte(fileMagic), 255, 255, 255, 255, 0, 0, 0, 0), "a record of 4294967295 bytes"},
	} {
		r := newReader(bytes.NewReader(x.file), "f")
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
		r := newReader(bytes.NewReader(whole[:n]), "f")
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
	f.Add(c.append(nil, Record{Standing: &Standing{Head: Head{Name: "r", Phase: "Warmup"},
		Members: []Member{{Index: 2, MemberState: coordinator.MemberState{Points: 1}}, {Index: 2, MemberState: coordinator.MemberState{Points: 2}}},
		Rounds:  []Round{{Number: 1, Active: Set{1, 1, 2}, Witnesses: []Witness{{Member: 3, Reported: true}}}},
		Trust: &Trust{Whole: true, Checks: []dispute.Check{{Round: 3, Member: 1, Verifier: 2}}, Closed: []Share{{2, 1}}, Ended: []uint32{4},
			Disputes:    []dispute.Dispute{{ID: 5, Stage: dispute.StageEvidence, TieBreakers: []dispute.TieVote{{Member: 1, Vote: 2}}}},
			Convictions: []dispute.Conviction{{Number: 1, Offence: dispute.WrongResult, By: dispute.NoMember}}},
		Windows: &Windows{Whole: true, SeatsTold: true, Commits: []Commits{{3, 2}}, Validators: []score.Validator{{Seat: 1}},
			Period: &score.Scores{Period: 1, Members: []score.MemberScore{{Member: 1, Score: -5}},
				Validators: []score.ValidatorScores{{Seat: 1, Scores: []score.Score{{Member: 1, Value: 8}}}}}},
	}}))
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
		r := newReader(bytes.NewReader(b), "f")
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
