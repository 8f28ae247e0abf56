package coordinator

import (
	"github.com/entrain-network/entrain/bisect"
	"github.com/entrain-network/entrain/wire"
)

// dispute is a view of a place in the table of disputes.
type dispute struct {
	s State
	b []byte
}

func (s State) dispute(k uint32) dispute {
	at := s.l.disputes + disputeBytes*k
	return dispute{s: s, b: s.b[at : at+disputeBytes]}
}

// disputeOf returns the open dispute of that number.
func (s State) disputeOf(id uint32) (dispute, bool) {
	for k := range uint32(disputesMax) {
		if d := s.dispute(k); !d.free() && d.id() == id {
			return d, true
		}
	}
	return dispute{}, false
}

func (d dispute) free() bool             { return getU32(d.b, kRound) == 0 }
func (d dispute) id() uint32             { return getU32(d.b, dID) }
func (d dispute) accused() uint32        { return getU32(d.b, kMember) }
func (d dispute) accuser() uint32        { return getU32(d.b, dAccuser) }
func (d dispute) stage() Stage           { return Stage(getU8(d.b, dStage)) }
func (d dispute) unserved() bool         { return getU8(d.b, dUnserved) == 1 }
func (d dispute) defended() bool         { return getU8(d.b, dDefended) == 1 }
func (d dispute) deadline() uint64       { return getU64(d.b, dDeadlineMs) }
func (d dispute) revealed(side int) bool { return d.b[dRevealed+side] == 1 }
func (d dispute) level() Level           { return Level(getU8(d.b, dLevel)) }

func (d dispute) trace(side uint32) wire.Hash { return get32(d.b, dTraces+32*side) }
func (d dispute) node(side uint32) wire.Hash  { return get32(d.b, dNodes+32*side) }

func (d dispute) commitment() Commitment {
	r := wire.NewReader(d.b[dCommitment:dEnd])
	return ReadCommitment(&r)
}

func (d dispute) children() (list [bisect.Fan]wire.Hash) {
	for i := range list {
		list[i] = get32(d.b, dChildren+32*uint32(i))
	}
	return list
}

func (d dispute) ties() uint32 { return min(uint32(getU8(d.b, dTiesLen)), tiesMax) }

func (d dispute) tie(i uint32) TieVote {
	b := d.b[dTies+tieBytes*i:]
	return TieVote{Member: getU32(b, 0), Vote: Vote(getU8(b, 4)), Trace: get32(b, 8)}
}

func (d dispute) putTie(i uint32, v TieVote) {
	b := d.b[dTies+tieBytes*i:]
	putU32(b, 0, v.Member)
	putU8(b, 4, uint8(v.Vote))
	put32(b, 8, v.Trace)
}

func (d dispute) copy() Dispute {
	c := Dispute{
		ID: d.id(), Check: readCheck(d.b), Accused: d.accused(), Accuser: d.accuser(), Unserved: d.unserved(),
		Commitment: d.commitment(), Stage: d.stage(), DeadlineMs: d.deadline(), Defended: d.defended(),
		Traces: [2]wire.Hash{d.trace(Accused), d.trace(Accuser)}, Level: d.level(),
		Op: getU32(d.b, dOp), Tile: getU32(d.b, dTile), Slice: getU32(d.b, dSlice),
		Depth: getU8(d.b, dDepth), Index: getU32(d.b, dIndex), Nodes: [2]wire.Hash{d.node(Accused), d.node(Accuser)},
		Revealed: [2]bool{d.revealed(Accused), d.revealed(Accuser)}, Children: d.children(),
	}
	for i := range d.ties() {
		c.TieBreakers = append(c.TieBreakers, d.tie(i))
	}
	return c
}
