package comet

import (
	"context"
	"net/http"
	"net/url"

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

// Admission returns who may take part in a run, from the first endpoint that answers. The error is ledger.ErrUnknownRun when
// there is no such run.
func (c *Client) Admission(ctx context.Context, run string) (ledger.Admission, error) {
	return first[ledger.Admission](ctx, c, "/v1/runs/"+url.PathEscape(run)+"/admission")
}
