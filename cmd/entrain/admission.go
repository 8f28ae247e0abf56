package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/spec"
)

// obstacle is why somebody cannot take part in a run.
type obstacle struct {
	Kind   string `json:"kind"` // one of the constants below
	Reason string `json:"reason"`
	passes bool   // by itself: join waits for that
}

// The kinds of obstacles.
const (
	obstacleFinished   = "finished"
	obstaclePaused     = "paused"
	obstacleFull       = "full"
	obstacleEjected    = "ejected"
	obstacleStake      = "stake"
	obstacleRefused    = "refused"
	obstacleMemory     = "memory"
	obstacleClock      = "clock"
	obstacleData       = "data"
	obstacleArithmetic = "arithmetic"
	obstacleBucket     = "bucket"  // of a miner
	obstacleListed     = "listed"  // not on the owner's list
	obstacleVersion    = "version" // of this program
	obstacleRun        = "run"     // none of that name, another one, or none that this version knows
)

// applicant is who wants to take part, and with what.
type applicant struct {
	key    key.Public
	stake  uint64 // that it offers; what it has in the run counts
	pool   string
	memory uint64 // bytes it may take; 0 where that is not known
	skew   func(context.Context) (time.Duration, error)
}

// obstacles are all that stands in the way, but for the data and the arithmetic, which take a while to look at.
func (a applicant) obstacles(ctx context.Context, client ledger.Chain, on onchain.Run) (list []obstacle, err error) {
	o, err := a.asked(ctx, client, on.Snapshot)
	if err != nil {
		return nil, err
	}
	list = append(list, o...)
	admission, err := client.Admission(ctx, on.Spec.Name)
	if err != nil {
		return nil, fmt.Errorf("who may take part in run %q: %w", on.Spec.Name, err)
	}
	list = append(append(list, a.unlisted(admission, on)...), tooOld(on.Spec, admission.Program, version().Version)...)
	st := on.Snapshot.State
	if st.Phase() == coordinator.Paused || st.PausePending() {
		list = append(list, obstacle{obstaclePaused, fmt.Sprintf("run %q is paused by its owner; who joins waits until it is resumed", on.Spec.Name), true})
	}
	z, err := sizesOf(on.Spec)
	if err != nil {
		return nil, err
	}
	if a.memory > 0 && z.Memory > a.memory {
		list = append(list, obstacle{Kind: obstacleMemory, Reason: fmt.Sprintf("the model of %s parameters takes about %s of memory here, and %s can be had; close other programs, raise --limit-memory, or use a larger machine",
			thousands(z.Parameters), bytesText(z.Memory), bytesText(a.memory))})
	}
	if skew, err := a.skew(ctx); err == nil && (skew > skewMax || skew < -skewMax) {
		side := "ahead"
		if skew < 0 {
			side = "behind"
		}
		list = append(list, obstacle{Kind: obstacleClock, Reason: fmt.Sprintf("this machine's clock is %s %s of the chain's, more than %s: what it signs would be refused as expired or too early; set the clock (timedatectl set-ntp true)",
			skew.Abs().Round(time.Second), side, skewMax)})
	}
	return list, nil
}

// unlisted says whether the run's owner keeps a list, and the applicant is not on it.
func (a applicant) unlisted(list host.Admission, on onchain.Run) []obstacle {
	if list.Allows(a.key, uint64(time.Now().UnixMilli())) {
		return nil
	}
	return []obstacle{{Kind: obstacleListed, Reason: fmt.Sprintf("run %q takes only keys on its owner's list, and %s is not: ask its owner (entrain run allow %s %s), or whoever is listed to let you work for them (entrain key delegate)",
		on.Spec.Name, a.key, on.Spec.Name, a.key)}}
}

// tooOld says whether the run wants a newer program: what its specification says, or its owner since, whichever is newer. A build without a
// version is not held up: what it is nobody knows.
func tooOld(s spec.Spec, required, program string) []obstacle {
	least, err := spec.ParseVersion(s.Members.ClientMin)
	since, fault := spec.ParseVersion(required)
	if err != nil || fault == nil && since.Compare(least) > 0 {
		least, err = since, fault
	}
	if err != nil {
		return nil // any
	}
	have, err := spec.ParseVersion(program)
	if err != nil || have.Compare(least) >= 0 {
		return nil
	}
	return []obstacle{{Kind: obstacleVersion, Reason: fmt.Sprintf("run %q wants entrain %s or newer, and this is %s: get a newer one", s.Name, least, program)}}
}

// skewMax is how far a clock may be off: transactions expire half of host.TxLifetimeMs after they are signed, and none may expire later than
// all of it. A minute is left for them to be taken.
const skewMax = host.TxLifetimeMs/2*time.Millisecond - time.Minute

// asked asks a copy of the run's coordinator what it would answer if the applicant joined now.
func (a applicant) asked(ctx context.Context, client ledger.Chain, s ledger.Snapshot) ([]obstacle, error) {
	st, err := coordinator.Open(bytes.Clone(s.State.Bytes()))
	if err != nil {
		return nil, fmt.Errorf("state of the run: %w", err)
	}
	held, known, present, name := uint64(0), false, false, st.Config().Name
	if i, ok := st.Find(a.key); ok {
		held, known, present = st.Member(i).Stake, true, st.Member(i).Status.Present()
	}
	missing := a.stake - min(a.stake, held) + st.JoinCost(a.key)
	err = st.Apply(coordinator.Env{NowMs: s.TimeMs, Height: s.Height, Sender: a.key, Value: missing}, coordinator.Join{})
	switch {
	case present && s.State.Phase() != coordinator.Finished:
		return nil, nil // a member that comes back
	case errors.Is(err, coordinator.ErrPhase):
		if known {
			return nil, nil // it fetches the last parameters
		}
		return []obstacle{{Kind: obstacleFinished, Reason: fmt.Sprintf("run %q has finished, after %d steps; nothing is left to do", name, s.State.Step())}}, nil
	case errors.Is(err, coordinator.ErrFull):
		return []obstacle{{Kind: obstacleFull, Reason: fmt.Sprintf("run %q is full: all %d places are taken, %d of them by present members; one is free when a member has left and is owed nothing",
			name, s.State.Limits().Members, s.State.Present())}}, nil
	case errors.Is(err, coordinator.ErrSlots):
		return []obstacle{{Kind: obstacleFull, Reason: fmt.Sprintf("run %q: %v", name, err)}}, nil
	case errors.Is(err, coordinator.ErrEjected):
		return []obstacle{{Kind: obstacleEjected, Reason: a.conviction(s.State)}}, nil
	case errors.Is(err, coordinator.ErrStake):
		want := st.Config().Stake
		return []obstacle{{Kind: obstacleStake, Reason: fmt.Sprintf("run %q wants a stake of %s, and %s would have %s in it: %s are missing; say --stake %d",
			name, tokens(want), a.key, tokens(max(held, a.stake)), tokens(want-min(want, max(held, a.stake))), want)}}, nil
	case err != nil && !errors.Is(err, coordinator.ErrPayee): // the pool's payee is not known here
		return []obstacle{{Kind: obstacleRefused, Reason: fmt.Sprintf("run %q would refuse: %v", name, err)}}, nil
	}
	return a.purse(ctx, client, missing)
}

// purse compares what is missing of the stake with what there is to pay it from.
func (a applicant) purse(ctx context.Context, client ledger.Chain, missing uint64) ([]obstacle, error) {
	if missing == 0 {
		return nil, nil
	}
	has, whose := uint64(0), "the account of "+a.key.String()
	if a.pool != "" {
		p, err := client.Pool(ctx, a.pool)
		if err != nil {
			return []obstacle{{Kind: obstacleStake, Reason: fmt.Sprintf("pool %q: %v", a.pool, err)}}, nil
		}
		has, whose = p.Idle, fmt.Sprintf("pool %q", a.pool)
	} else {
		account, err := client.Account(ctx, a.key)
		if err != nil {
			return nil, fmt.Errorf("account: %w", err)
		}
		has = account.Tokens
	}
	if has >= missing {
		return nil, nil
	}
	return []obstacle{{Kind: obstacleStake, Reason: fmt.Sprintf("the stake takes %s out of %s, which has %s: %s are missing; have them sent with: entrain account send %s %d",
		tokens(missing), whose, tokens(has), tokens(missing-has), a.key, missing-has)}}, nil
}

// conviction says what the applicant was ejected for.
func (a applicant) conviction(st coordinator.State) string {
	why := ""
	for _, v := range st.Convictions() {
		if v.Key == a.key && !v.Offence.Lesser() {
			why = fmt.Sprintf(": conviction %d, of %s in round %d, evidence %s, slashed %s", v.Number, v.Offence, v.Round, v.Evidence, tokens(v.Slashed))
		}
	}
	if why == "" {
		why = "; the conviction is older than those that the run keeps"
	}
	return fmt.Sprintf("%s was ejected from run %q%s; it may not join again", a.key, st.Config().Name, why)
}

// blocked is the error of obstacles that do not pass by themselves; nil if there are none. Those that pass are said.
func (c console) blocked(list []obstacle) error {
	var errs []error
	for _, o := range list {
		if o.passes {
			c.say("%s", o.Reason)
			continue
		}
		errs = append(errs, errors.New(o.Reason))
	}
	return errors.Join(errs...)
}

// admitted is an error if something stands in the participant's way that waiting does not remove.
func (p *participation) admitted(ctx context.Context, c console, client ledger.Chain, on onchain.Run) error {
	a := applicant{key: p.key.Public(), stake: p.stake, pool: p.pool, memory: p.memory.or(memoryFree()), skew: onchain.ClockSkew(p.endpoints)}
	list, err := a.obstacles(ctx, client, on)
	if err != nil {
		return err
	}
	return c.blocked(list)
}
