package comet

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/bloom"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/change"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/wire"
)

// own returns the report of one seat.
func (w *rounds) own(report coordinator.Witness, r coordinator.RoundState, ids []wire.Hash, who key.Public, seat int) coordinator.Witness {
	all, filter := report.Held, bloom.New(r.Filter())
	report.Held = nil
	for i := range coordinator.Member(8 * len(all)) {
		if all[i/8]>>(i%8)&1 == 0 {
			continue
		}
		id := ids[0]
		ids = ids[1:]
		if w.apart > 0 && w.chance.Uint64n(100) < w.apart {
			continue
		}
		if seat < w.liars {
			id = wire.Sum("entrain/test/invented", id[:])
		}
		report.Held = coordinator.SetHeld(report.Held, i)
		filter.Add(r.Filter(), who[:], id)
	}
	report.Commitments = filter
	return report
}

// commitment returns the ID of what a member commits to, and witnesses attest in a round.
func commitment(number coordinator.Round, i coordinator.Member) wire.Hash {
	return wire.Sum("entrain/test/commitment", wire.AppendU32(nil, uint32(i)), wire.AppendU64(nil, uint64(number)))
}

// elected has p watch with reports, as a member does that is elected, and make the filters of the
// last three rounds again. It returns the bytes of a round's frame, on average. lied, of a seat, are
// filters that cannot be made again.
func (w *rounds) elected(p *replica, lied map[int]bool) (bytes int) {
	w.t.Helper()
	_, l, _ := w.hub.look("demo")
	count, seen := 0, coordinator.Round(0)
	var shown *ledger.Snapshot
	for {
		frame, err := l.reports(&seen)
		if err != nil {
			w.t.Fatal(err)
		}
		if frame == nil {
			break
		}
		if shown, err = p.apply(frame[4:]); err != nil {
			w.t.Fatal(err)
		}
		bytes, count = bytes+len(frame), count+1
	}
	if shown == nil {
		if p.light.picture.Light() {
			w.t.Fatal("no reports")
		}
		return 0
	}
	var filters change.Rebuilt
	for _, r := range shown.Reports {
		f, ok := r.Rebuild(shown.State, func(i coordinator.Member) (wire.Hash, bool) { return commitment(r.Round, i), true })
		if !ok {
			w.t.Fatalf("the filters of round %d cannot be made again", r.Round)
		}
		filters = append(filters, f)
	}
	s := filters.Into(shown.State)
	for _, r := range shown.Reports {
		was, _ := w.state().At(r.Round)
		now, _ := s.At(r.Round)
		for seat, report := range was.Reports() {
			if again := now.Reports()[seat].Commitments; !slices.Equal(again, report.Commitments) && !lied[seat] {
				w.t.Errorf("round %d: the filter of seat %d is another one", r.Round, seat)
			}
		}
		for i := range s.Count() {
			ids := []wire.Hash{commitment(r.Round, i)}
			_, want := w.state().Select(was.Attests(), i, ids)
			if _, ok := s.Select(was.Attests(), i, ids); ok != want {
				w.t.Fatalf("round %d: the result of member %d is named: %t, want %t", r.Round, i, ok, want)
			}
		}
	}
	return bytes / count
}

// A third of the witnesses lies in filters, and each of the others lacks results. Who is elected
// makes the others' filters again, and names the same results by them as by all.
func TestLyingFiltersAreLeftOut(t *testing.T) {
	w := newRounds(t, 4096, 0, 0)
	const third = 10
	w.liars = third
	p, lied := demo(), map[int]bool{}
	for seat := range third {
		lied[seat] = true
	}
	for range 3 {
		w.play(func() { w.followLightly(p) })
	}
	w.elected(p, lied)

	// With more of them no result is confirmed, and the filters have to be fetched.
	w.liars++
	for range 3 {
		w.play(func() { w.followLightly(p) })
	}
	frame, err := w.lastReports()
	if err != nil {
		t.Fatal(err)
	}
	shown, err := p.apply(frame)
	if err != nil {
		t.Fatal(err)
	}
	r := shown.Reports[0]
	if _, ok := r.Rebuild(shown.State, func(i coordinator.Member) (wire.Hash, bool) { return commitment(r.Round, i), true }); ok {
		t.Error("results are confirmed that no quorum holds")
	}
}

// lastReports returns what is sent of the newest round that is over.
func (w *rounds) lastReports() (frame []byte, err error) {
	_, l, _ := w.hub.look("demo")
	for seen := coordinator.Round(0); ; {
		b, err := l.reports(&seen)
		if err != nil || b == nil {
			return frame, err
		}
		frame = b[4:]
	}
}

// What a hostile replica says of reports is refused, or leads to no filters: it can have a member
// fetch whole states, and nothing else.
func TestFalseReportsAreRefused(t *testing.T) {
	w := newRounds(t, 1024, 0, 0)
	p := demo()
	for range 3 {
		w.play(func() { w.followLightly(p) })
	}
	frame, err := w.lastReports()
	if err != nil {
		t.Fatal(err)
	}
	shown, err := p.apply(frame)
	if err != nil {
		t.Fatal(err)
	}
	honest := shown.Reports[0]
	invented := func(i coordinator.Member) (wire.Hash, bool) {
		id := commitment(honest.Round, i)
		if i == 7 {
			id = wire.Sum("entrain/test/invented")
		}
		return id, true
	}
	if _, ok := honest.Rebuild(shown.State, invented); ok {
		t.Error("a commitment that nobody holds is confirmed")
	}
	for name, of := range map[string]func(r *change.Reports){
		"pages":       func(r *change.Reports) { r.Pages[3] = wire.Sum("page") },
		"fewer pages": func(r *change.Reports) { r.Pages = r.Pages[1:] },
		"slot":        func(r *change.Reports) { r.Round++ },
		"round":       func(r *change.Reports) { r.Round += 4 },
		"seats":       func(r *change.Reports) { r.Held = r.Held[1:] },
		"all held":    func(r *change.Reports) { r.Held[3] = bytes.Repeat([]byte{255}, 128) },
		"held": func(r *change.Reports) {
			for seat := range r.Held {
				r.Held[seat] = bytes.Clone(r.Held[seat])
				r.Held[seat][9] ^= 8
			}
		},
		"nothing held": func(r *change.Reports) { clear(r.Held) },
	} {
		r := change.Reports{Round: honest.Round, Pages: slices.Clone(honest.Pages), Held: slices.Clone(honest.Held)}
		of(&r)
		b, err := deflated([]byte{0, 0, 0, 0, frameReports}, r.Append(nil), nil)
		if err != nil {
			t.Fatal(err)
		}
		q := *p
		s, err := q.apply(b[4:])
		if err != nil {
			continue
		}
		f, ok := s.Reports[0].Rebuild(s.State, func(i coordinator.Member) (wire.Hash, bool) { return commitment(honest.Round, i), true })
		filters := change.Rebuilt{f}
		is, _ := filters.Into(s.State).At(honest.Round)
		was, _ := w.state().At(honest.Round)
		for seat, report := range is.Reports() {
			if ok && !slices.Equal(report.Commitments, was.Reports()[seat].Commitments) && bytes.ContainsFunc(report.Commitments, func(r rune) bool { return r != 0 }) {
				t.Errorf("%s: seat %d has another filter", name, seat)
			}
		}
	}
	bomb, err := deflated([]byte{0, 0, 0, 0, frameReports}, make([]byte, 64<<20), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.apply(bomb[4:]); !errors.Is(err, wire.ErrTooLong) {
		t.Errorf("a frame of %d bytes that inflates to 64 MiB: %v", len(bomb), err)
	}
}

// Strangers that ask for reports again and again get the same bytes, and the replica keeps those of
// the last rounds alone.
func TestReportsAreMadeOnce(t *testing.T) {
	w := newRounds(t, 1024, 0, 0)
	p := demo()
	w.followLightly(p)
	_, l, _ := w.hub.look("demo")
	for range 7 {
		w.play(func() { w.followLightly(p) })
		first, err := w.lastReports()
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			if b, err := w.lastReports(); err != nil || len(b) > 0 && &b[0] != &first[0] {
				t.Fatal("reports are encoded again", err)
			}
		}
	}
	if frames, heard := len(l.rounds), len(l.said.list); frames > hearsayRounds || heard > hearsayRounds*32 {
		t.Errorf("%d frames and %d reports are kept", frames, heard)
	}
}
