package comet

import (
	"context"
	"net/http"

	"github.com/entrain-network/entrain/ledger"
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

// Admission returns who may take part in a run, as a header proves. The error is ledger.ErrUnknownRun when there is no such
// run.
func (c *Client) Admission(ctx context.Context, run string) (ledger.Admission, error) {
	return provenBy(ctx, c, provenPath(run, "/admission"), ofRun(run, func(b []byte, p ledger.RunProof) (ledger.Admission, error) {
		a, hash, err := ledger.OpenAdmission(b)
		if err == nil && hash != p.Admission {
			err = errOtherPart
		}
		return a, err
	}))
}
