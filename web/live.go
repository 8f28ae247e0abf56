package web

import (
	"slices"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/view"
)

// How much of a run a page is told at once; it asks for more where a person looks.
const (
	topMax   = 10   // members of the leaderboard
	linesMax = 40   // of the log
	dotsMax  = 1024 // members of a round that are shown one by one
	stripMax = 48   // rounds
)

// live is a run as its overview shows it. Of the fields of view.Run, those that grow with the run
// are left out or cut.
type live struct {
	Version string `json:"version"`
	view.Run
	ClockMs   uint64                `json:"clock_ms"`  // this machine's, to which countdowns refer
	Reachable bool                  `json:"reachable"` // whether the chain answers
	Statuses  map[string]int        `json:"statuses"`  // members by status
	Top       []memberRow           `json:"top"`
	Current   *roundNow             `json:"current"`
	Log       []view.Line           `json:"log"`
	Curves    map[string]curvePatch `json:"curves"`
	Node      nodeBrief             `json:"node"`
	Trust     *trustBrief           `json:"trust,omitempty"`
	Windows   *view.Windows         `json:"windows,omitempty"` // without the scores themselves
	Samples   []view.Sample         `json:"samples"`           // of the newest step that has any
	Reading   int                   `json:"reading"`           // 1 + percent of the log; 0: all
	BegunMs   uint64                `json:"begun_ms"`          // start of what is known; 0: all is
	About     *spec.About           `json:"about,omitempty"`
}

// nodeBrief describes the participant whose state directory the server has.
type nodeBrief struct {
	Here   bool `json:"here"`   // there is one
	Prompt bool `json:"prompt"` // it can be asked to write
}

// roundNow is the round that runs, or ran last, as it happens.
type roundNow struct {
	view.Round
	Held     uint32            `json:"held"`      // results of the attested round that a quorum holds
	OfHeld   uint32            `json:"of"`        // results expected in it
	ChecksOf coordinator.Round `json:"checks_of"` // round of the last drawn checks; 0: none
	Checked  uint32            `json:"checked"`   // results of it that were drawn
	Verified uint32            `json:"verified"`  // of them, those found right
}

// live returns what a page that knows a version lacks. It returns false if that is nothing, or
// there is no state yet.
func (d *desk) live(since uint64, now time.Time) (live, uint64, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refresh(now)
	if d.version == 0 || since == d.version {
		return live{}, d.version, false
	}
	l := live{
		Version: d.versionText(), Run: d.run, ClockMs: uint64(now.UnixMilli()),
		Statuses: map[string]int{}, Curves: map[string]curvePatch{},
		Trust: briefTrust(d.run.Trust), Windows: briefWindows(d.run.Windows), Samples: newest(d.run.Samples), BegunMs: d.begunMs,
		Log: d.run.Log[max(0, len(d.run.Log)-linesMax):], Top: d.rows(d.ranks[:min(topMax, len(d.ranks))]),
	}
	if d.spec != nil {
		l.About = d.spec.About
	}
	if d.coming != nil {
		l.Reading = d.read + 1
	}
	for _, m := range d.run.Members {
		l.Statuses[m.Status]++
	}
	for name, c := range d.curves {
		if patch, ok := c.since(since); ok {
			l.Curves[name] = patch
		}
	}
	// What grows with the run is left out or cut; curves are sent as patches.
	r := &l.Run
	r.Members, r.Network, r.Tasks = nil, view.Network{}, nil
	r.Loss, r.HeldOut, r.Speed, r.GradNorm, r.LR, r.Payloads, r.Seconds, r.Size = nil, nil, nil, nil, nil, nil, nil, nil
	r.Rounds = slices.Clone(r.Rounds[max(0, len(r.Rounds)-stripMax):])
	for i := range r.Rounds {
		r.Rounds[i].Marks, r.Rounds[i].Witnesses = "", nil
	}
	if n := len(d.run.Rounds); n > 0 {
		l.Current = d.now(d.run.Rounds[n-1])
	}
	return l, d.version, true
}

func briefWindows(w *view.Windows) *view.Windows {
	if w == nil {
		return nil
	}
	out := *w
	out.Period, out.Validators = nil, []view.Validator{}
	return &out
}

// newest returns the samples of the newest step.
func newest(samples []view.Sample) []view.Sample {
	i := len(samples)
	for i > 0 && samples[i-1].Step == samples[len(samples)-1].Step {
		i--
	}
	return append([]view.Sample{}, samples[i:]...)
}

// now describes the newest round.
func (d *desk) now(r view.Round) *roundNow {
	n := &roundNow{Round: r}
	for _, c := range slices.Backward(d.run.Rounds) {
		if c.Checked > 0 {
			n.ChecksOf, n.Checked, n.Verified = c.Number, c.Checked, c.Verified
			break
		}
	}
	if len(n.Marks) > dotsMax {
		n.Marks = ""
	}
	n.Held, n.OfHeld = d.fold.Held(r.Attests, r.Quorum)
	return n
}
