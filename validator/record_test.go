package validator

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/coordinator"
	scores "github.com/entrain-network/entrain/coordinator/score"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/score"
	"github.com/entrain-network/entrain/wire"
)

func record() Record {
	r := Record{Run: wire.Sum("run"), Self: key.Public{7}, Ballot: Ballot{
		Period: 3, Salt: wire.Sum("salt"), Scores: []scores.Score{{Member: 0, Value: -scores.One}, {Member: 5, Value: 17}},
	}}
	r.Book.Note(key.Public{1}, 4, 0.25, score.Fair, 0)
	r.Book.Note(key.Public{2}, 5, -1, score.WrongWork, 0)
	return r
}

func TestRecordsComeBack(t *testing.T) {
	for _, r := range []Record{record(), {}} {
		b := r.Append(nil)
		back, err := ParseRecord(b)
		if err != nil || !reflect.DeepEqual(back, r) {
			t.Errorf("%+v came back as %+v, %v", r, back, err)
		}
		for i := range b {
			bad := bytes.Clone(b)
			bad[i] ^= 1
			if _, err := ParseRecord(bad); err == nil {
				t.Fatalf("with byte %d changed it is still a record", i)
			}
			if _, err := ParseRecord(b[:i]); err == nil {
				t.Fatalf("its first %d bytes are a record", i)
			}
		}
	}
}

func FuzzParseRecord(f *testing.F) {
	r := record()
	f.Add(r.Append(nil))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, body []byte) {
		// What a disk damages the check sum shows; the parser must stand what has the right one.
		sum := wire.Sum(recordDomain, body)
		in := append(bytes.Clone(body), sum[:]...)
		for _, b := range [][]byte{body, in} {
			if r, err := ParseRecord(b); err == nil && !bytes.Equal(r.Append(nil), b) {
				t.Errorf("%x parses and is written as %x", b, r.Append(nil))
			}
		}
	})
}

// crowd is a window of so many results.
func crowd(number coordinator.Round, n int) (*window, []*result) {
	w := &window{number: number, trains: true, seed: wire.Sum("slice", wire.AppendU32(nil, uint32(number)))}
	for i := range n {
		w.results = append(w.results, &result{member: coordinator.Member(i), key: key.Public{1, byte(i)}, accepted: true, spans: []batch.Span{{Start: uint64(i) * 8, Count: 8}}})
	}
	return w, w.results
}

func TestEverybodyIsEvaluatedAndNobodyForeseesWhen(t *testing.T) {
	const members, windows = 20, 60
	a, b := New(Config{Secret: wire.Sum("a"), Sample: 3}), New(Config{Secret: wire.Sum("b"), Sample: 3})
	again := New(Config{Secret: wire.Sum("a"), Sample: 3})
	last, longest, same, all := map[coordinator.Member]coordinator.Round{}, coordinator.Round(0), 0, 0
	for number := coordinator.Round(1); number <= windows; number++ {
		w, results := crowd(number, members)
		drawn, other, repeated := a.draw(w, results), b.draw(w, results), again.draw(w, results)
		if len(drawn) != 3 || !reflect.DeepEqual(drawn, repeated) {
			t.Fatalf("window %d: %d drawn, or others after a restart", number, len(drawn))
		}
		seen := map[coordinator.Member]bool{}
		for _, r := range drawn {
			if seen[r.member] {
				t.Fatalf("window %d: member %d is drawn twice", number, r.member)
			}
			seen[r.member] = true
			longest = max(longest, number-last[r.member])
			last[r.member] = number
			a.book.Note(r.key, uint32(number), 0.5, score.Fair, 0)
			again.book.Note(r.key, uint32(number), 0.5, score.Fair, 0)
		}
		for _, r := range other {
			all++
			if seen[r.member] {
				same++
			}
			b.book.Note(r.key, uint32(number), 0.5, score.Fair, 0)
		}
	}
	if len(last) != members || longest > 30 {
		t.Errorf("%d of %d members were evaluated; one waited %d windows", len(last), members, longest)
	}
	if same*3 > all { // 3 of 20 by chance
		t.Errorf("two validators drew the same in %d of %d cases", same, all)
	}
}

func TestSamplesFollowThePeriod(t *testing.T) {
	m := New(Config{})
	m.run.ScoreWindows = 10
	for results, want := range map[int]int{0: 0, 1: 1, 5: 1, 6: 2, 50: 10, 256: 52} {
		if got := m.sample(results); got != want {
			t.Errorf("of %d results %d are evaluated, want %d", results, got, want)
		}
	}
	m.cfg.Sample = 4
	if m.sample(2) != 2 || m.sample(100) != 4 {
		t.Error("a sample that was asked for is not that")
	}
}

func TestLossesAreMeasuredOnPartsOfTheShare(t *testing.T) {
	m := New(Config{Secret: wire.Sum("a"), Losses: 3})
	w, results := crowd(5, 4)
	for _, r := range results {
		e := m.evaluate(w, r)
		if batch.Total(e.Assigned) != 3 || batch.Total(e.Random) != 3 {
			t.Fatalf("on %v and %v", e.Assigned, e.Random)
		}
		for _, s := range e.Assigned {
			if s.Start < r.spans[0].Start || s.End() > r.spans[0].End() {
				t.Errorf("%v is not of the share %v", e.Assigned, r.spans)
			}
		}
	}
	m.cfg.Losses = 0
	if e := m.evaluate(w, results[0]); e.Assigned != nil || e.Random != nil {
		t.Error("losses are measured that were not asked for")
	}
}
