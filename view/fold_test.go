package view

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/runlog"
	"github.com/entrain-network/entrain/wire"
)

// The keys of the sample's members; ann watches.
var (
	ann = strings.Repeat("a1", 32)
	bob = strings.Repeat("b0", 32)
	cat = strings.Repeat("ca", 32)
)

func public(hex string) key.Public { return key.Public(digest(hex)) }

func digest(hex string) wire.Hash {
	h, err := wire.ParseHash(hex)
	if err != nil {
		panic(err)
	}
	return h
}

func moment(ms uint64) time.Time { return time.UnixMilli(int64(ms)).UTC() }

// script writes the records of a run by hand.
type script struct {
	*Fold
	now runlog.Standing
}

func newScript() *script {
	s := &script{Fold: New(ann)}
	s.now.Head = runlog.Head{Name: "r", ID: "id", Steps: 100, Capacity: 8, SeqTokens: 10, Phase: "WaitingForMembers"}
	for i, k := range []string{ann, bob, cat} {
		s.now.Members = append(s.now.Members, runlog.Member{Index: coordinator.Member(i), MemberState: coordinator.MemberState{Key: public(k), Status: coordinator.StatusWaiting}})
	}
	s.now.Present = 3
	return s
}

// state tells of the standing at ms.
func (s *script) state(ms uint64) {
	s.now.Height++
	s.now.TimeMs = ms
	full := s.now
	s.Add(runlog.Record{Time: moment(ms), Standing: &full})
}

// open opens the next round: all three have shares, bob is the witness.
func (s *script) open(ms uint64) {
	s.now.Phase, s.now.SinceMs, s.now.DeadlineMs, s.now.Epoch = "RoundTrain", ms, ms+1000, 1
	s.now.Round++
	s.now.Step++
	for i := range s.now.Members {
		s.now.Members[i].Status = coordinator.StatusActive
	}
	s.now.Rounds = append(s.now.Rounds, runlog.Round{Number: s.now.Round, Epoch: 1, Step: s.now.Step, OpenedMs: ms, Batch: 6, Quorum: 1,
		Witnesses: []runlog.Witness{{Member: 1}}, Active: runlog.Set{7}, Expected: runlog.Set{7}, Accepted: runlog.Set{0}})
	s.state(ms)
}

// settle ends what is open: those of the set are accepted, two sequences each.
func (s *script) settle(accepted byte) {
	r := &s.now.Rounds[len(s.now.Rounds)-1]
	r.Final, r.Accepted, r.Agreed = true, runlog.Set{accepted}, "hash"
	r.Witnesses = []runlog.Witness{{Member: 1, Reported: true, Complete: true}}
	for i := range s.now.Members {
		if runlog.Set([]byte{accepted}).Has(coordinator.Member(i)) {
			s.now.Members[i].Points += 2
			s.now.Points += 2
			r.AcceptedCount++
		}
	}
}

func (s *script) event(ms uint64, ev event.Event) {
	s.Add(runlog.Record{Time: moment(ms), Event: ev})
}

func TestARoundAsItHappens(t *testing.T) {
	s := newScript()
	s.state(1000)
	s.event(1500, event.Committed{Round: 1, Member: 1, Loss: 5, Bytes: 300}) // before the state tells of the round
	s.open(2000)
	s.event(2100, event.Trained{Round: 1, Step: 1, Loss: 4, LR: 0.1, GradNorm: 2, Tokens: 20, Seconds: 0.5, Bytes: 200})
	s.event(2200, event.Fetched{Round: 1, Member: 1, Bytes: 300, Seconds: 0.1})
	s.event(2300, event.Committed{Round: 1, Member: 1, Loss: 5, Bytes: 300}) // again

	r := s.Run(moment(2400))
	if r.Phase != "RoundTrain" || r.CountdownMs != 600 || r.Step != 1 || r.Name != "r" {
		t.Errorf("the head is %+v", r)
	}
	if now := r.Rounds[0]; now.Marks != "ffe" || now.Committed != 2 || now.Loss != 4.5 || now.Bytes != 500 || now.ClosedMs != 0 {
		t.Errorf("the round is %+v, want both payloads here and the third expected", now)
	}
	if m := r.Members[1]; m.Role != "trainer, witness" || m.Mark != Fetched || m.Loss != 5 || m.Rate != 3000 || m.Own {
		t.Errorf("bob is %+v", m)
	}
	if m := r.Members[0]; m.Role != "trainer" || !m.Own {
		t.Errorf("ann is %+v", m)
	}
	if o := r.Own; o == nil || o.Index != 0 || o.Status != "active" || o.TokensPerSecond != 40 || o.PayloadBytes != 200 {
		t.Errorf("own is %+v", r.Own)
	}
	if n := r.Network; n.FetchedBytes != 300 || n.SentBytes != 200 || n.BytesPerSecond != 5 || len(n.Transfers) != 1 || n.Transfers[0].Member != 1 {
		t.Errorf("network is %+v", n)
	}

	s.settle(0b011)
	s.open(4000)
	r = s.Run(moment(4000))
	if first := r.Rounds[0]; first.Marks != "aam" || first.ClosedMs != 4000 || first.Accepted != 2 || !first.Final || !first.Witnesses[0].Complete {
		t.Errorf("the settled round is %+v", first)
	}
	if r.Tokens != 40 || r.Members[0].Share != 0.5 || r.Members[2].Points != 0 {
		t.Errorf("%d tokens, members %+v", r.Tokens, r.Members)
	}
	// 40 tokens from 2000 on, when the first round opened.
	if want := 40.0 * 1000 / 2000; math.Abs(r.TokensPerSecond-want) > 1e-9 {
		t.Errorf("%v tokens a second, want %v", r.TokensPerSecond, want)
	}
	for name, c := range map[string]struct {
		curve Curve
		want  float64
	}{"loss": {r.Loss, 4.5}, "learning rate": {r.LR, float64(float32(0.1))}, "gradient norm": {r.GradNorm, 2}, "speed": {r.Speed, 40.0 / 2}} {
		if v, ok := c.curve.Last(); !ok || math.Abs(v-c.want) > 1e-9 {
			t.Errorf("the curve of the %s ends at %v, want %v", name, v, c.want)
		}
	}
}

func TestPaceStopsWhenNothingHappens(t *testing.T) {
	s := newScript()
	for i := range uint64(10) {
		s.open(1000 * i)
		s.settle(0b111)
	}
	s.open(10_000)
	r := s.Run(moment(10_000))
	if r.TokensPerSecond != 60 || r.LeftMs != 89_000 {
		t.Errorf("%v tokens a second and %d ms left, want 60 and 89000", r.TokensPerSecond, r.LeftMs)
	}
	if r = s.Run(moment(10_000 + 3*paceOver)); r.TokensPerSecond != 0 {
		t.Errorf("%v tokens a second long after the last round", r.TokensPerSecond)
	}
}

// Neither the wait for enough members nor a pause makes a run slower, or its end later.
func TestWaitsDoNotCountForThePace(t *testing.T) {
	const hour = 3_600_000
	s := newScript()
	s.state(0)
	for i := range uint64(20) {
		at := hour + 1000*i
		if i >= 10 {
			at += hour
		}
		if i == 10 {
			s.now.Phase = "Paused"
			s.state(2*hour - 1)
		}
		s.open(at)
		s.settle(0b111)
		s.state(at + 1000)
		if r := s.Run(moment(at + 1000)); r.TokensPerSecond != 60 || r.LeftMs != 1000*(100-i-1) {
			t.Errorf("after round %d: %v tokens a second and %d ms left, want 60 and %d", i+1, r.TokensPerSecond, r.LeftMs, 1000*(100-i-1))
		}
	}
}

// What a log says is partly what changed; states may come late, doubly, or of a new run under the
// old name.
func TestStandingsMerge(t *testing.T) {
	s := newScript()
	s.open(1000)
	before := s.Run(moment(1000))
	old := s.now
	old.Height, old.Phase = 0, "Finished"
	s.Add(runlog.Record{Time: moment(1001), Standing: &old})
	after := s.Run(moment(1000))
	after.SeenMs = before.SeenMs
	if !reflect.DeepEqual(before, after) {
		t.Errorf("an older state changed the run from\n%+v to\n%+v", before, after)
	}
	delta := runlog.Standing{Height: 9, TimeMs: 1500, Head: s.now.Head, Members: []runlog.Member{{Index: 2, MemberState: coordinator.MemberState{Key: public(cat), Status: coordinator.StatusDropped}}}}
	s.Add(runlog.Record{Time: moment(1500), Standing: &delta})
	r := s.Run(moment(1500))
	if len(r.Members) != 3 || r.Members[1].Status != "active" || r.Members[2].Status != "dropped" {
		t.Errorf("members are %+v", r.Members)
	}
	if last := r.Log[len(r.Log)-1]; last.Level != "warn" || !strings.Contains(last.Text, "member 2 (cacacacacaca) was dropped") {
		t.Errorf("the log ends with %+v", last)
	}
	other := runlog.Standing{Height: 1, Head: runlog.Head{ID: "another", Phase: "Warmup"}}
	s.Add(runlog.Record{Time: moment(2000), Standing: &other})
	if r := s.Run(moment(2000)); r.ID != "another" || len(r.Members)+len(r.Rounds)+len(r.Loss) != 0 {
		t.Errorf("of the run before is left: %+v", r)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	s := newScript()
	for i := range uint32(5000) {
		s.now.Rounds = nil
		s.open(uint64(i) * 1000)
		for k := range coordinator.Member(uint32(3)) {
			s.event(uint64(i)*1000, event.Committed{Round: coordinator.Round(i) + 1, Member: k, Loss: 1})
			s.event(uint64(i)*1000, event.Fetched{Round: coordinator.Round(i) + 1, Member: k, Bytes: 10})
		}
		s.event(uint64(i)*1000, event.Note{Text: strings.Repeat("x", int(i%50))})
		s.settle(7)
	}
	r := s.Run(moment(5e6))
	if len(r.Rounds) != roundsKept || len(r.Log) != LinesKept || len(r.Loss) > curveMax || len(r.Network.Transfers) != transfersKept {
		t.Errorf("%d rounds, %d lines, %d buckets, %d transfers", len(r.Rounds), len(r.Log), len(r.Loss), len(r.Network.Transfers))
	}
	if first, last := r.Loss[0], r.Loss[len(r.Loss)-1]; first.From > 1 || last.To != 5000 || len(r.Loss) < curveMax/2 {
		t.Errorf("the curve goes from step %d to %d in %d buckets", first.From, last.To, len(r.Loss))
	}
	if len(s.pending) > pendingMax || len(s.progress) > samplesMax {
		t.Errorf("kept: %d pending, %d samples", len(s.pending), len(s.progress))
	}
}

func TestCurveKeepsExtremesAndMeans(t *testing.T) {
	var c curve
	const n = 10 * curveMax
	for step := range uint32(n) {
		c.add(coordinator.Step(step+1), uint64(step), float64(step%100))
	}
	var count uint32
	var sum float64
	for i, b := range c.buckets {
		if i > 0 && b.From <= c.buckets[i-1].To {
			t.Fatalf("bucket %d begins at %d, the one before ends at %d", i, b.From, c.buckets[i-1].To)
		}
		if b.Min > b.Mean || b.Mean > b.Max {
			t.Fatalf("bucket %d: %+v", i, b)
		}
		count += b.Count
		sum += b.Mean * float64(b.Count)
	}
	if count != n || math.Abs(sum/n-49.5) > 0.5 {
		t.Errorf("%d values of mean %v, want %d of 49.5", count, sum/n, n)
	}
	c.add(5, 0, 1000) // late
	if c.buckets[0].Max != 1000 {
		t.Errorf("a late value went elsewhere: %+v", c.buckets[0])
	}
}
