package node

import (
	"fmt"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/host"
)

// A member that cannot do its work leaves the run before its absence costs it a part of its stake,
// and a member that was charged for its absence does not pay to come back. Both need a person: the
// next round would fail like the last.

// An UnfitError says that the member could not make its results, and left the run.
type UnfitError struct {
	Rounds int // in a row
	Cause  string
}

func (e *UnfitError) Error() string {
	return fmt.Sprintf("this machine could not make its result in %d rounds in a row, so the member left the run, because absence costs a part of the stake: %s; repair that, then join again", e.Rounds, e.Cause)
}

// An AbsentError says that the run dropped the member for its absence and took a fee.
type AbsentError struct {
	Lost, Left, Needed uint64 // tokens
}

func (e *AbsentError) Error() string {
	return fmt.Sprintf("the run dropped this member because it missed too many rounds, and took %d tokens: its stake has %d and the run asks for %d; find out why it was absent, then join again, which adds what is missing", e.Lost, e.Left, e.Needed)
}

// unfitMax bounds the results in a row that a member fails to make. The run drops it after
// Config.MissedMax.
const unfitMax = 3

// unable counts a round whose result this member could not make or keep.
func (n *Node) unable(round coordinator.Round, cause string) {
	if n.unfit.round == round {
		return
	}
	n.unfit = unfit{round, n.unfit.rounds + 1}
	if n.unfit.rounds >= max(1, min(unfitMax, int(n.state.Config().MissedMax))) {
		n.fail(&UnfitError{Rounds: n.unfit.rounds, Cause: cause})
	}
}

// unfit counts the rounds in a row whose result this member could not make, up to a round.
type unfit struct {
	round  coordinator.Round
	rounds int
}

// fail ends the node because it cannot go on. It leaves the run.
func (n *Node) fail(err error) {
	if n.failed {
		return
	}
	n.failed = true
	if n.cfg.Failed != nil {
		n.cfg.Failed(err)
		return
	}
	n.note(err.Error())
	n.Stop(submitFor, func() {})
}

// deposit sets what a Join pays and from where. It returns an AbsentError if the member would pay
// for a fee that was taken while this node ran.
func (n *Node) deposit(body *host.RunMessage) error {
	cost := n.state.JoinCost(n.self)
	i, known := n.place(n.state)
	staked, needed := uint64(0), n.state.Config().Stake
	if known {
		staked = n.state.Member(i).Stake
	}
	if n.was && known && n.state.Status(i) == coordinator.StatusDropped && !n.cfg.Restake {
		if staked < needed {
			return &AbsentError{Lost: n.lost(), Left: staked, Needed: needed}
		}
		body.Value = cost
	} else {
		body.Value = n.cfg.Stake - min(n.cfg.Stake, staked) + cost
	}
	if body.Value > 0 {
		body.From = n.cfg.Pool
	}
	return nil
}

// lost returns what the last fee took from this member.
func (n *Node) lost() (tokens uint64) {
	for _, c := range n.state.Convictions() {
		if c.Key == n.self && c.Offence.Lesser() {
			tokens = c.Slashed
		}
	}
	return tokens
}
