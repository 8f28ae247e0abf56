package comet

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/ledger/comet/headers"
	"github.com/entrain-network/entrain/ledger/comet/statefile"
	"github.com/entrain-network/entrain/merkle"
)

// record notes what the last block has changed.
func (a *app) record() error {
	for i, p := range a.host.ProveRuns() {
		if p.Changed != a.host.Height() || p.Changes == 0 {
			continue
		}
		c := host.Change{Height: p.Changed, TimeMs: a.host.TimeMs(), Hash: p.State}
		if err := a.history.Write(a.host.Runs()[i], p.Changes-1, c); err != nil {
			return fmt.Errorf("keep the history of a run: %w", err)
		}
	}
	return nil
}

// changes answers with a part of a run's history.
func (a *api) changes(w http.ResponseWriter, r *http.Request) {
	from, ok := number(w, r, "from")
	if !ok {
		return
	}
	v, ok := a.view(w, r)
	if !ok {
		return
	}
	b, err := a.app.history.Read(v.Name, min(from, 1<<40))
	if err != nil {
		fail(w, http.StatusGone, "the history of run %q is not kept here: try another replica", v.Name)
		return
	}
	w.Header().Set("Content-Type", octets)
	w.Write(b)
}

// History returns all states that a run was in so far, proven by a header, from the first endpoint
// that has them.
func (c *Client) History(ctx context.Context, run string) ([]host.Change, error) {
	var errs []error
	for _, e := range c.endpoints {
		list, err := c.historyFrom(ctx, e, run)
		if err == nil {
			return list, nil
		}
		errs = append(errs, fmt.Errorf("%s: history of run %q: %w", e, run, err))
	}
	return nil, c.explain(errors.Join(errs...))
}

func (c *Client) historyFrom(ctx context.Context, endpoint, run string) ([]host.Change, error) {
	proof, err := c.proofOf(ctx, endpoint, run)
	if err != nil {
		return nil, err
	}
	var list []host.Change
	var tree merkle.Tree
	for uint64(len(list)) < proof.Changes {
		b, err := c.get(ctx, endpoint, fmt.Sprintf("/v1/runs/%s/history?from=%d", url.PathEscape(run), len(list)))
		if err != nil {
			return nil, err
		}
		page := statefile.ReadChanges(b, proof.Changes-uint64(len(list)))
		if len(page) == 0 {
			return nil, errors.New("it ends too early")
		}
		if tree, err = host.CheckHistory(tree, page, proof); err != nil {
			return nil, fmt.Errorf("%w: %w", headers.ErrLied, err)
		}
		list = append(list, page...)
	}
	return list, nil
}

// fetchHistories gets the lists of all runs for a replica that has fetched the state. It skips
// lists that it cannot get.
func (r *Replica) fetchHistories(ctx context.Context, c *Client, host *host.Host) error {
	for _, run := range host.Runs() {
		list, err := c.History(ctx, run)
		if err != nil {
			r.log.Warn("the history of a run is not served by this replica", "run", run, "err", err)
			continue
		}
		if err := r.app.history.Write(run, 0, list...); err != nil {
			return err
		}
	}
	return nil
}
