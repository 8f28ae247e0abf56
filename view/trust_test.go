package view

import (
	"fmt"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/runlog"
	"github.com/entrain-network/entrain/wire"
)

// trusting tells of what is checked at ms.
func (s *script) trusting(ms uint64, t runlog.Trust) {
	s.now.Trust = &t
	s.state(ms)
	s.now.Trust = nil
}

func TestAChecksEndIsMarked(t *testing.T) {
	s := newScript()
	s.open(1000)
	s.now.Points = 9
	s.now.Members[0].Stake = 100
	s.trusting(1100, runlog.Trust{Whole: true, TrustHead: runlog.TrustHead{Percent: 5, Drawn: 2, Verified: 3},
		Checks: []dispute.Check{{Round: 1, Member: 2}, {Round: 1, Member: 1}}})
	r := s.Run(moment(1100))
	if r.Tokens != 60 || r.Members[0].Stake != 100 || r.Trust == nil || len(r.Trust.Checks) != 2 || r.Trust.Checks[0].Member != 1 || r.Rounds[0].Checked != 2 {
		t.Fatalf("%d tokens, %+v, %+v", r.Tokens, r.Members[0], r.Trust)
	}
	// That of member 1 passes; that of member 2 lapses.
	s.now.Members[1].Passed = 1
	s.trusting(1200, runlog.Trust{TrustHead: runlog.TrustHead{Percent: 5, Drawn: 2, Passed: 1},
		Closed: []runlog.Share{{Round: 1, Member: 1}, {Round: 1, Member: 2}}})
	r = s.Run(moment(1200))
	if len(r.Trust.Checks) != 0 || r.Rounds[0].Verified != 1 || r.Rounds[0].Marks[1] != byte(Verified) || r.Rounds[0].Marks[2] == byte(Verified) {
		t.Errorf("%+v, marks %q", r.Trust, r.Rounds[0].Marks)
	}
	// A later look at the round does not take the mark away.
	s.now.Rounds[0].Final, s.now.Rounds[0].Accepted = true, runlog.Set{7}
	s.state(1300)
	if r = s.Run(moment(1300)); r.Rounds[0].Marks != "ava" {
		t.Errorf("marks %q", r.Rounds[0].Marks)
	}
}

func TestADisputeIsToldToItsEnd(t *testing.T) {
	s := newScript()
	s.NameOps(func(sequences, op uint32) string { return fmt.Sprintf("norm %d of %d sequences", op, sequences) })
	s.open(1000)
	share := runlog.Share{Round: 1, Member: 2}
	check := dispute.Check{Round: 1, Member: 2, Sequences: 4, Disputed: true}
	open := dispute.Dispute{ID: 1, Check: check, Accused: 2, Stage: dispute.StageTieBreaking,
		Traces: [2]wire.Hash{{}, digest(strings.Repeat("ab", 32))}, TieBreakers: []dispute.TieVote{{Member: 1}}}
	s.trusting(2000, runlog.Trust{Whole: true, TrustHead: runlog.TrustHead{Percent: 5}, Checks: []dispute.Check{check}, Disputes: []dispute.Dispute{open}})
	open.TieBreakers = []dispute.TieVote{{Member: 1, Vote: 2}}
	open.Stage, open.Level, open.Traces[0] = dispute.StageDescending, dispute.LevelOps, digest(strings.Repeat("cd", 32))
	s.trusting(3000, runlog.Trust{TrustHead: runlog.TrustHead{Percent: 5}, Disputes: []dispute.Dispute{open}})
	open.Level, open.Op, open.Tile = dispute.LevelTiles, 5, 6 // the operation is found
	s.trusting(3500, runlog.Trust{TrustHead: runlog.TrustHead{Percent: 5}, Disputes: []dispute.Dispute{open}})
	conviction := dispute.Conviction{Number: 1, Round: 1, Member: 2, Key: public(cat), Offence: dispute.WrongResult, ByKey: public(ann), Slashed: 5000,
		Evidence: digest(strings.Repeat("ef", 32)), FirstRound: 1, LastRound: 1, Results: 1, AtMs: 4000}
	s.trusting(4000, runlog.Trust{TrustHead: runlog.TrustHead{Percent: 5, Convicted: 1}, Closed: []runlog.Share{share}, Ended: []uint32{1},
		Convictions: []dispute.Conviction{conviction}})
	r := s.Run(moment(4000))
	d := r.Trust.Disputes[0]
	if d.EndedMs != 4000 || d.Conviction != 1 || len(r.Trust.Checks) != 0 || r.Rounds[0].Marks[2] != byte(Wrong) || r.Rounds[0].Convicted != 1 {
		t.Errorf("%+v, marks %q", d, r.Rounds[0].Marks)
	}
	var moves []string
	for _, m := range d.Moves {
		moves = append(moves, m.Text)
	}
	const want = "member 0 accuses member 2; the accuser names its trace as abababababab; stage: tie-breaking; tie-breaker 1: the accused is wrong; " +
		"the accused shows its trace cdcdcdcdcdcd; stage: descending; the traces differ in operations: operation 0, tile 0, slice 0, 0 levels to go; - against -; " +
		"the traces differ in tiles: operation 5 (norm 5 of 4 sequences), tile 6, slice 0, 0 levels to go; - against -; " +
		"over: member 2 (cacacacacaca) sent a result that its share of the data does not give in round 1: convicted of wrong result, reported by member 0, evidence efefefefefef; loses 5,000 tokens; its result of round 1 is in the model"
	if got := strings.Join(moves, "; "); got != want {
		t.Errorf("moves\n%s\nwant\n%s", got, want)
	}
	// The same conviction told again, as by another participant, is one.
	s.trusting(5000, runlog.Trust{Whole: true, TrustHead: runlog.TrustHead{Percent: 5, Convicted: 1}, Convictions: []dispute.Conviction{conviction}})
	if r = s.Run(moment(5000)); len(r.Trust.Convictions) != 1 || len(r.Trust.Disputes) != 1 || r.Trust.Disputes[0].EndedMs != 4000 {
		t.Errorf("%+v", r.Trust)
	}
}

func TestWhatIsKeptOfDisputesIsBounded(t *testing.T) {
	s := newScript()
	s.open(1000)
	for id := uint32(1); id <= 3*disputesKept; id++ {
		d := dispute.Dispute{ID: id, Check: dispute.Check{Round: 1, Member: 2}, Accused: 2, Accuser: dispute.NoMember, Stage: dispute.StageDefending}
		for op := range uint32(2) {
			d.Op, d.Level = op, dispute.LevelOps
			s.trusting(uint64(id)*1000+uint64(op), runlog.Trust{TrustHead: runlog.TrustHead{Percent: 5, Convicted: id}, Disputes: []dispute.Dispute{d},
				Convictions: []dispute.Conviction{{Number: 2*id + op, Round: 1, Member: 2, Offence: dispute.Silence, By: dispute.NoMember}, {Number: 2 * id, Round: 1}}})
		}
		s.trusting(uint64(id)*1000+9, runlog.Trust{TrustHead: runlog.TrustHead{Percent: 5}, Ended: []uint32{id}})
	}
	v := s.Run(moment(1e6)).Trust
	if len(v.Disputes) != disputesKept || len(v.Convictions) != convictionsKept || v.Disputes[0].ID != 3*disputesKept {
		t.Errorf("%d disputes from %d, %d convictions", len(v.Disputes), v.Disputes[0].ID, len(v.Convictions))
	}
}
