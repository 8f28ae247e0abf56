package web

import (
	"net/http"
	"strconv"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/participant/trainer"
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

func (d *desk) rounds(r *http.Request) any {
	all := d.fold.Rounds()
	from, to := part(r, all)
	p := roundPage{Version: d.versionText(), Total: all, From: from, Rows: []view.Round{}}
	for i := from; i < to; i++ {
		row := d.fold.Round(i)
		row.Marks, row.Witnesses = "", nil
		p.Rows = append(p.Rows, row)
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

// round is what is known of a round, with some of its results.
func (d *desk) round(r *http.Request, endpoints []string) any {
	number, err := strconv.ParseUint(r.PathValue("number"), 10, 32)
	n := coordinator.Round(number)
	age, ok := d.fold.Age(n)
	if err != nil || !ok {
		return refused{http.StatusNotFound, "nothing is known of this round: it is older than this server and the log it was given, or still to come"}
	}
	p := roundDetails{
		Version: d.versionText(), Round: d.fold.Round(age), Detailed: d.fold.Detailed(n),
		Previous: age+1 < d.fold.Rounds(), Next: age > 0, Audit: auditCommand(r.PathValue("run"), endpoints, n),
	}
	p.Round.Marks, p.Total = "", int(p.Round.Expected)
	from, to := part(r, p.Total)
	p.From, p.Results = from, d.fold.Works(n, from, to-from)
	return p
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
	Memory    uint64   `json:"memory"`   // bytes that a member takes, about; 0: not known
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

// joining describes the run.
func (d *desk) joining(chain string, endpoints []string) any {
	if d.spec == nil || d.state == nil {
		return refused{http.StatusServiceUnavailable, "the run's specification is not here yet"}
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
	if z, err := trainer.SizesOf(*d.spec); err == nil {
		j.Memory = z.Memory
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
	return j
}
