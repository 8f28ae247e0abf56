package comet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/ledger/comet/headers"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

// history keeps the list of the states that each run was in, forever, in one file a run. Each state
// takes 48 bytes. Blocks are deleted meanwhile. The ledger's state holds the root over each list,
// so any list can be verified. A replica that fetched the state fetches the lists too; entries that
// it cannot get are zeros.
type history struct{ dir string }

const (
	historyDir  = "history"
	changesPage = 4096 // in one answer
)

func (h history) path(run string) string { return filepath.Join(h.dir, run) }

// write puts changes into a run's list, from the given number on. Entries that exist are written
// again when a killed replica replays blocks.
func (h history) write(run string, from uint64, changes ...host.Change) error {
	f, err := os.OpenFile(h.path(run), os.O_WRONLY|os.O_CREATE, settingsMode)
	if err != nil {
		return err
	}
	var b []byte
	for _, c := range changes {
		b = c.Append(b)
	}
	_, err = f.WriteAt(b, int64(from)*host.ChangeBytes)
	return errors.Join(err, f.Close())
}

// sync makes all lists durable. Changes since the last sync can be replayed from blocks.
func (h history) sync(runs []string) error {
	for _, run := range runs {
		f, err := os.OpenFile(h.path(run), os.O_WRONLY, 0)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// read returns changes of a run from the given number on, at most changesPage.
func (h history) read(run string, from uint64) ([]byte, error) {
	f, err := os.Open(h.path(run))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, changesPage*host.ChangeBytes)
	n, err := f.ReadAt(b, int64(from)*host.ChangeBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return b[:n-n%host.ChangeBytes], nil
}

// record notes what the last block has changed.
func (a *app) record() error {
	for i, p := range a.host.ProveRuns() {
		if p.Changed != a.host.Height() || p.Changes == 0 {
			continue
		}
		c := host.Change{Height: p.Changed, TimeMs: a.host.TimeMs(), Hash: p.State}
		if err := a.history.write(a.host.Runs()[i], p.Changes-1, c); err != nil {
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
	b, err := a.app.history.read(v.Name, min(from, 1<<40))
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
		page := readChanges(b, proof.Changes-uint64(len(list)))
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

// readChanges reads a list, of at most limit changes.
func readChanges(b []byte, limit uint64) []host.Change {
	var list []host.Change
	for r := wire.NewReader(b); r.Len() >= host.ChangeBytes && uint64(len(list)) < limit; {
		list = append(list, host.ReadChange(&r))
	}
	return list
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
		if err := r.app.history.write(run, 0, list...); err != nil {
			return err
		}
	}
	return nil
}
