package comet

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/ledger/comet/headers"
)

// TestTheLogOfARunOutlivesItsBlocks has a chain that keeps twenty blocks, and a replica that came
// later.
func TestTheLogOfARunOutlivesItsBlocks(t *testing.T) {
	t.Parallel()
	dir := replicaDir(t, Options{SnapshotBlocks: 5, KeepBlocks: 20, Peering: freePort(t)})
	r, stop := start(t, dir)
	c := newClient(t, r.Endpoint())
	owner := signer("owner")
	if err := submit(t, c, owner, createRun("demo", owner.Key.Public(), 64)); err != nil {
		t.Fatal(err)
	}
	for i := range 24 {
		if err := submit(t, c, signer(strings.Repeat("x", i+1)), join("demo")); err != nil {
			t.Fatal(err)
		}
	}
	check := func(c *Client) []host.Change {
		t.Helper()
		list, err := c.History(t.Context(), "demo")
		if err != nil || len(list) < 20 {
			t.Fatalf("%d changes (%v)", len(list), err)
		}
		if first := list[0]; first.Height > 3 {
			t.Errorf("the history begins at height %d", first.Height)
		}
		return list
	}
	before := check(c)
	stop()
	r, _ = start(t, dir)
	c = newClient(t, r.Endpoint())
	if got := check(c); len(got) != len(before) {
		t.Errorf("%d changes after a restart, %d before", len(got), len(before))
	}

	w := &network{t: t, dirs: []string{dir}, running: []*Replica{r}, stops: []func(){nil}}
	late := w.running[w.add()]
	if got := check(newClient(t, late.Endpoint())); len(got) != len(before) {
		t.Errorf("a replica that came later has %d changes of %d", len(got), len(before))
	}

	// A forged list is not believed.
	at, err := url.Parse(r.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	pass := httputil.NewSingleHostReverseProxy(at)
	pass.ModifyResponse = func(res *http.Response) error {
		if strings.HasSuffix(res.Request.URL.Path, "/history") {
			res.Body = flip{res.Body}
		}
		return nil
	}
	liar := httptest.NewServer(pass)
	defer liar.Close()
	if _, err := newClient(t, liar.URL).History(t.Context(), "demo"); !errors.Is(err, headers.ErrLied) {
		t.Errorf("a forged history: %v", err)
	}
}

// flip is a body with a bit of every piece changed.
type flip struct{ io.ReadCloser }

func (f flip) Read(p []byte) (int, error) {
	n, err := f.ReadCloser.Read(p)
	if n > 0 {
		p[0] ^= 1
	}
	return n, err
}
