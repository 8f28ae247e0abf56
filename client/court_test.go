package client

import (
	"fmt"

	"github.com/entrain-network/entrain/bisect"
	"github.com/entrain-network/entrain/client/docket"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/wire"
)

// What the network's peers do when a share is computed again: its result is a hash that anybody can make, given the state it begins from.
// A step is a program of traceOps operations whose values are hashes, the last of which is the outcome.
const traceOps = 20

// truth is the commitment that an honest author would have made.
func (net *network) truth(c dispute.Commitment) dispute.Commitment {
	made := net.peer(net.state.Key(c.Member)).share(c.Round, c.Prev)
	c.Payload, c.PayloadBytes, c.State = made.Payload, made.PayloadBytes, made.State
	c.Work = dispute.WorkHash(c.Run, c.Round, c.Member, made.Gradient)
	return c
}

// trace is the leaves of a step's trace that ends with an outcome.
func trace(c dispute.Commitment, outcome wire.Hash) []wire.Hash {
	list := make([]wire.Hash, traceOps)
	for i := range list {
		list[i] = wire.Sum("op", wire.AppendU32(nil, uint32(i)), c.Share[:], c.Prev[:])
	}
	list[traceOps-1] = outcome
	return list
}

type referee struct{ *network }

func (referee) Ops(uint32) uint32                          { return traceOps }
func (referee) Tiles(dispute.Case, uint32) uint32          { return 1 }
func (referee) Slices(dispute.Case, uint32, uint32) uint32 { return 1 }
func (r referee) Judge(c dispute.Case, op, _, _ uint32, _ wire.Hash, _ []byte) (wire.Hash, error) {
	return trace(c.Commitment, dispute.Outcome(r.truth(c.Commitment)))[op], nil
}

// tell answers a question for spans.
func (p *peer) tell(a AskSpans) {
	q := p.peer(a.To)
	if q == nil || !q.up || p.lose(p, q) {
		return
	}
	for _, f := range q.machine.cases {
		if f.spans != nil && f.share == a.Hash {
			p.feed(SpansReceived{f.spans})
			return
		}
	}
}

// leaves is the trace that a peer argues with.
func (p *peer) leaves(c dispute.Commitment) []wire.Hash {
	switch {
	case p.slanders && p.state.Key(c.Member) != p.key.Public():
		return trace(c, wire.Sum("slander"))
	case p.lies && p.state.Key(c.Member) == p.key.Public():
		return trace(c, dispute.Outcome(c))
	}
	return trace(c, dispute.Outcome(p.truth(c)))
}

func (p *peer) verify(a Verify) {
	if p.onVerify != nil {
		p.onVerify(a)
	}
	served := a.Commitment.Prev == testFresh || p.optimizer[a.Commitment.Prev]
	for _, k := range a.From {
		if q := p.peer(k); q != nil && q.up && !q.miser && q.optimizer[a.Commitment.Prev] && !p.lose(p, q) {
			served = true
		}
	}
	v := Verified{Share: a.Share}
	switch leaves := p.leaves(a.Commitment); {
	case !served:
		v.Verdict = Missing
	case leaves[traceOps-1] != dispute.Outcome(a.Commitment):
		v.Verdict, v.Trace = Different, bisect.Root(leaves)
		p.optimizer[a.Commitment.Prev] = true
	default:
		v.Verdict = Same
		v.Gradient = p.peer(p.state.Key(a.Member)).share(a.Round, a.Commitment.Prev).Gradient
		if a.Trace {
			v.Trace = bisect.Root(leaves)
		}
	}
	p.verdicts[v.Verdict]++
	if v.Verdict == Different {
		p.kept[a.Share] = a.Kept
	}
	p.later(v)
}

func (p *peer) argue(a Argue) {
	d, leaves := a.Dispute, p.leaves(a.Commitment)
	ev := Argued{Share: a.Share, At: docket.PositionOf(&d)}
	switch d.Stage {
	case dispute.StageDefending:
		ev.Message = coordinator.Defend{Dispute: d.ID, Trace: bisect.Root(leaves), Proof: bisect.Prove(leaves, traceOps-1)}
	case dispute.StageDescending:
		ev.Message = coordinator.Reveal{Dispute: d.ID, Nodes: bisect.Children(leaves, d.Depth, d.Index)}
	case dispute.StageEvidence:
		ev.Message = coordinator.Evidence{Dispute: d.ID, Bytes: []byte("evidence")}
	default:
		p.t.Errorf("%s was asked for a move in stage %s", p.name, d.Stage)
	}
	p.moves++
	p.later(ev)
}

// convicted lists who was convicted of what.
func (net *network) convicted() (list []string) {
	for _, c := range net.state.Convictions() {
		list = append(list, fmt.Sprintf("%s of %s", net.peer(c.Key).name, c.Offence))
	}
	return list
}
