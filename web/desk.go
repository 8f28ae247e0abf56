package web

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/runlog"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/verify"
	"github.com/entrain-network/entrain/view"
)

// publishEvery is the least time between two versions of a run: pages are told no more often,
// however fast it goes.
const publishEvery = 250 * time.Millisecond

// Names of the curves, as in a participant's metrics where it has them.
const (
	curveLoss     = "train/loss"
	curveHeldOut  = "eval/loss"
	curveLR       = "train/lr"
	curveGradNorm = "train/grad_norm"
	curveSpeed    = "perf/tokens_per_sec"
	curveSeconds  = "perf/round_seconds"
	curveBytes    = "net/payload_bytes"
	curveMembers  = "run/members"
)

// desk holds all that the server knows of one run.
type desk struct {
	boot string // Server.boot

	mu      sync.Mutex // guards all that follows
	fold    *view.Fold
	state   *coordinator.State // the newest; nil before the first
	height  uint64
	text    []byte // of the specification, nil until it was read
	spec    *spec.Spec
	names   view.Names
	dirty   bool          // something came since run was made
	wake    chan struct{} // closed when something comes
	version uint64        // of what is below
	made    time.Time
	run     view.Run
	ranks   []coordinator.Member // places by points, the most first
	curves  map[string]*published
	begunMs uint64 // when the first state came, if no log told of what was before
	newest  ledger.Snapshot
	// coming is the desk of what a participant's log tells of the past, while that is being read,
	// and read the percentage that was.
	coming *desk
	read   int
}

// newDesk returns the desk of a run of which nothing is known.
func newDesk() *desk {
	d := &desk{fold: view.New(""), wake: make(chan struct{}), curves: map[string]*published{}}
	d.fold.KeepHistory()
	return d
}

// observe takes a state from the chain. It belongs to the desk from then on.
func (d *desk) observe(s ledger.Snapshot, now time.Time) {
	standing := runlog.Digest(s)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.state != nil && s.Height < d.height {
		return
	}
	if !d.fold.Begun() && s.State.Round() > 1 {
		d.begunMs = uint64(now.UnixMilli())
	}
	d.state, d.height, d.newest = &s.State, s.Height, s
	d.take(runlog.Record{Time: now, Standing: standing}, d.state)
}

// add takes a record of a participant's log.
func (d *desk) add(r runlog.Record) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.Standing != nil && d.state != nil {
		return // the chain itself is newer
	}
	d.take(r, nil)
}

func (d *desk) take(r runlog.Record, state *coordinator.State) {
	d.fold.Add(r)
	if state != nil {
		d.fold.Observe(*state)
	}
	d.news()
}

// news wakes the streams that wait for something new.
func (d *desk) news() {
	d.dirty = true
	close(d.wake)
	d.wake = make(chan struct{})
}

// specified takes the run's specification.
func (d *desk) specified(text []byte, s *spec.Spec) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.text, d.spec = text, s
	d.fold.NameOps(verify.OpNames(text))
	if d.coming != nil {
		d.coming.specified(text, s)
	}
}

// called takes what keys are called on the chain.
func (d *desk) called(n view.Names) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.names = n
	d.fold.Called(n)
	if d.fold.Begun() {
		d.news()
	}
}

// recall begins to read what a participant's log tells of the past, to a desk of its own: what the
// chain says now is shown meanwhile.
func (d *desk) recall() *desk {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.coming, d.read = newDesk(), 0
	if d.spec != nil {
		d.coming.fold.NameOps(verify.OpNames(d.text))
	}
	return d.coming
}

// recalling notes the percentage of the past that was read.
func (d *desk) recalling(percent int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.coming != nil && d.read != percent {
		d.read = percent
		d.news()
	}
}

// recalled makes what was read of the past what is shown, with what the chain has said since.
func (d *desk) recalled() {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.coming
	if c == nil {
		return
	}
	d.coming = nil
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fold.Begun() { // it told of something
		d.fold, d.begunMs = c.fold, 0
		d.fold.Called(d.names)
		if d.state != nil {
			d.take(runlog.Record{Time: time.UnixMilli(int64(d.newest.TimeMs)), Standing: runlog.Digest(d.newest)}, d.state)
		}
	}
	d.news()
}

// changed returns a channel that is closed when something newer than the version comes, at once if
// there is something already.
func (d *desk) changed(version uint64) <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dirty || d.version > version {
		ready := make(chan struct{})
		close(ready)
		return ready
	}
	return d.wake
}

// refresh makes a new version if there is something new and the last one is old enough. It is
// called with the lock held.
func (d *desk) refresh(now time.Time) {
	if !d.dirty || d.version > 0 && now.Sub(d.made) < publishEvery {
		return
	}
	d.dirty, d.made = false, now
	d.version++
	d.run = d.fold.Run(now)
	d.ranks = d.ranks[:0]
	for i := range d.run.Members {
		d.ranks = append(d.ranks, coordinator.Member(i))
	}
	slices.SortStableFunc(d.ranks, func(a, b coordinator.Member) int { return d.run.Better(d.run.Members[a], d.run.Members[b]) })
	curves := []namedCurve{
		{curveLoss, d.run.Loss}, {curveHeldOut, d.run.HeldOut}, {curveLR, d.run.LR}, {curveGradNorm, d.run.GradNorm},
		{curveSpeed, d.run.Speed}, {curveSeconds, d.run.Seconds}, {curveBytes, d.run.Payloads}, {curveMembers, d.run.Size},
	}
	for _, t := range d.run.Tasks {
		curves = append(curves, namedCurve{"eval/" + t.Name + "/acc", t.Acc}, namedCurve{"eval/" + t.Name + "/acc_norm", t.Norm})
	}
	for _, c := range curves {
		p := d.curves[c.name]
		if p == nil {
			p = &published{}
			d.curves[c.name] = p
		}
		p.update(withTokens(c.curve, d.run.Seconds), d.version)
	}
}

// namedCurve is a curve as pages ask for it.
type namedCurve struct {
	name  string
	curve view.Curve
}

// withTokens returns a copy of a curve in which tokens are those of the steps, as told by a curve
// that has them from the chain. A participant's log is read a little late, and may be read when the
// run is long further on.
func withTokens(c, steps view.Curve) view.Curve {
	c = slices.Clone(c)
	for i := range c {
		at, ok := slices.BinarySearchFunc(steps, c[i].To, func(b view.Bucket, step coordinator.Step) int { return cmp.Compare(b.To, step) })
		switch {
		case ok:
			c[i].Tokens = steps[at].Tokens
		case at > 0 && at < len(steps): // in between, or within a bucket
			a, b := steps[at-1], steps[at]
			part := float64(c[i].To-a.To) / float64(b.To-a.To)
			c[i].Tokens = a.Tokens + uint64(part*float64(b.Tokens-min(a.Tokens, b.Tokens)))
		}
	}
	return c
}
