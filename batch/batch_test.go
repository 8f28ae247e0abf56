package batch

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/wire"
	"pgregory.net/rapid"
)

// The lengths are those of Psyche's tests of its data assignment; ours come longest first.
func TestSplitVectors(t *testing.T) {
	for _, c := range []struct {
		total, n uint32
		want     []uint32
	}{
		{100, 4, []uint32{25, 25, 25, 25}},
		{13, 5, []uint32{3, 3, 3, 2, 2}},
		{384, 23, append(slices.Repeat([]uint32{17}, 16), slices.Repeat([]uint32{16}, 7)...)},
		{2, 3, []uint32{1, 1, 0}},
		{0, 2, []uint32{0, 0}},
		{math.MaxUint32, 2, []uint32{1 << 31, 1<<31 - 1}},
	} {
		var got []uint32
		for position := range c.n {
			_, count := Split(c.total, c.n, position)
			got = append(got, count)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%d split by %d is %d, want %d", c.total, c.n, got, c.want)
		}
	}
}

// tiles fails the test unless the n parts lie end to end and cover [0, total).
func tiles(t *rapid.T, total, n uint32, part func(position uint32) (from, count uint32)) {
	next := uint64(0)
	for position := range n {
		from, count := part(position)
		if uint64(from) != next {
			t.Fatalf("part %d of %d begins at %d, the one before ends at %d", position, n, from, next)
		}
		next += uint64(count)
	}
	if next != uint64(total) {
		t.Fatalf("the parts end at %d, the batch at %d", next, total)
	}
}

func TestSplitGivesEverySequenceOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.OneOf(rapid.Uint32Range(0, 100), rapid.Uint32()).Draw(t, "total")
		n := rapid.Uint32Range(1, 300).Draw(t, "n")
		tiles(t, total, n, func(position uint32) (from, count uint32) {
			from, count = Split(total, n, position)
			if base := total / n; count != base && count != base+1 {
				t.Fatalf("part %d of %d has %d of %d sequences", position, n, count, total)
			}
			return from, count
		})
	})
}

// anySpans draws spans that do not continue each other, far apart or out of order, as returned work may be.
func anySpans(t *rapid.T) []Span {
	return rapid.Custom(func(t *rapid.T) []Span {
		var spans []Span
		for range rapid.IntRange(0, 8).Draw(t, "spans") {
			start := rapid.OneOf(rapid.Uint64Range(0, 1000), rapid.Uint64Range(0, 1<<63)).Draw(t, "start")
			spans = Join(spans, Span{Start: start, Count: rapid.Uint32Range(1, 50).Draw(t, "count")})
		}
		return spans
	}).Draw(t, "batch")
}

// sequences lists the numbers of the sequences in spans.
func sequences(spans []Span) []uint64 {
	var list []uint64
	for _, s := range spans {
		for i := range uint64(s.Count) {
			list = append(list, s.Start+i)
		}
	}
	return list
}

func TestCutIsTheSequencesOfThePart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spans := anySpans(t)
		all := sequences(spans)
		total := Total(spans)
		if int(total) != len(all) {
			t.Fatalf("Total is %d of %d sequences", total, len(all))
		}
		from := rapid.Uint32Range(0, total).Draw(t, "from")
		count := rapid.Uint32Range(0, total-from).Draw(t, "count")
		part := Cut(spans, from, count)
		if got, want := sequences(part), all[from:from+count]; !slices.Equal(got, want) {
			t.Errorf("Cut(%v, %d, %d) = %v with the sequences %d, want %d", spans, from, count, part, got, want)
		}
	})
}

func TestSharesOfARoundAreItsBatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spans := anySpans(t)
		n := rapid.Uint32Range(1, 20).Draw(t, "n")
		var given []uint64
		for position := range n {
			from, count := Split(Total(spans), n, position)
			given = append(given, sequences(Cut(spans, from, count))...)
		}
		if want := sequences(spans); !slices.Equal(given, want) {
			t.Errorf("the shares of %d trainers hold %d, the batch %d", n, given, want)
		}
	})
}

func TestJoinMakesOneSpanOfNeighbours(t *testing.T) {
	var spans []Span
	for _, s := range []Span{{10, 5}, {15, 1}, {16, 0}, {20, 2}, {19, 1}, {1, 0}, {math.MaxUint32, math.MaxUint32}, {2 * math.MaxUint32, 1}} {
		spans = Join(spans, s)
	}
	want := []Span{{10, 6}, {20, 2}, {19, 1}, {math.MaxUint32, math.MaxUint32}, {2 * math.MaxUint32, 1}}
	if !slices.Equal(spans, want) {
		t.Errorf("got %v, want %v", spans, want)
	}
}

func TestEncodingIsAsDrawn(t *testing.T) {
	b := Append(nil, []Span{{100, 3}})
	if got, want := fmt.Sprintf("%x", b), "01000000640000000000000003000000"; got != want {
		t.Errorf("the example of the package comment is %s, want %s", got, want)
	}
	// Computed with Python's hashlib from the package comment.
	if got, want := Hash([]Span{{100, 3}, {500, 5}}).String(), "0725912f352753178e84ddf3c6f57a6e2532870cb17673af5b95afc2b8bc0b5c"; got != want {
		t.Errorf("the hash of the example is %s, want %s", got, want)
	}
}

func TestParseReadsWhatAppendWrote(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spans := anySpans(t)
		r := wire.NewReader(Append(nil, spans))
		if got := Parse(&r, 8); r.Done() != wire.OK || !slices.Equal(got, spans) {
			t.Errorf("%v is read as %v, %v", spans, got, r.Err())
		}
	})
}

func TestParseRefuses(t *testing.T) {
	raw := func(count uint32, spans ...Span) []byte {
		return append(wire.AppendU32(nil, count), Append(nil, spans)[4:]...)
	}
	for _, c := range []struct {
		name string
		in   []byte
		want wire.Error
	}{
		{"nothing", nil, wire.ErrShort},
		{"more spans than allowed", raw(3, Span{1, 1}, Span{5, 1}, Span{9, 1}), wire.ErrTooLong},
		{"a count of 2^32-1", raw(math.MaxUint32), wire.ErrTooLong},
		{"fewer spans than said", raw(2, Span{1, 1}), wire.ErrShort},
		{"an empty span", raw(1, Span{1, 0}), wire.ErrOutOfRange},
		{"a span beyond the numbers", raw(1, Span{math.MaxUint64, 1}), wire.ErrOutOfRange},
		{"2^32 sequences", raw(2, Span{1, 1 << 31}, Span{1 << 40, 1 << 31}), wire.ErrOutOfRange},
		{"neighbours", raw(2, Span{1, 4}, Span{5, 1}), wire.ErrNotCanonical},
		{"trailing bytes", append(raw(1, Span{1, 4}), 0), wire.ErrTrailing},
	} {
		r := wire.NewReader(c.in)
		got := Parse(&r, 2)
		if r.Done() != c.want || c.want != wire.ErrTrailing && got != nil {
			t.Errorf("%s: got %v, %q, want %q", c.name, got, r.Err(), c.want)
		}
	}
}

func TestImpossiblePartsPanic(t *testing.T) {
	spans := []Span{{100, 3}, {500, 5}}
	for name, f := range map[string]func(){
		"position beyond the trainers":      func() { Split(10, 3, 3) },
		"position among no trainers":        func() { Split(10, 0, 0) },
		"parts too short for the batch":     func() { weighted(10, 4, []uint32{1, 2}) },
		"weighted parts of nobody":          func() { weighted(10, 10, nil) },
		"part that ends beyond the batch":   func() { Cut(spans, 5, 4) },
		"part that begins beyond the batch": func() { Cut(spans, 9, 0) },
		"part of no batch":                  func() { Cut(nil, 0, 1) },
		"batch of 2^32 sequences":           func() { Total([]Span{{0, 1 << 31}, {1 << 40, 1 << 31}}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s does not panic", name)
				}
			}()
			f()
		}()
	}
}

// FuzzParse: what parses is canonical and within the limits, and can be divided.
func FuzzParse(f *testing.F) {
	f.Add(Append(nil, []Span{{100, 3}, {500, 5}}))
	f.Add(Append(nil, []Span{{0, math.MaxUint32}}))
	f.Add([]byte{255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := wire.NewReader(b)
		spans := Parse(&r, 16)
		if r.Done() != wire.OK {
			return
		}
		if again := Append(nil, spans); !slices.Equal(again, b) {
			t.Errorf("%x parses but is written %x", b, again)
		}
		total := Total(spans)
		if len(spans) > 16 || !slices.Equal(Cut(spans, 0, total), spans) {
			t.Errorf("%v is not its own whole", spans)
		}
	})
}

func ExampleCut() {
	spans := []Span{{Start: 100, Count: 3}, {Start: 500, Count: 5}}
	for position := range uint32(3) {
		from, count := Split(Total(spans), 3, position)
		fmt.Println(Cut(spans, from, count))
	}
	// Output:
	// [{100 3}]
	// [{500 3}]
	// [{503 2}]
}
