package change

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/wire"
)

// ofBytes returns a picture of arbitrary bytes, which need not be a state.
func ofBytes(l coordinator.Limits, b []byte) *Picture {
	p := Blank(l)
	copy(p.b, b)
	for k, last := uint32(0), layout(l).Members%8; k < record.RingRounds && last > 0; k++ {
		for _, at := range []uint32{p.layout.Active, p.layout.Expected, p.layout.Accepted} {
			p.b[p.layout.Ring+k*p.layout.Slot+at+p.layout.Members/8] &= 1<<last - 1
		}
	}
	for _, g := range p.gaps {
		clear(p.b[g.from*record.PageBytes : g.to*record.PageBytes])
	}
	return p
}

func drawLimits(t *rapid.T) coordinator.Limits {
	return coordinator.Limits{
		Members:    rapid.Uint32Range(1, 300).Draw(t, "members"),
		Witnesses:  rapid.Uint16Range(1, coordinator.WitnessesMax).Draw(t, "witnesses"),
		Validators: rapid.Uint16Range(0, 3).Draw(t, "validators"),
		Buckets:    rapid.Bool().Draw(t, "buckets"),
		Speeds:     rapid.Bool().Draw(t, "speeds"),
	}
}

// drawBytes changes some words of b, in columns and at random, by few or by any values.
func drawBytes(t *rapid.T, b []byte) []byte {
	b = bytes.Clone(b)
	for range rapid.IntRange(0, 8).Draw(t, "changes") {
		from := rapid.IntRange(0, len(b)-1).Draw(t, "from")
		stride := rapid.SampledFrom([]int{1, 4, 12, 72, 200, 1024}).Draw(t, "stride")
		by := rapid.SliceOfN(rapid.Byte(), 1, 5).Draw(t, "by")
		for i, at := 0, from; at < len(b) && i < 500; i, at = i+1, at+stride {
			b[at] += by[i%len(by)]
		}
	}
	return b
}

// A change leads from any picture to any other, and the tables cover all bytes.
func TestChangesAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLimits(t)
		blank := Blank(l)
		from := ofBytes(l, drawBytes(t, blank.b))
		to := ofBytes(l, drawBytes(t, from.b))
		got, err := Read(from, Append(nil, from, to))
		if err != nil || !bytes.Equal(got.b, to.b) {
			t.Fatalf("%v: another picture", err)
		}
	})
}

// A picture has its state's hash, and a light one lacks filters and counts alone.
func TestPicturesHaveTheHashOfTheirState(t *testing.T) {
	for _, l := range []coordinator.Limits{
		{Members: 1, Witnesses: 1}, {Members: 100, Witnesses: 32}, {Members: 1000, Witnesses: 32, Validators: 2}, {Members: 500, Witnesses: 7, Speeds: true},
		{Members: 100, Witnesses: 3, Buckets: true}, {Members: 5000, Witnesses: 4},
	} {
		s := stateOf(t, l)
		b := s.Bytes()
		lay := layout(l)
		for k := range uint32(record.RingRounds) {
			at := lay.Ring + k*lay.Slot + lay.Filters
			for i := range lay.FiltersLen {
				b[at+i] = byte(i*7 + k)
			}
			for i := range lay.Members {
				b[lay.Ring+k*lay.Slot+lay.Counts+i] = byte(i%uint32(l.Witnesses) + 1)
			}
		}
		p := Of(s)
		if p.Hash() != s.Hash() {
			t.Errorf("%+v: another hash", l)
		}
		if lacks := !bytes.Equal(p.State(), b); lacks != p.Light() {
			t.Errorf("%+v: lacks bytes: %t", l, lacks)
		}
		got := bytes.Clone(p.State())
		for _, g := range p.gaps {
			from, to := g.from*record.PageBytes, g.to*record.PageBytes
			copy(got[from:to], b[from:to])
		}
		if !bytes.Equal(got, b) {
			t.Errorf("%+v: more than filters and counts lack", l)
		}
		if s, err := coordinator.Attach(p.State()); err == nil && l.Members == 5000 {
			for _, member := range []coordinator.Member{2000, 3000} {
				if r := lay.Ring + lay.Counts + uint32(member); s.Bytes()[r] != 0 {
					t.Errorf("%+v: the count of member %d is there", l, member)
				}
			}
		}
	}
}

func stateOf(t testing.TB, l coordinator.Limits) coordinator.State {
	t.Helper()
	s, err := coordinator.New(l, config(l), coordinator.Env{NowMs: 1})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func config(l coordinator.Limits) coordinator.Config {
	c := coordinator.Config{
		Name: "run", MinMembers: 1, StartMembers: 1, WarmupMs: 1, RoundTrainMs: 1, RoundWitnessMs: 1, CooldownMs: 1, EpochMs: 1, TotalSteps: 1,
		BatchStart: 1, BatchEnd: 1, SequenceTokens: 1, ModelHash: wire.Sum("model"), SpecHash: wire.Sum("spec"), Owner: [32]byte{1},
	}
	if l.Buckets {
		c.Exchange, c.Overlap, c.WindowBlocks = coordinator.Buckets, 1, 1
	}
	if l.Speeds {
		c.Sharing = coordinator.SpeedShares
	}
	if l.Validators > 0 {
		c.Validators, c.ScoreWindows = l.Validators, 2
	}
	return c
}

// Joins and reports wait; the beginning of a phase does not.
func TestWhatIsUrgent(t *testing.T) {
	s := stateOf(t, coordinator.Limits{Members: 4, Witnesses: 2})
	after := func(m coordinator.Message) coordinator.State {
		next, err := coordinator.Open(bytes.Clone(s.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		if err := next.Apply(coordinator.Env{NowMs: 2, Sender: [32]byte{1}}, m); err != nil {
			t.Fatal(err)
		}
		return next
	}
	if Urgent(s, s) {
		t.Error("what did not change is urgent")
	}
	if !Urgent(s, after(coordinator.Pause{})) {
		t.Error("a pause can wait")
	}
}

func FuzzRead(f *testing.F) {
	l := coordinator.Limits{Members: 20, Witnesses: 3, Validators: 1}
	from := Of(stateOf(f, l))
	to := ofBytes(l, from.b)
	for i := range to.b[:20_000] {
		to.b[i] += byte(i % 3)
	}
	f.Add(Append(nil, from, to))
	f.Add(Append(nil, from, from))
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(from.b)
		p, err := Read(from, b)
		if !bytes.Equal(from.b, before) {
			t.Error("the picture before has changed")
		}
		if err != nil {
			return
		}
		for _, g := range p.gaps {
			if !record.Zero(p.b[g.from*record.PageBytes : g.to*record.PageBytes]) {
				t.Error("a gap is filled")
			}
		}
		if again, err := Read(from, Append(nil, from, p)); err != nil || !bytes.Equal(again.b, p.b) {
			t.Error("another picture")
		}
	})
}
