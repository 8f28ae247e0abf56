package participant

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/entrain-network/entrain/chain/solana"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/participant/trainer"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/view"
)

// Obstacle is a reason why a machine or a key cannot take part in a run.
type Obstacle struct {
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
	obstacleDisk       = "disk"
	ObstacleClock      = "clock"
	obstacleData       = "data"
	obstacleArithmetic = "arithmetic"
	obstacleBucket     = "bucket"  // of a miner
	obstacleFees       = "fees"    // on Solana
	ObstacleListed     = "listed"  // not on the owner's list
	ObstacleVersion    = "version" // of this program
	obstacleRun        = "run"     // none of that name, another one, or none that this version knows
)

// Applicant is a key that wants to take part, and what it offers.
type Applicant struct {
	Key    key.Public
	stake  uint64 // that it offers; what it has in the run counts
	pool   string
	memory uint64 // bytes it may take; 0 where that is not known
	// state is its directory, which may take disk bytes; 0 where that is not known. checkpoints are
	// kept in it.
	state       string
	disk        uint64
	checkpoints int
	Skew        func(context.Context) (time.Duration, error)
	program     string     // version of this program
	owner       key.Public // for whom the key would work, zero for itself
}

// Obstacles returns all that stands in the way, except for faults of the data and the arithmetic,
// which take longer to check.
func (a Applicant) Obstacles(ctx context.Context, client ledger.Chain, on onchain.Run) (list []Obstacle, err error) {
	o, err := a.Asked(ctx, client, on.Snapshot)
	if err != nil {
		return nil, err
	}
	list = append(list, o...)
	admission, err := client.Admission(ctx, on.Spec.Name)
	if err != nil {
		return nil, fmt.Errorf("who may take part in run %q: %w", on.Spec.Name, err)
	}
	list = append(append(list, a.unlisted(admission, on)...), TooOld(on.Spec, admission.Program, a.program)...)
	st := on.Snapshot.State
	if st.Phase() == coordinator.Paused || st.PausePending() {
		list = append(list, Obstacle{obstaclePaused, fmt.Sprintf("run %q is paused by its owner; members that join wait until it is resumed", on.Spec.Name), true})
	}
	z, err := trainer.SizesOf(on.Spec)
	if err != nil {
		return nil, err
	}
	if a.memory > 0 && z.Memory > a.memory {
		list = append(list, Obstacle{Kind: obstacleMemory, Reason: fmt.Sprintf("the model of %s parameters takes about %s of memory here, and %s can be had; close other programs, raise --limit-memory, or use a larger machine",
			view.Thousands(z.Parameters), view.Bytes(z.Memory), view.Bytes(a.memory))})
	}
	list = append(list, a.cramped(on.Spec.Name, z)...)
	account, err := client.Account(ctx, a.Key)
	if err != nil {
		return nil, fmt.Errorf("account: %w", err)
	}
	if _, known := st.Find(a.Key); account.Address != "" && !known && account.Lamports < solana.MemberLamports {
		list = append(list, Obstacle{Kind: obstacleFees, Reason: fmt.Sprintf("fees and rent take %.3f SOL to begin with: %s, the key's account, has %.3f; send it some",
			float64(solana.MemberLamports)/1e9, account.Address, float64(account.Lamports)/1e9)})
	}
	if err := wrongClock(ctx, a.Skew); err != nil {
		list = append(list, Obstacle{Kind: ObstacleClock, Reason: err.Error()})
	}
	return list, nil
}

// wrongClock returns an error if the chain would refuse what this machine signs.
func wrongClock(ctx context.Context, of func(context.Context) (time.Duration, error)) error {
	skew, err := of(ctx)
	if err != nil || skew.Abs() <= skewMax {
		return nil
	}
	side := "ahead of"
	if skew < 0 {
		side = "behind"
	}
	return fmt.Errorf("this machine's clock is %s %s the chain's, more than %s: what it signs would be refused as expired or too early; set the clock (timedatectl set-ntp true), or if it is right, tell who runs the chain",
		skew.Abs().Round(time.Second), side, skewMax)
}

// unlisted returns an obstacle if the run's owner keeps a list without the applicant.
func (a Applicant) unlisted(list host.Admission, on onchain.Run) []Obstacle {
	now := uint64(time.Now().UnixMilli())
	if list.Allows(a.Key, now) || a.owner != (key.Public{}) && list.Allows(a.owner, now) {
		return nil
	}
	return []Obstacle{{Kind: ObstacleListed, Reason: fmt.Sprintf("run %q takes only keys on its owner's list, and %s is not: ask its owner (entrain run allow %s %s), or a listed key's owner to let you work for them (entrain key delegate)",
		on.Spec.Name, a.Key, on.Spec.Name, a.Key)}}
}

// TooOld returns an obstacle if the run requires a newer program, by its specification or by its
// owner since, whichever is newer. It lets a build without a version pass.
func TooOld(s spec.Spec, required, program string) []Obstacle {
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
	return []Obstacle{{Kind: ObstacleVersion, Reason: fmt.Sprintf("run %q wants entrain %s or newer, and this is %s: get a newer one", s.Name, least, program)}}
}

// Outdated says why a run does not take a version of this program, "" if it does.
func Outdated(ctx context.Context, client ledger.Chain, on onchain.Run, program string) (string, error) {
	admission, err := client.Admission(ctx, on.Spec.Name)
	if err != nil {
		return "", fmt.Errorf("who may take part in run %q: %w", on.Spec.Name, err)
	}
	for _, o := range TooOld(on.Spec, admission.Program, program) {
		return o.Reason, nil
	}
	return "", nil
}

// skewMax is the greatest error of a clock. Transactions expire half of host.TxLifetimeMs after
// they are signed, and none may expire later than all of it; a minute remains for them to be
// accepted.
const skewMax = host.TxLifetimeMs/2*time.Millisecond - time.Minute

// Asked asks a copy of the run's coordinator how it would answer if the applicant joined now.
func (a Applicant) Asked(ctx context.Context, client ledger.Chain, s ledger.Snapshot) ([]Obstacle, error) {
	st, err := coordinator.Open(bytes.Clone(s.State.Bytes()))
	if err != nil {
		return nil, fmt.Errorf("state of the run: %w", err)
	}
	held, known, present, name := uint64(0), false, false, st.Config().Name
	if i, ok := st.Find(a.Key); ok {
		held, known, present = st.Member(i).Stake, true, st.Member(i).Status.Present()
	}
	missing := a.stake - min(a.stake, held) + st.JoinCost(a.Key)
	err = st.Apply(coordinator.Env{NowMs: s.TimeMs, Height: s.Height, Sender: a.Key, Value: missing}, coordinator.Join{})
	switch {
	case present && s.State.Phase() != coordinator.Finished:
		return nil, nil // a member that comes back
	case errors.Is(err, coordinator.ErrPhase):
		if known {
			return nil, nil // it fetches the last parameters
		}
		return []Obstacle{{Kind: obstacleFinished, Reason: fmt.Sprintf("run %q has finished, after %d steps; nothing is left to do. "+
			"Its model comes with: entrain model export RUN -o FILE, or chat or serve in place of export; RUN as for join, also a ticket", name, s.State.Step())}}, nil
	case errors.Is(err, coordinator.ErrFull):
		return []Obstacle{{Kind: obstacleFull, Reason: fmt.Sprintf("run %q is full: all %d places are taken, %d of them by present members; one is free when a member has left and is owed nothing",
			name, s.State.Limits().Members, s.State.Present())}}, nil
	case errors.Is(err, coordinator.ErrSlots):
		return []Obstacle{{Kind: obstacleFull, Reason: fmt.Sprintf("run %q: %v", name, err)}}, nil
	case errors.Is(err, coordinator.ErrEjected):
		return []Obstacle{{Kind: obstacleEjected, Reason: a.Conviction(s.State)}}, nil
	case errors.Is(err, coordinator.ErrStake):
		want, has, why := st.Config().Stake, max(held, a.stake), ""
		if has > 0 {
			why = fmt.Sprintf(", and %s would have %s in it: %s are missing", a.Key, view.Tokens(has), view.Tokens(want-min(want, has)))
		}
		list := []Obstacle{{Kind: obstacleStake, Reason: fmt.Sprintf("run %q wants a stake of %s%s; say --stake %d", name, view.Tokens(want), why, want)}}
		short, err := a.purse(ctx, client, want-min(want, held)+st.JoinCost(a.Key))
		return append(list, short...), err
	case err != nil && !errors.Is(err, coordinator.ErrPayee): // the pool's payee is not known here
		return []Obstacle{{Kind: obstacleRefused, Reason: fmt.Sprintf("run %q would refuse: %v", name, err)}}, nil
	}
	return a.purse(ctx, client, missing)
}

// purse compares the missing stake with the tokens that could pay for it.
func (a Applicant) purse(ctx context.Context, client ledger.Chain, missing uint64) ([]Obstacle, error) {
	if missing == 0 {
		return nil, nil
	}
	has, whose := uint64(0), "the account of "+a.Key.String()
	if a.pool != "" {
		p, err := client.Pool(ctx, a.pool)
		if err != nil {
			return []Obstacle{{Kind: obstacleStake, Reason: fmt.Sprintf("pool %q: %v", a.pool, err)}}, nil
		}
		has, whose = p.Idle, fmt.Sprintf("pool %q", a.pool)
	} else {
		account, err := client.Account(ctx, a.Key)
		if err != nil {
			return nil, fmt.Errorf("account: %w", err)
		}
		has = account.Tokens
	}
	if has >= missing {
		return nil, nil
	}
	return []Obstacle{{Kind: obstacleStake, Reason: fmt.Sprintf("taking part takes %s out of %s, which has %s: %s are missing; have them sent with: entrain wallet send %s %d",
		view.Tokens(missing), whose, view.Tokens(has), view.Tokens(missing-has), a.Key, missing-has)}}, nil
}

// Conviction returns what the applicant was ejected for.
func (a Applicant) Conviction(st coordinator.State) string {
	why := ""
	for _, v := range st.Convictions() {
		if v.Key == a.Key && !v.Offence.Lesser() {
			why = fmt.Sprintf(": conviction %d, of %s in round %d, evidence %s, slashed %s", v.Number, v.Offence, v.Round, v.Evidence, view.Tokens(v.Slashed))
		}
	}
	if why == "" {
		why = "; the conviction is older than those that the run keeps"
	}
	return fmt.Sprintf("%s was ejected from run %q%s; it may not join again", a.Key, st.Config().Name, why)
}

// admitted returns an error if an obstacle does not pass by itself. It reports the others with
// p.Say.
func (p *Options) admitted(ctx context.Context, client ledger.Chain, on onchain.Run) error {
	a := Applicant{Key: p.Key.Public(), stake: p.Stake, pool: p.Pool, memory: memoryLimit(p.Memory, MemoryFree()), Skew: onchain.ClockSkew(p.Endpoints), program: p.Program, state: p.State, disk: diskRoom(p.State), checkpoints: p.Checkpoints}
	list, err := a.Obstacles(ctx, client, on)
	if err != nil {
		return err
	}
	var errs []error
	for _, o := range list {
		if o.passes {
			p.Say("%s", o.Reason)
			continue
		}
		errs = append(errs, errors.New(o.Reason))
	}
	if on.Spec.Buckets() {
		_, _, err := p.Mining.Places(p.Getenv)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// memoryLimit returns the memory that may be taken: what was asked for, but no more than is free; 0
// if neither is known.
func memoryLimit(asked, free uint64) uint64 {
	if asked == 0 || free > 0 && asked > free {
		return free
	}
	return asked
}
