package web

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/runlog"
	"github.com/entrain-network/entrain/view"
)

// checksMax bounds the open checks on a page: more than a person reads.
const checksMax = 200

// trustBrief is the part of a run's trust that the overview shows.
type trustBrief struct {
	runlog.TrustHead
	Open     int               `json:"open"`     // checks
	Disputes int               `json:"disputes"` // open
	Last     []view.Conviction `json:"last"`     // newest first
}

// lastMax bounds the convictions on the overview.
const lastMax = 5

func briefTrust(t *view.Trust) *trustBrief {
	if t == nil {
		return nil
	}
	b := &trustBrief{TrustHead: t.TrustHead, Open: len(t.Checks), Last: append([]view.Conviction{}, t.Convictions[:min(lastMax, len(t.Convictions))]...)}
	for _, d := range t.Disputes {
		if d.EndedMs == 0 {
			b.Disputes++
		}
	}
	return b
}

// trustPage holds the checks, disputes and convictions of a run.
type trustPage struct {
	Version string `json:"version"`
	Known   bool   `json:"known"` // results are checked, or something is at stake
	view.Trust
	Open int                           `json:"open"` // checks; Trust has checksMax of them at most
	Keys map[coordinator.Member]string `json:"keys"` // of the members that are named
	// Emission is the tokens that a period pays by scores, 0 if the run has no scores.
	Emission uint64 `json:"emission"`
}

func (d *desk) trust(*http.Request) any {
	p := trustPage{Version: d.versionText(), Keys: map[coordinator.Member]string{}}
	if w := d.run.Windows; w != nil && w.ScoreWindows > 0 {
		p.Emission = w.Emission
	}
	if d.run.Trust == nil {
		p.Checks, p.Disputes, p.Convictions = []view.Check{}, []view.Dispute{}, []view.Conviction{}
		return p
	}
	p.Known, p.Trust, p.Open = true, *d.run.Trust, len(d.run.Trust.Checks)
	p.Checks = append([]view.Check{}, p.Checks[:min(checksMax, len(p.Checks))]...)
	p.Disputes, p.Convictions = append([]view.Dispute{}, p.Disputes...), append([]view.Conviction{}, p.Convictions...)
	name := func(i int64) {
		if i >= 0 && i < int64(len(d.run.Members)) {
			p.Keys[coordinator.Member(i)] = d.run.Members[i].Key
		}
	}
	for _, c := range p.Checks {
		name(int64(c.Member))
		name(int64(c.Verifier))
	}
	for _, x := range p.Disputes {
		name(int64(x.Member))
		name(x.Accuser)
		for _, v := range x.Votes {
			name(int64(v.Member))
		}
	}
	return p
}

// convictionsOf returns the convictions of a member, newest first.
func (d *desk) convictionsOf(key string) []view.Conviction {
	list := []view.Conviction{}
	if d.run.Trust != nil {
		for _, c := range d.run.Trust.Convictions {
			if c.Key == key {
				list = append(list, c)
			}
		}
	}
	return list
}

// auditCommand returns the command that computes a round again.
func auditCommand(run string, endpoints []string, round coordinator.Round) string {
	return fmt.Sprintf("entrain audit %s --round %d", commandTarget(run, endpoints), round)
}

// commandTarget names a run and where its chain is as commands take it: RUN@HOST, or with --chain
// for several addresses.
func commandTarget(run string, endpoints []string) string {
	if len(endpoints) == 1 {
		host := endpoints[0]
		if u, err := url.Parse(host); err == nil && u.Scheme == "http" && u.Port() != "" && u.Path == "" {
			host = u.Host
		}
		return run + "@" + host
	}
	for _, e := range endpoints {
		run += " --chain " + e
	}
	return run
}
