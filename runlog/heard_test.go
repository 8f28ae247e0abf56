package runlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/key"
	_ "github.com/entrain-network/entrain/tests/heap"
	"github.com/entrain-network/entrain/wire"
)

// crowd is a run of many members as a participant of it sees it, made up.
type crowd struct {
	now     time.Time
	round   uint32
	members []Member
	w       *Writer
}

// standing is the state now; so many of the witnesses have reported.
func (c *crowd) standing(phase string, reported int) *Standing {
	n := len(c.members)
	full := make(Set, (n+7)/8)
	for i := range full {
		full[i] = 255
	}
	var witnesses []Witness
	for i := range 32 {
		witnesses = append(witnesses, Witness{Member: coordinator.Member(i * 300), Reported: i < reported, Complete: i < reported})
	}
	accepted := append(Set(nil), full...)
	accepted[int(c.round)%len(accepted)] = 0 // somebody always misses
	hash := fmt.Sprintf("%064x", c.round)
	return &Standing{
		Height: uint64(c.round)*40 + uint64(reported), TimeMs: uint64(c.now.UnixMilli()),
		Head: Head{Name: "crowd", ID: fmt.Sprintf("%064x", 7), Own: c.members[0].Key.String(), Phase: phase, Round: coordinator.Round(c.round), Step: coordinator.Step(c.round), Epoch: 1,
			Present: uint32(n), Capacity: uint32(n), SeqTokens: 128, Steps: 1 << 20, Points: uint64(c.round) * uint64(n), Params: hash, ParamsRound: coordinator.Round(c.round - 1)},
		Members: c.members,
		Rounds: []Round{
			{Number: coordinator.Round(c.round - 1), Step: coordinator.Step(c.round - 1), Seed: hash, Agreed: hash, Active: full, Expected: full, Accepted: accepted, AcceptedCount: uint32(n - 8), Final: reported > 20},
			{Number: coordinator.Round(c.round), Step: coordinator.Step(c.round), Seed: hash, Agreed: hash, Active: full, Expected: full, Witnesses: witnesses, Quorum: 21},
		},
	}
}

// play lets a round go by: all members commit, and all their payloads come; events of each are added for so many of them.
func (c *crowd) play(heard int) {
	c.round++
	c.w.Add(Record{Time: c.now, Standing: c.standing("RoundTrain", 0)})
	c.w.Event(c.now, event.Trained{Round: coordinator.Round(c.round), Step: coordinator.Step(c.round), Loss: 3, LR: 1e-3, GradNorm: 1, Tokens: 1024, Seconds: 20, Bytes: 60_000})
	for i := range heard {
		c.now = c.now.Add(time.Minute / 2 / time.Duration(heard))
		m := coordinator.Member(uint32(i + 1))
		c.w.Event(c.now, event.Committed{Round: coordinator.Round(c.round), Member: m, Loss: 3 + float32(i%100)/100, Bytes: 60_000, Commitment: wire.Hash{31: byte(i), 30: byte(i >> 8)}})
		c.w.Event(c.now, event.Fetched{Round: coordinator.Round(c.round), Member: m, Bytes: 60_000, Seconds: 0.2})
	}
	c.members = append([]Member(nil), c.members...) // the writer keeps the earlier ones
	for i := range c.members {
		c.members[i].Points++
		c.members[i].Results++
		c.members[i].LastRound = coordinator.Round(c.round)
	}
	for reported := range 32 {
		c.now = c.now.Add(50 * time.Millisecond)
		c.w.Add(Record{Time: c.now, Standing: c.standing("RoundWitness", reported+1)})
	}
	c.w.Event(c.now, event.Applied{Round: coordinator.Round(c.round) + 1, Step: coordinator.Step(c.round), Results: len(c.members), Params: wire.Hash{31: 9}})
}

// A round of 10,000 members costs some kilobytes, so that a log of 100,000 rounds is as large as a log may be by default; and nothing that
// is read from it is wrong in the end.
func TestLogOfManyMembersIsShort(t *testing.T) {
	const members, rounds, heard = 10_000, 170, 200
	dir, short := t.TempDir(), t.TempDir()
	play := func(dir string, rounds int) {
		w, err := Create(dir, Options{Queue: rounds * (2*heard + 64)})
		if err != nil {
			t.Fatal(err)
		}
		c := &crowd{now: time.Unix(1_900_000_000, 0).UTC(), w: w, round: 1}
		for i := range uint32(members) {
			c.members = append(c.members, Member{Index: coordinator.Member(i), MemberState: coordinator.MemberState{Key: key.Public(wire.Sum("member", binary.LittleEndian.AppendUint32(nil, i))), Status: coordinator.StatusActive, Speed: 1000, JoinedMs: 1_900_000_000_000}})
		}
		for range rounds {
			c.play(heard)
		}
		if err := w.Close(); err != nil || w.Dropped() > 0 {
			t.Fatalf("%d records dropped, %v", w.Dropped(), err)
		}
	}
	play(short, 1)
	play(dir, rounds+1)
	first := size(t, short)
	perRound := (size(t, dir) - first) / rounds
	t.Logf("the members take %d bytes at first, a round %d", first, perRound)
	if total := first + perRound*100_000; total > totalBytes {
		t.Errorf("100,000 rounds would take %d bytes, a log has %d", total, totalBytes)
	}
	var committed, fetched uint64
	points := make([]uint64, members)
	log, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for {
		r, err := log.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h := r.Heard; h != nil {
			committed, fetched = committed+uint64(h.Committed), fetched+uint64(h.Fetched)
			if h.LossMin < 3 || h.LossMax > 4 || h.LossSum < 3*float64(h.Committed) || h.Bytes != 60_000*uint64(h.Committed) || h.Came != 60_000*uint64(h.Fetched) {
				t.Fatalf("heard %+v", h)
			}
		}
		if r.Standing != nil {
			for _, m := range r.Standing.Members {
				points[m.Index] = m.Points
			}
		}
	}
	if want := uint64(heard * (rounds + 1)); committed != want || fetched != want {
		t.Errorf("%d commitments and %d payloads are in the log, %d came", committed, fetched, want)
	}
	for i, p := range points {
		if p != rounds+1 {
			t.Fatalf("member %d has %d points in the end, want %d", i, p, rounds+1)
		}
	}
}

func size(t *testing.T, dir string) (n int64) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"+fileSuffix))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		n += info.Size()
	}
	return n
}
