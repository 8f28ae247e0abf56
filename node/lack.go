package node

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/p2p"
)

// lack is how long this member has looked for the agreed parameters in vain, as a person is told.
type lack struct {
	since, next time.Time // zero: it has not
}

// returnMost bounds the rounds after which an epoch whose rounds agree on nothing has ended: three
// such rounds, the drain, and three repeats of its last.
const returnMost = 10

// A person is told of the lack after lackFirst, because a member that has just started reaches the
// others only after a moment; then after twice as long each time, and at last every lackMost.
const (
	lackFirst = 10 * time.Second
	lackMost  = 10 * time.Minute
)

// lacks tells a person, every while, that nobody gives the agreed parameters, and what helps.
func (n *Node) lacks(a client.Heal, err error) {
	now, l := n.cfg.Loop.Now(), &n.lack
	if l.since.IsZero() {
		*l = lack{since: now, next: now.Add(lackFirst)}
	}
	if now.Before(l.next) {
		return
	}
	for l.next.Before(now.Add(time.Nanosecond)) {
		l.next = l.next.Add(min(l.next.Sub(l.since), lackMost))
	}
	what, bring := fmt.Sprintf("the model of round %d, parameters %s", a.Round, a.Params), "has it"
	if a.Params == n.state.Config().ModelHash {
		what, bring = fmt.Sprintf("the model that the run begins with, parameters %s", a.Params), "has its checkpoint"
	}
	n.note(fmt.Sprintf("waiting for %s, for %s: %s; it comes when a member that has it is online, or start again with --from DIR if this machine %s%s",
		what, now.Sub(l.since).Round(time.Second), n.nobody(), bring, fault(err)))
}

// tellBehind tells a person what a member waits for that is alone in its run, came back with the
// parameters of an older round and got no further: its disk was full or damaged, and the
// coordinator returns the run to the agreed parameters only after rounds without results.
func (n *Node) tellBehind(round coordinator.Round) {
	phase := n.state.Phase()
	_, uploads := n.exchange.(publisher) // buckets outlive this machine
	at, _, _ := n.machine.Round()
	if n.ctx.Err() != nil || uploads || n.state.Present() > 1 || at > round || at >= n.state.Round() || n.engine.Busy() ||
		phase != coordinator.RoundTrain && phase != coordinator.RoundWitness {
		return
	}
	n.note(fmt.Sprintf("this machine has the model of round %d, the run is at round %d, and no other member is there: what was not on the disk is lost; the run goes back to the model by itself, within %d rounds",
		round, n.state.Round(), returnMost))
}

// nobody says who does not give the model.
func (n *Node) nobody() string {
	switch linked := n.connections.linked; {
	case n.cfg.Bucket != nil:
		return fmt.Sprintf("the buckets of %d other members do not lead to it", linked)
	case linked == 0:
		return "no other member is online"
	case linked == 1:
		return "the only other one online does not give it"
	default:
		return fmt.Sprintf("none of %d others that are online gives it", linked)
	}
}

// fault is what a peer or a bucket did wrong, "" if the peers only lack the model or are not there.
func fault(err error) string {
	if failed, ok := errors.AsType[*p2p.FetchError](err); ok {
		for _, t := range failed.Troubles {
			for _, offence := range []error{p2p.ErrLied, p2p.ErrMalformed, p2p.ErrStalled, p2p.ErrBusy, p2p.ErrRefused} {
				if errors.Is(t.Err, offence) {
					return fmt.Sprintf(" (%v)", &t)
				}
			}
		}
		return ""
	}
	return fmt.Sprintf(" (%.300s)", strings.ReplaceAll(err.Error(), "\n", "; "))
}
