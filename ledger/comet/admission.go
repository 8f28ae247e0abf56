package comet

import (
	"context"
	"net/http"

	"github.com/entrain-network/entrain/host"
)

func (a *api) admission(w http.ResponseWriter, r *http.Request) {
	a.app.hostMu.RLock()
	list, ok := a.app.host.Admission(r.PathValue("run"))
	a.app.hostMu.RUnlock()
	if !ok {
		a.noRun(w, r)
		return
	}
	reply(w, http.StatusOK, list)
}

// Admission returns a run's admission rules, proven by a header. The error is ledger.ErrUnknownRun
// if there is no such run.
func (c *Client) Admission(ctx context.Context, run string) (host.Admission, error) {
	return provenBy(ctx, c, provenPath(run, "/admission"), ofRun(run, func(b []byte, p host.RunProof) (host.Admission, error) {
		a, hash, err := host.OpenAdmission(b)
		if err == nil && hash != p.Admission {
			err = errOtherPart
		}
		return a, err
	}))
}
