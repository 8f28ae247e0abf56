package web

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/runlog"
	"github.com/entrain-network/entrain/tests/browser"
	"github.com/entrain-network/entrain/wire"
)

// pastRun writes the log of a participant of a run as it is after many rounds: what others
// committed to and sent, states in which rounds open and are witnessed, stakes, checks that are
// drawn and pass, and now and then a conviction.
type pastRun struct {
	w      *runlog.Writer
	room   paced
	now    time.Time
	height uint64
	heard  int    // commitments of others, of which records are made
	id     string // of the run
	// What the coordinator's state would say. What a record points to is not changed after it was
	// added.
	members []runlog.Member
	rounds  []runlog.Round
	trust   runlog.Trust
}

// paced is a sink that lets no more records wait than it has room for, so that none is dropped.
type paced chan struct{}

func (p paced) Record(runlog.Record) error { <-p; return nil }
func (p paced) Flush() error               { return nil }
func (p paced) Close() error               { return nil }

// writePast writes the log of so many rounds into a directory.
func writePast(t testing.TB, dir, id string, members, rounds int) {
	t.Helper()
	p := &pastRun{id: id, room: make(paced, 256), now: time.Unix(1_900_000_000, 0).UTC(), heard: min(members-1, 64)}
	w, err := runlog.Create(dir, runlog.Options{Sinks: []runlog.Sink{p.room}})
	if err != nil {
		t.Fatal(err)
	}
	p.w = w
	p.trust = runlog.Trust{Whole: true, TrustHead: runlog.TrustHead{Percent: 5, Stake: 1000, Rate: 1, Treasury: 1 << 40}}
	for i := range uint32(members) {
		p.members = append(p.members, runlog.Member{Index: coordinator.Member(i), MemberState: coordinator.MemberState{Key: pastKey(i), Status: coordinator.StatusActive,
			Speed: 1000, JoinedMs: 1_900_000_000_000, Stake: 1000, Doubt: 1}})
	}
	for number := range uint32(rounds) {
		p.round(number + 1)
	}
	if err := w.Close(); err != nil || w.Dropped() > 0 {
		t.Fatalf("%d records dropped, %v", w.Dropped(), err)
	}
}

// pastKey is the key of a member of the past, which nobody signs with.
func pastKey(i uint32) key.Public { return key.Public(wire.Sum("test/past", wire.AppendU32(nil, i))) }

func (p *pastRun) add(r runlog.Record) {
	p.room <- struct{}{}
	r.Time = p.now
	p.w.Add(r)
}

func (p *pastRun) event(ev event.Event) { p.add(runlog.Record{Event: ev}) }

// tell adds the state in a round.
func (p *pastRun) tell(phase string, number uint32) {
	p.height++
	p.now = p.now.Add(100 * time.Millisecond)
	n, ms := uint32(len(p.members)), uint64(p.now.UnixMilli())
	s := &runlog.Standing{Height: p.height, TimeMs: ms, Head: runlog.Head{
		Name: stageRun, ID: p.id, Steps: 200_000, Capacity: n, SeqTokens: 128, MissedMax: 3, Phase: phase, SinceMs: ms, DeadlineMs: ms + 60_000,
		Epoch: coordinator.Epoch(1 + number/1000), Round: coordinator.Round(number), Step: coordinator.Step(number), Present: n, Points: uint64(number) * uint64(n), Params: wire.Sum("test/params").String(), ParamsRound: coordinator.Round(number),
	}}
	trust := p.trust
	trust.Checks, trust.Convictions = slices.Clone(trust.Checks), slices.Clone(trust.Convictions)
	s.Members, s.Rounds, s.Trust = slices.Clone(p.members), slices.Clone(p.rounds), &trust
	p.add(runlog.Record{Standing: s})
}

func (p *pastRun) round(number uint32) {
	n := uint32(len(p.members))
	all := slices.Repeat(runlog.Set{255}, int(n+7)/8)
	if k := len(p.rounds); k > 0 {
		before := &p.rounds[k-1]
		before.Final, before.Accepted, before.AcceptedCount = true, all, n
		p.check(number)
	}
	root := wire.Sum("test/round", wire.AppendU32(nil, number))
	hash := root.String()
	r := runlog.Round{Number: coordinator.Round(number), Epoch: coordinator.Epoch(1 + number/1000), Step: coordinator.Step(number), OpenedMs: uint64(p.now.UnixMilli()), Batch: n, Seed: hash, Agreed: hash, Attests: coordinator.Round(number), Quorum: 3,
		Active: all, Expected: all}
	for i := range uint32(4) {
		r.Witnesses = append(r.Witnesses, runlog.Witness{Member: coordinator.Member((number*7 + i) % n)})
	}
	if p.rounds = append(p.rounds, r); len(p.rounds) > 4 {
		p.rounds = p.rounds[1:]
	}
	p.tell("RoundTrain", number)
	loss := 2 + 3/float32(1+number/100)
	p.event(event.Trained{Round: coordinator.Round(number), Step: coordinator.Step(number), Loss: loss, LR: 1e-3, GradNorm: 1, Tokens: 1024, Seconds: 0.3, Bytes: 60_000, PeakShare: 0.4})
	for i := range uint32(p.heard) {
		p.event(event.Committed{Round: coordinator.Round(number), Member: coordinator.Member(i) + 1, Loss: loss + 0.1, Bytes: 60_000, Commitment: root})
		p.event(event.Fetched{Round: coordinator.Round(number), Member: coordinator.Member(i) + 1, Bytes: 60_000, Seconds: 0.1})
	}
	p.passAndConvict(number)
	last := &p.rounds[len(p.rounds)-1]
	for i := range last.Witnesses {
		last.Witnesses = slices.Clone(last.Witnesses)
		last.Witnesses[i].Reported, last.Witnesses[i].Complete = true, true
		p.tell("RoundWitness", number)
	}
	for i := range p.members {
		p.members[i].Points++
		p.members[i].Results++
	}
	p.event(event.Applied{Round: coordinator.Round(number) + 1, Step: coordinator.Step(number), Results: int(n), Params: root})
	if number%100 == 0 {
		p.event(event.Evaluated{Step: coordinator.Step(number), HeldOut: loss + 0.2})
	}
}

// check draws checks of the round before.
func (p *pastRun) check(number uint32) {
	n := uint32(len(p.members))
	for i := range coordinator.Member(max(1, n/1000)) {
		p.trust.Drawn++
		p.trust.Checks = append(p.trust.Checks, dispute.Check{Round: coordinator.Round(number) - 1, Member: (coordinator.Member(number*13) + i) % coordinator.Member(n), Step: coordinator.Step(number) - 1,
			Verifier: (coordinator.Member(number*17) + i) % coordinator.Member(n), Sequences: 1, DeadlineMs: uint64(p.now.UnixMilli()) + 60_000})
	}
}

// passAndConvict lets old checks pass, and convicts somebody now and then.
func (p *pastRun) passAndConvict(number uint32) {
	n := uint32(len(p.members))
	for len(p.trust.Checks) > max(2, int(n)/100) {
		p.members[p.trust.Checks[0].Member].Passed++
		p.trust.Passed++
		p.trust.Checks = p.trust.Checks[1:]
	}
	if number%50 != 0 {
		return
	}
	m := coordinator.Member(number/50) % coordinator.Member(n)
	p.trust.Convicted++
	p.members[m].Status, p.members[m].Stake = coordinator.StatusEjected, 0
	p.trust.Convictions = append(p.trust.Convictions, dispute.Conviction{Number: p.trust.Convicted, Round: coordinator.Round(number) - 1, Member: m, Key: p.members[m].Key, Offence: dispute.WrongResult,
		By: 1, ByKey: p.members[1].Key, Slashed: 1000, Evidence: wire.Sum("test/evidence"), FirstRound: 1, LastRound: coordinator.Round(number - 1), Results: number - 1, AtMs: uint64(p.now.UnixMilli())})
	if len(p.trust.Convictions) > 64 {
		p.trust.Convictions = p.trust.Convictions[1:]
	}
}

// A server that is given the log of a long run shows the run at once, as the chain has it, and the
// past when it has read that: who was convicted, what was at stake, and all of the rounds. Longer
// logs are measured with ENTRAIN_PAST_MEMBERS and ENTRAIN_PAST_ROUNDS: 100,000 rounds of 10,000
// members are written in half an hour.
func TestLongLogIsReadBesideTheChain(t *testing.T) {
	t.Parallel()
	members, rounds := environment(t, "ENTRAIN_PAST_MEMBERS", 1000), environment(t, "ENTRAIN_PAST_ROUNDS", 120)
	b := browser.Open(t)
	dir := filepath.Join(t.TempDir(), "log")
	if kept := os.Getenv("ENTRAIN_PAST_LOG"); kept != "" {
		dir = kept
	}
	s := newStage(t, 16)
	if _, err := os.Stat(dir); err != nil {
		writePast(t, dir, s.state.ID().String(), members, rounds)
	}
	o := s.options()
	o.Node = &Node{Run: stageRun, Log: dir}
	t.Logf("the log has %d MB", size(t, dir)/1e6)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	begun := time.Now()
	url, _ := serve(t, o, "")
	get(t, url+api, nil)
	t.Logf("the server knows what the chain has after %v", time.Since(begun).Round(time.Millisecond))
	b.Patience(10 * time.Minute)
	b.Size(1280, 900)
	b.Go(url + "/runs/" + stageRun)
	b.Wait(`document.querySelector(".tiles b") !== null && performance.getEntriesByName("first-contentful-paint").length > 0`)
	t.Logf("painted after %.0f ms, while the log is being read", browser.Value[float64](b, `performance.getEntriesByName("first-contentful-paint")[0].startTime`))
	var p struct{ Total int }
	for p.Total < rounds {
		get(t, url+api+"/rounds?count=1", &p)
	}
	t.Logf("%d rounds were read after %v", p.Total, time.Since(begun).Round(time.Millisecond))
	runtime.GC()
	runtime.ReadMemStats(&after)
	t.Logf("the server takes %d MB", (after.HeapAlloc-before.HeapAlloc)/1e6)
	for _, at := range []struct{ name, path, drawn string }{
		{"overview", "", `document.querySelector(".chart .line.c0") !== null && document.querySelector(".past").hidden`},
		{"members", "/members", `document.querySelector("td .chip") !== null`}, {"rounds", "/rounds", `document.querySelector("td a") !== null`},
		{"trust", "/trust", `document.querySelector('section[aria-labelledby="h-convictions"] tbody tr') !== null`},
	} {
		work := painted(t, b, url+"/runs/"+stageRun+at.path, at.drawn)
		heap := browser.Value[float64](b, "performance.memory.usedJSHeapSize / 1e6")
		t.Logf("%s: drawn with %v of work, heap %.1f MB", at.name, work, heap)
		if work > paintMost || heap > heapMBMax {
			t.Errorf("%s: drawn with %v of work, heap %.0f MB", at.name, work, heap)
		}
	}
	b.Quiet("long log")
}

// size is the bytes of the files in a directory.
func size(t *testing.T, dir string) (n int64) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		n += info.Size()
	}
	return n
}

// environment reads a number that somebody may have set.
func environment(t *testing.T, name string, none int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return none
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatal(fmt.Errorf("%s=%q: want a number", name, text))
	}
	return n
}
