package main

import (
	"context"
	"errors"

	"github.com/entrain-network/entrain/participant"
)

// errCannotJoin ends join --check with status 1 once it has printed the reasons.
var errCannotJoin = errors.New("this machine cannot take part in the run now")

// checkJoin prints whether this machine and this key can take part in a run.
func (c console) checkJoin(ctx context.Context, o joinOptions) error {
	check := participant.CheckOptions{
		Target: o.Target, Endpoints: c.endpoints(o.Endpoints), Data: o.Data, Stake: o.Stake, Pool: o.Pool, Memory: o.Memory, Delegation: o.Delegation,
		Mining: o.Mining, Remember: c.remembered(), Program: version().Version, Getenv: c.env,
	}
	k, _, err := c.ownKey(o.keyFile) // tokens may be sent to it
	if err != nil {
		return err
	}
	check.Key = k.Public()
	check.State, check.Checkpoints = c.places.StateDir(participant.MemberState, o.Target.Run, o.State, check.Key), o.Checkpoints
	r, err := check.Check(ctx)
	if err != nil {
		return err
	}
	if err = c.print(o.asJSON, r, r.Write); !r.Can {
		err = errors.Join(err, errCannotJoin)
	}
	return err
}

// errUnfit ends join --check with status 1 once it has printed what is wrong with a bucket.
var errUnfit = errors.New("the bucket is not fit: see above, and docs/buckets.md")

// checkBucket tries each operation that a run needs of a bucket, and that others cannot write.
func (c console) checkBucket(ctx context.Context, m participant.Mining, asJSON bool) error {
	announced, findings, err := m.Examine(ctx, c.env)
	if err != nil {
		return err
	}
	fit := true
	for _, f := range findings {
		fit = fit && f.OK
		switch {
		case asJSON:
			err = errors.Join(err, c.object(f))
		case f.OK:
			c.say("yes  %s", f.What)
		default:
			c.say("NO   %s: %s", f.What, f.Reason)
		}
	}
	if !fit {
		return errors.Join(err, errUnfit)
	}
	if !asJSON {
		c.say("the bucket is fit; it will be announced as %s", announced)
	}
	return err
}
