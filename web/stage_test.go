package web

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/entrain-network/entrain/bloom"
	"github.com/entrain-network/entrain/codec/all"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/runlog"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/wire"
)

// stage is a run whose members do at once what a test says: the real coordinator, with messages of
// members that are none. It is the ledger of the servers under test.
type stage struct {
	t      testing.TB
	mu     sync.Mutex // guards what follows
	state  coordinator.State
	now    uint64
	height uint64
	silent map[uint32]bool // members that were killed
	told   []func(ledger.Snapshot)
	text   []byte
	down   bool
	log    *runlog.Writer // of member 0, nil if it keeps none
	judge  dispute.Referee
}

const stageRun = "opticks"

var _ ledger.Reader = (*stage)(nil)

// newStage makes a run with room for so many members, and lets them join. Changes are made to its
// specification.
func newStage(t testing.TB, members uint32, changes ...func(*spec.Spec)) *stage {
	t.Helper()
	s := &stage{t: t, now: uint64(time.Now().UnixMilli()), silent: map[uint32]bool{}}
	sp := spec.Default(all.Kinds())
	sp.Trust = spec.Trust{} // nobody takes part who could verify
	sp.Name, sp.Steps = stageRun, 100_000
	sp.Data.Manifest, sp.Data.Location = wire.Sum("test/manifest").String(), "/srv/opticks"
	sp.Members.Min, sp.Members.Start, sp.Members.Capacity, sp.Members.MissedMax = 1, members, max(members, 16), 1
	sp.Batch.Start, sp.Batch.End = max(64, members), max(64, members)
	sp.Times.Epoch = spec.Duration(time.Hour)
	for _, change := range changes {
		change(&sp)
	}
	text, err := sp.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	s.text = text
	limits, config := sp.Coordinator(key.Public(wire.Sum("test/owner")), wire.Sum("test/model"), host.SpecHash(text))
	config.StateHash = wire.Sum("test/fresh")
	if s.state, err = coordinator.New(limits, config, s.env(key.Public{})); err != nil {
		t.Fatalf("%v: %v", err, config.Check(limits))
	}
	for i := range members {
		s.apply(memberKey(i), coordinator.Join{Speed: 1000 + i%500})
	}
	s.pass(config.WaitingMs)
	for i := range members {
		hash, _ := s.state.Params()
		s.apply(memberKey(i), coordinator.Ready{Epoch: s.state.Epoch(), Params: hash})
	}
	if s.state.Phase() != coordinator.RoundTrain {
		t.Fatalf("the stage is in %v, want RoundTrain", s.state.Phase())
	}
	return s
}

func memberSecret(i uint32) key.Private {
	return key.FromSeed(wire.Sum("test/member", binary.LittleEndian.AppendUint32(nil, i)))
}

func memberKey(i uint32) key.Public { return memberSecret(i).Public() }

func (s *stage) env(sender key.Public) coordinator.Env {
	s.height++
	return coordinator.Env{NowMs: s.now, Height: s.height, Seed: wire.Sum("test/seed", wire.AppendU64(nil, s.height)), Sender: sender, Referee: s.judge}
}

func (s *stage) apply(sender key.Public, m coordinator.Message) {
	s.t.Helper()
	s.mu.Lock() // a server may begin to watch at any time
	defer s.mu.Unlock()
	if err := s.state.Apply(s.env(sender), m); err != nil {
		s.t.Fatalf("%T in %v: %v", m, s.state.Phase(), err)
	}
}

// pass lets time go by, and the host tick.
func (s *stage) pass(ms uint64) {
	s.later(ms)
	s.apply(key.Public{}, coordinator.Tick{})
}

func (s *stage) later(ms uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now += ms
}

// tell shows the state to those who watch.
func (s *stage) tell() {
	s.mu.Lock()
	snap := s.snapshot()
	told := s.told
	s.mu.Unlock()
	if s.log != nil {
		s.log.Event(time.UnixMilli(int64(s.now)), event.State{Phase: s.state.Phase().String(), Round: s.state.Round(), Snapshot: &snap})
	}
	for _, f := range told {
		f(snap)
	}
}

func (s *stage) snapshot() ledger.Snapshot {
	open, err := coordinator.Open(bytes.Clone(s.state.Bytes()))
	if err != nil {
		s.t.Fatal(err)
	}
	return ledger.Snapshot{Height: s.height, TimeMs: s.now, State: open}
}

// round lets the members train and witness until the next round opens. Those that are silent do
// nothing.
func (s *stage) round() {
	s.t.Helper()
	number := s.state.Round()
	r, _ := s.state.At(number)
	attested, ok := s.state.At(r.Attests())
	if !ok {
		s.t.Fatalf("round %d attests nothing", number)
	}
	held := make([]byte, (s.state.Count()+7)/8)
	complete := true
	for i := range s.state.Count() {
		if attested.Expected(i) && !s.silent[uint32(i)] {
			held[i>>3] |= 1 << (i & 7)
		}
		complete = complete && !(attested.Active(i) && s.silent[uint32(i)])
	}
	held = bytes.TrimRight(held, "\x00")
	s.learn(r)
	s.later(400)
	s.tell()
	config := s.state.Config()
	if !complete {
		s.pass(config.RoundTrainMs)
	}
	report := coordinator.Witness{Round: number, Complete: complete, Held: held, Params: wire.Sum("test/theta", wire.AppendU32(nil, uint32(number))), Prev: wire.Sum("test/theta", wire.AppendU32(nil, uint32(number-1)))}
	for _, i := range r.Witnesses() {
		if s.silent[uint32(i)] || s.state.Round() != number {
			continue
		}
		report.Commitments = bloom.New(r.Filter())
		s.later(20)
		s.apply(s.state.Key(i), report)
		s.tell()
	}
	for range 3 {
		if s.state.Round() == number {
			s.pass(config.RoundWitnessMs)
		}
	}
	if s.state.Round() != number+1 {
		s.t.Fatalf("after round %d comes %d, in %v", number, s.state.Round(), s.state.Phase())
	}
	s.tell()
}

// learn writes to member 0's log what it would of the round.
func (s *stage) learn(r coordinator.RoundState) {
	if s.log == nil {
		return
	}
	loss := 2 + 3/float32(1+r.Step()/4)
	at := time.UnixMilli(int64(s.now))
	s.log.Event(at, event.Trained{Round: r.Number(), Step: r.Step(), Loss: loss, LR: 1e-3, GradNorm: 1, Tokens: 1024, Seconds: 0.3, Bytes: 60_000, PeakShare: 0.4})
	for i := coordinator.Member(uint32(1)); i < min(s.state.Count(), 8); i++ {
		if !s.silent[uint32(i)] {
			s.log.Event(at, event.Committed{Round: r.Number(), Member: i, Loss: loss + float32(i)/20, Bytes: 60_000,
				Commitment: wire.Sum("test/commitment", wire.AppendU32(nil, uint32(r.Number())), wire.AppendU32(nil, uint32(i)))})
		}
	}
	if r.Step()%5 == 1 {
		s.log.Event(at, event.Evaluated{Step: r.Step(), HeldOut: loss + 0.1})
		for _, prompt := range []string{"The rays of light ", "If <b>colours</b> "} {
			s.log.Event(at, event.Sample{Step: r.Step(), Prompt: prompt, Text: fmt.Sprintf("are bent %d times\nby the prism", r.Step())})
		}
		s.log.Event(at, event.Scored{Step: r.Step(), Task: "piqa", Items: 50, Acc: 0.5 + float64(r.Step())/1000, AccNorm: 0.5 + float64(r.Step())/2000})
	}
}

// keepLog has member 0 keep a log, and returns the directory.
func (s *stage) keepLog() string {
	s.t.Helper()
	dir := filepath.Join(s.t.TempDir(), "log")
	w, err := runlog.Create(dir, runlog.Options{Own: memberKey(0).String()})
	if err != nil {
		s.t.Fatal(err)
	}
	s.log = w
	s.t.Cleanup(func() {
		if err := w.Close(); err != nil {
			s.t.Error(err)
		}
	})
	return dir
}

func (s *stage) ChainID() string { return "stage" }

func (s *stage) Watch(ctx context.Context, run string, f func(ledger.Snapshot)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	guard := func(snap ledger.Snapshot) {
		if ctx.Err() == nil {
			f(snap)
		}
	}
	s.told = append(s.told, guard)
	guard(s.snapshot())
}

func (s *stage) Spec(_ context.Context, _ string, done func([]byte, error)) { done(s.text, nil) }

func (s *stage) Peers(_ context.Context, _ string, done func([]host.Peer, error)) { done(nil, nil) }

// runs is the Options.Runs of servers on the stage.
func (s *stage) runs(context.Context) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return nil, fmt.Errorf("the stage is dark")
	}
	return []string{stageRun}, nil
}
