package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/engine/cpu"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/participant"
	"github.com/entrain-network/entrain/participant/trainer"
	"github.com/entrain-network/entrain/retry"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// auditor reads from a run's members, as a guest, and computes their results again.
type auditor struct {
	latest
	options Options
	run     string
	client  ledger.Chain
	trainer *trainer.Trainer
	guest   *participant.Guest       // of members that are peers, or nil
	buckets *participant.BucketGuest // of those with buckets, or nil
	stop    context.CancelFunc       // of the watches
	release func()                   // of the checkpoint that the run continues
	tally   Tally

	paramsRoot wire.Hash         // of params, the last that were needed
	paramsAt   coordinator.Round // at the start of which they were agreed on
	params     []float32

	heard map[coordinator.Member]heard // what buckets have of the members that are audited now

	archived   *archivedRound    // what is audited, in place of members
	archivedAt coordinator.Round // its number
}

// newAuditor connects to the chain, opens the data, and makes itself known to the members. The
// auditor must be closed.
func newAuditor(ctx context.Context, o Options) (_ *auditor, err error) {
	a := &auditor{options: o, run: o.Target.Run, latest: latest{wake: make(chan struct{}, 1)}, stop: func() {}, release: func() {}}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.close())
		}
	}()
	client, on, err := onchain.Open(ctx, o.Endpoints, onchain.DialOptions{Remember: o.Remember}, o.Target)
	if err != nil {
		return nil, err
	}
	a.client = client
	a.latest.s = on.Snapshot
	if o.Member != "" && o.Archive == "" && !o.Watch { // a mistyped one would be waited for
		if _, err := FindMember(on.Snapshot.State, o.Member); err != nil {
			return nil, err
		}
	}
	if on.Spec.Buckets() {
		switch {
		case on.Spec.Trust.VerificationPercent == 0:
			return nil, fmt.Errorf("run %q exchanges by buckets and has no checks of results, so commitments do not hold the gradient: entrain validate %s compares what members reveal with it", a.run, a.run)
		case o.Archive != "":
			return nil, fmt.Errorf("--archive: run %q exchanges by buckets, whose rounds are not archived", a.run)
		}
	}
	at, err := o.Target.DataOf(o.Data, on, o.Endpoints)
	if err != nil {
		return nil, err
	}
	at.Kept = o.Kept
	from, release, err := o.Origin(ctx, on.Spec, o.From)
	if err != nil {
		return nil, err
	}
	a.release = release
	frozen := participant.Frozen(client, on, o.Kept, o.Say)
	if a.trainer, err = trainer.New(ctx, on.Spec, at, trainer.Machine{Workers: o.Workers, Device: o.Device, Tell: o.Tell, From: from, Frozen: frozen}, 0); err != nil {
		return nil, err
	}
	if err := trainer.SelfTest(ctx, a.trainer.Computing); err != nil {
		return nil, err
	}
	if o.Archive != "" && !o.Watch {
		round, at, err := readArchived(o.Archive, on.Snapshot.State.ID(), o.Round)
		if err != nil {
			return nil, err
		}
		a.archived, a.archivedAt, a.latest.s.State = &round, at, round.State
		return a, nil
	}
	if err := a.visit(ctx, o.Target.Run, on.Snapshot.State.ID()); err != nil {
		return nil, err
	}
	return a, nil
}

// visit connects the auditor to the members.
func (a *auditor) visit(ctx context.Context, run string, id wire.Hash) (err error) {
	if t := a.trainer; t.Spec.Buckets() {
		a.buckets = participant.VisitBuckets(a.client, run, id, t.Engine, t.Initial, a.options.Kept)
	} else if a.guest, err = participant.Visit(ctx, a.client, run, id, nil); err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	a.stop = stop
	a.client.Watch(watching, run, a.latest.set)
	return nil
}

func (a *auditor) close() error {
	a.stop()
	var errs []error
	if a.guest != nil {
		errs = append(errs, a.guest.Close())
	}
	if a.buckets != nil {
		errs = append(errs, a.buckets.Close())
	}
	if a.trainer != nil {
		a.trainer.Close()
	}
	if a.client != nil {
		errs = append(errs, a.client.Close())
	}
	a.release()
	return errors.Join(errs...)
}

// others returns the keys of the members to ask, beginning with the audited one.
func others(s coordinator.State, first coordinator.Member) []key.Public {
	list := []key.Public{s.Key(first)}
	for i := range s.Count() {
		if i != first && s.Status(i).Present() {
			list = append(list, s.Key(i))
		}
	}
	return list
}

// contact waits until members answer: they let a guest in once they have seen it on the chain. It
// waits a little for the rest when some answer. A limit of 0 means none while the run goes on: once
// it has finished, members serve its last rounds for a while, or none is there any more.
func (a *auditor) contact(ctx context.Context, limit time.Duration) error {
	if a.buckets != nil {
		return nil // buckets let everybody in
	}
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	over := 0 // turns since the run has finished
	last := errors.New("none of them has a result of a round that is open")
	answered := map[coordinator.Member]bool{}
	var first time.Time
	for turn := 0; ; turn++ {
		s := a.state()
		if turn == tellAfter && first.IsZero() {
			a.options.Say("no member of the run has answered yet, of %d on the chain (it is in phase %s); asking on", s.Present(), s.Phase())
		}
		silent, finished := false, s.Phase() == coordinator.Finished
		for number := s.Round(); number > 0 && (finished || number+2 > s.Round()); number-- {
			r, ok := s.At(number)
			if !ok && number < s.Round() {
				break
			}
			if !ok || !r.Trains() {
				continue
			}
			members, _ := chooseMembers(s, r, "") // none: nobody to ask for
			for _, m := range members[:min(len(members), askedMax)] {
				if answered[m] {
					continue
				}
				found, err := a.guest.Commitments(ctx, s.Key(m), number, members[:min(len(members), askedMax)])
				answered[m] = len(found) > 0
				silent = silent || !answered[m]
				if err != nil && ctx.Err() == nil {
					last = err
				}
				if answered[m] && first.IsZero() {
					first = time.Now()
				}
			}
		}
		if !first.IsZero() && (!silent || time.Since(first) > lastOnes) {
			return nil
		}
		if finished {
			over++
		}
		select {
		case <-ctx.Done():
		case <-time.After(auditAskEvery):
		}
		switch {
		case finished && (ctx.Err() != nil || over == finishedTurns && first.IsZero()):
			return fmt.Errorf("run %q has finished, and none of its members serves its rounds any more; --archive DIR audits those that entrain audit --watch has kept: %w", a.run, last)
		case ctx.Err() != nil:
			return fmt.Errorf("reach the run's members (it is in phase %s): %w; they must be online, and reachable from here", s.Phase(), last)
		}
	}
}

// finishedTurns is the number of turns without an answer after which a finished run counts as one
// that nobody serves.
const finishedTurns = 16

// lastOnes is the time that contact waits for silent members when others answer.
const lastOnes = 4 * time.Second

// served reports whether members still keep what belongs to a round.
func served(s coordinator.State, round coordinator.Round) bool {
	_, ok := s.At(round)
	return ok
}

// askedMax is the number of members asked for a commitment in one turn. Usually each member has all
// of them.
const askedMax = 8

// tellAfter is the number of turns without an answer after which the auditor says so.
const tellAfter = 8

// auditAskEvery is the pause between two turns of asking.
const auditAskEvery = 250 * time.Millisecond

// heard is a member's commitment from its bucket, or why there is none.
type heard struct {
	signed dispute.Signed
	err    error
}

// hear reads the commitments of members to a window from their buckets, if they have any, for
// gather.
func (a *auditor) hear(ctx context.Context, r coordinator.RoundState, members ...coordinator.Member) {
	if a.buckets == nil {
		return
	}
	a.heard = map[coordinator.Member]heard{}
	a.buckets.Commitments(ctx, a.state(), r, members, func(m coordinator.Member, signed dispute.Signed, err error) {
		a.heard[m] = heard{signed, err}
	})
}

// commitments asks members for one member's commitments to a round, until one has them.
func (a *auditor) commitments(ctx context.Context, s coordinator.State, r coordinator.RoundState, member coordinator.Member) ([]dispute.Signed, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	round := r.Number()
	if a.buckets != nil {
		h := a.heard[member]
		return []dispute.Signed{h.signed}, h.err
	}
	if a.archived != nil {
		if found := commitmentsOf(a.archived, round, member); len(found) > 0 {
			return found, nil
		}
		return nil, errors.New("the archive does not have its commitment")
	}
	var last error
	for {
		var found []dispute.Signed
		asked := others(s, member)
		for _, k := range asked[:min(len(asked), askedMax)] {
			list, err := a.guest.Commitments(ctx, k, round, []coordinator.Member{member})
			if err != nil {
				last = err
				continue
			}
			for _, e := range list {
				if e.Author == s.Key(member) && !slices.ContainsFunc(found, func(o dispute.Signed) bool { return o.Commitment == e.Signed.Commitment }) {
					found = append(found, e.Signed)
				}
			}
		}
		if len(found) > 0 {
			return found, nil
		}
		if !served(a.state(), round) {
			return nil, errors.New("no member has its commitment any more")
		}
		select {
		case <-ctx.Done():
			if last != nil {
				return nil, fmt.Errorf("no member answers: %w", last)
			}
			return nil, errors.New("no member has its commitment any more")
		case <-time.After(auditAskEvery):
		}
	}
}

// floats fetches parameters or an optimizer state.
func (a *auditor) floats(ctx context.Context, root wire.Hash, n int, from []key.Public) ([]float32, error) {
	if a.archived != nil {
		return floatsOf(a.archived, root, n)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	data, err := a.guest.Fetch(ctx, p2p.Fetch{Ref: p2p.Ref{Root: root, Size: uint64(n) * 4}, From: from})
	if err != nil {
		return nil, err
	}
	v := make([]float32, n)
	tensor.SetBytes(v, data)
	return v, nil
}

// start fetches the parameters at a round's start.
func (a *auditor) start(ctx context.Context, s coordinator.State, round coordinator.Round, root wire.Hash, member coordinator.Member) ([]float32, error) {
	if a.paramsRoot == root && a.params != nil {
		return a.params, nil
	}
	var err error
	held := a.params
	a.params = nil
	if root == s.Config().ModelHash {
		a.params = a.trainer.Initial()
	}
	if a.params != nil {
		a.paramsRoot, a.paramsAt = root, round
		return a.params, nil
	}
	if a.buckets != nil {
		if round < a.paramsAt {
			held = nil
		}
		a.params, err = a.fromBuckets(ctx, s, round, root, held)
	} else {
		a.params, err = a.floats(ctx, root, a.trainer.Engine.ParamsLen(), others(s, member))
	}
	if err != nil {
		return nil, err
	}
	a.paramsRoot, a.paramsAt = root, round
	return a.params, nil
}

// fromBuckets gets the parameters at a window's start from what members have published, patching
// held if there are any. The last that leads to them is published during the windows after.
func (a *auditor) fromBuckets(ctx context.Context, s coordinator.State, round coordinator.Round, root wire.Hash, held []float32) ([]float32, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		params, err := a.buckets.Params(ctx, s, round, root, a.paramsAt, held)
		if err == nil || !served(a.state(), round) || retry.Wait(ctx, auditAskEvery) != nil {
			if err != nil {
				first, _, _ := strings.Cut(err.Error(), "\n") // each bucket has a line
				err = errors.New(first)
			}
			return params, err
		}
	}
}

// before fetches the optimizer state with which a member began.
func (a *auditor) before(ctx context.Context, s coordinator.State, prev wire.Hash, member coordinator.Member) ([]float32, error) {
	n := a.trainer.Engine.StateLen()
	if fresh := make([]float32, n); prev == merkle.Root(a.trainer.Engine.Leaves(cpu.Floats(fresh))) {
		return fresh, nil
	}
	return a.floats(ctx, prev, n, others(s, member))
}
