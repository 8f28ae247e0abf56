package web

import (
	"time"

	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/view"
	"github.com/entrain-network/entrain/wire"
)

// roundPage is a part of the table of rounds, newest first.
type roundPage struct {
	Version string       `json:"version"`
	Total   int          `json:"total"`
	From    int          `json:"from"`
	Rows    []view.Round `json:"rows"`
}

func (d *desk) roundPage(boot string, from, n int, now time.Time) roundPage {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refresh(now)
	all := d.fold.Rounds()
	p := roundPage{Version: versionText(boot, d.version), Total: all, From: min(max(from, 0), all), Rows: []view.Round{}}
	for i := p.From; i < min(p.From+min(max(n, 0), pageMax), all); i++ {
		r := d.fold.Round(i)
		r.Marks, r.Witnesses = "", nil
		p.Rows = append(p.Rows, r)
	}
	return p
}

// roundDetails is all that is known of a round.
type roundDetails struct {
	Version  string      `json:"version"`
	Round    view.Round  `json:"round"`
	Detailed bool        `json:"detailed"` // Results are known
	Results  []view.Work `json:"results"`  // of members with a share, a part
	From     int         `json:"from"`
	Total    int         `json:"total"`
	Next     bool        `json:"next"` // the next round is known
	Previous bool        `json:"previous"`
	Audit    string      `json:"audit"` // the command that computes the round again
}

// round returns what is known of a round, with some of its results.
func (d *desk) round(boot string, number uint32, from, n int, now time.Time) (roundDetails, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refresh(now)
	age, ok := d.fold.Age(number)
	if !ok {
		return roundDetails{}, false
	}
	r := roundDetails{
		Version: versionText(boot, d.version), Round: d.fold.Round(age), Detailed: d.fold.Detailed(number),
		Previous: age+1 < d.fold.Rounds(), Next: age > 0,
	}
	r.Round.Marks, r.Total = "", int(r.Round.Expected)
	r.From = min(max(from, 0), r.Total)
	r.Results = d.fold.Works(number, r.From, min(max(n, 0), pageMax))
	return r, true
}

// joining is what a newcomer needs in order to take part.
type joining struct {
	Run       string   `json:"run"`
	Chain     string   `json:"chain"`
	Endpoints []string `json:"endpoints"`
	Target    string   `json:"target"` // the run and where its chain is, as commands take it
	Ticket    string   `json:"ticket"` // "" if there is none
	Preset    string   `json:"preset"`
	Params    int      `json:"params"`   // numbers in the model
	Sequence  int      `json:"sequence"` // tokens
	Manifest  string   `json:"manifest"` // of the data
	Location  string   `json:"location"` // of the data, on the owner's machine
	Capacity  uint32   `json:"capacity"`
	Present   uint32   `json:"present"`
	Phase     string   `json:"phase"`
	Spec      string   `json:"spec"` // the specification's text
	SpecHash  string   `json:"spec_hash"`
	ModelHash string   `json:"model_hash"`
	Owner     string   `json:"owner"`
	RoundMs   uint64   `json:"round_ms"` // longest RoundTrain
	Batch     uint32   `json:"batch"`    // sequences in a step, at the end
}

// joining describes the run. It returns false before it knows the run's specification.
func (d *desk) joining(chain string, endpoints []string, now time.Time) (joining, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refresh(now)
	if d.spec == nil || d.state == nil {
		return joining{}, false
	}
	c := d.state.Config()
	j := joining{
		Run: c.Name, Chain: chain, Endpoints: endpoints, Target: commandTarget(c.Name, endpoints), Preset: d.spec.Model.Name(), Sequence: d.spec.Data.Sequence,
		Manifest: d.spec.Data.Manifest, Location: d.spec.Data.Location, Capacity: d.state.Limits().Members, Present: d.state.Present(),
		Phase: d.state.Phase().String(), Spec: string(d.text), SpecHash: host.SpecHash(d.text).String(), ModelHash: c.ModelHash.String(),
		Owner: key.Public(c.Owner).String(), RoundMs: c.RoundTrainMs, Batch: c.BatchEnd,
	}
	if m, err := d.spec.Llama(); err == nil {
		j.Params = m.Layout().Len()
	}
	if manifest, err := wire.ParseHash(j.Manifest); err == nil {
		address := j.Location
		if !data.IsURL(address) {
			address = ""
		}
		if t, err := onchain.NewTicket(chain, c.Name, d.state.ID(), manifest, address, endpoints); err == nil {
			j.Ticket = t.String()
		}
	}
	return j, true
}
