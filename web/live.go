package web

import (
	"time"

	"github.com/entrain-network/entrain/view"
)

// How much of a run a page is told at once; it asks for more where a person looks.
const (
	topMax   = 10   // members of the leaderboard
	linesMax = 40   // of the log
	dotsMax  = 1024 // members of a round that are shown one by one
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
	Rounds    []roundBrief          `json:"rounds"`
	Current   *roundNow             `json:"current"`
	Log       []view.Line           `json:"log"`
	Curves    map[string]curvePatch `json:"curves"`
	Node      nodeBrief             `json:"node"`
	Trust     *trustBrief           `json:"trust,omitempty"`
	Windows   *view.Windows         `json:"windows,omitempty"` // without the scores themselves
	Samples   []view.Sample         `json:"samples"`           // of the newest step that has any
	Reading   int                   `json:"reading"`           // percent of the participant's log that was read so far, plus 1; 0: all
	BegunMs   uint64                `json:"begun_ms"`          // nothing is known of what was before, but for what the chain keeps; 0: the log told of it

	Members  *struct{} `json:"members,omitempty"` // these hide fields of view.Run
	Loss     *struct{} `json:"loss,omitempty"`
	HeldOut  *struct{} `json:"heldout,omitempty"`
	Speed    *struct{} `json:"speed,omitempty"`
	GradNorm *struct{} `json:"gradnorm,omitempty"`
	LR       *struct{} `json:"lr,omitempty"`
	Payloads *struct{} `json:"payloads,omitempty"`
	Tasks    *struct{} `json:"tasks,omitempty"`
	Network  *struct{} `json:"network,omitempty"`
}

// nodeBrief is what the participant adds whose state directory the server was given.
type nodeBrief struct {
	Here   bool `json:"here"`   // there is one
	Prompt bool `json:"prompt"` // it can be asked to write
}

// roundBrief is a round in the strip of the last ones.
type roundBrief struct {
	Number   uint32 `json:"number"`
	Step     uint32 `json:"step"`
	OpenedMs uint64 `json:"opened_ms"`
	ClosedMs uint64 `json:"closed_ms"`
	Expected uint32 `json:"expected"`
	Accepted uint32 `json:"accepted"`
	Final    bool   `json:"final"`
}

// roundNow is the round that runs, or ran last, as it happens.
type roundNow struct {
	roundBrief
	WitnessMs uint64       `json:"witness_ms"` // when RoundWitness began; 0: not yet
	Attests   uint32       `json:"attests"`
	Batch     uint32       `json:"batch"`
	Active    uint32       `json:"active"`
	Committed uint32       `json:"committed"` // commitments seen by the participant
	OnChain   uint32       `json:"on_chain"`  // commitments on the chain, in a run that exchanges by buckets
	Quorum    uint32       `json:"quorum"`
	Held      uint32       `json:"held"`      // results of the attested round that a quorum holds
	OfHeld    uint32       `json:"of"`        // results expected in it
	ChecksOf  uint32       `json:"checks_of"` // the round whose results were drawn last to be computed again; 0: none
	Checked   uint32       `json:"checked"`   // results of it that were drawn
	Verified  uint32       `json:"verified"`  // of them, those found right
	Marks     string       `json:"marks"`     // by member, see view.Mark; "" if there are too many
	Reports   []reportMark `json:"reports"`
	Loss      float64      `json:"loss"`
	Bytes     uint64       `json:"bytes"`
}

// reportMark is a witness and when it reported.
type reportMark struct {
	Member   uint32 `json:"member"`
	Key      string `json:"key"`
	Reported bool   `json:"reported"`
	Ms       uint64 `json:"ms"`
	Complete bool   `json:"complete"`
}

// live returns what a page that knows a version lacks. It returns false if that is nothing, or
// there is no state yet.
func (d *desk) live(boot string, since uint64, now time.Time) (live, uint64, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refresh(now)
	if d.version == 0 || since == d.version {
		return live{}, d.version, false
	}
	l := live{
		Version: versionText(boot, d.version), Run: d.run, ClockMs: uint64(now.UnixMilli()),
		Statuses: map[string]int{}, Curves: map[string]curvePatch{},
		Trust: briefTrust(d.run.Trust), Windows: briefWindows(d.run.Windows), Samples: newest(d.run.Samples), BegunMs: d.begunMs,
		Log: d.run.Log[max(0, len(d.run.Log)-linesMax):], Top: d.rows(d.ranks[:min(topMax, len(d.ranks))]),
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
	l.Rounds = []roundBrief{}
	for _, r := range d.run.Rounds {
		l.Rounds = append(l.Rounds, brief(r))
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

// newest are the samples of the newest step.
func newest(samples []view.Sample) []view.Sample {
	i := len(samples)
	for i > 0 && samples[i-1].Step == samples[len(samples)-1].Step {
		i--
	}
	return append([]view.Sample{}, samples[i:]...)
}

func brief(r view.Round) roundBrief {
	return roundBrief{Number: r.Number, Step: r.Step, OpenedMs: r.OpenedMs, ClosedMs: r.ClosedMs, Expected: r.Expected, Accepted: r.Accepted, Final: r.Final}
}

// now describes the newest round.
func (d *desk) now(r view.Round) *roundNow {
	n := &roundNow{
		roundBrief: brief(r), Attests: r.Attests, Batch: r.Batch, Active: r.Active, Committed: r.Committed, OnChain: r.OnChain, Quorum: r.Quorum,
		Marks: r.Marks, Loss: r.Loss, Bytes: r.Bytes, Reports: []reportMark{},
	}
	for i := len(d.run.Rounds) - 1; i >= 0 && n.ChecksOf == 0; i-- {
		if c := d.run.Rounds[i]; c.Checked > 0 {
			n.ChecksOf, n.Checked, n.Verified = c.Number, c.Checked, c.Verified
		}
	}
	if len(n.Marks) > dotsMax {
		n.Marks = ""
	}
	if i, ok := d.past.find(r.Number); ok {
		n.WitnessMs = d.past.rounds[i].witnessMs
	}
	if detail := d.past.detail(r.Number); detail != nil {
		for _, w := range detail.witnesses {
			n.Reports = append(n.Reports, reportMark{w.member, d.past.keyOf(detail, w.member), w.reported, w.reportedMs, w.complete})
		}
	}
	if a := d.past.detail(r.Attests); a != nil {
		n.OfHeld = count(a.expected)
		for i, holders := range a.holders {
			if a.expected.Has(uint32(i)) && uint32(holders) >= r.Quorum {
				n.Held++
			}
		}
	}
	return n
}
