package comet

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	cmtstore "github.com/cometbft/cometbft/store"

	sm "github.com/cometbft/cometbft/state"
)

// docs/operators.md says which files of a replica may be lost, and that it fetches the rest again.
func TestAReplicaRecoversAsTheManualSays(t *testing.T) {
	t.Parallel()
	w := newNetwork(t, 1)
	op := signer("op")
	for range 3 {
		if err := w.pay(w.client(), op); err != nil {
			t.Fatal(err)
		}
	}
	i := w.add()
	w.agree()
	w.stop(i)
	dir := w.dirs[i]
	votes, err := os.ReadFile(filepath.Join(dir, votesFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{dataDir, stateDir, lightsDir, historyDir} {
		if err := os.RemoveAll(filepath.Join(dir, d)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, dataDir), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, votesFile), votes, 0o600); err != nil {
		t.Fatal(err)
	}
	w.start(i)
	if err := w.pay(w.client(), op); err != nil {
		t.Fatal(err)
	}
	if s := w.agree(); s.Height == 0 {
		t.Errorf("%+v", s)
	}
}

// A replica without sync cannot get blocks that the others have deleted, and says that it is not
// current.
func TestAReplicaThatCannotCatchUpIsNotCurrent(t *testing.T) {
	t.Parallel()
	w := newNetwork(t, 1)
	op := signer("op")
	for range behindMost {
		if err := w.pay(w.client(), op); err != nil {
			t.Fatal(err)
		}
	}
	kept := w.running[0].app.lights.Load()
	state, err := kept.States.Load()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := kept.Blocks.PruneBlocks(kept.Blocks.Height(), state); err != nil {
		t.Fatal(err)
	}
	i := w.prepare()
	file := filepath.Join(w.dirs[i], settingsFile)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var settings map[string]any
	if err := json.Unmarshal(b, &settings); err != nil || settings["sync"] == nil {
		t.Fatalf("%v in %s", err, b)
	}
	delete(settings, "sync")
	if b, err = json.Marshal(settings); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	w.start(i)
	c := newClient(t, w.running[i].Endpoint())
	end := time.After(4 * time.Second) // CometBFT stops asking for blocks after one
	for tick := time.Tick(100 * time.Millisecond); ; {
		select {
		case <-end:
			return
		case <-tick:
		}
		s, err := c.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if s.Current {
			t.Fatalf("%+v", s)
		}
	}
}

// Strangers that connect many times decide nothing where the operator named peers.
func TestStrangersDoNotSayWhetherAReplicaLags(t *testing.T) {
	const own, far = 100, 100 + behindMost + 1
	stranger := func(height int64) []peer { return slices.Repeat([]peer{{height: height}}, 40) }
	for _, c := range []struct {
		peers []peer
		want  bool
	}{
		{nil, false},
		{stranger(far), true}, // a replica without named peers has nobody else to ask
		{append(stranger(far), peer{own, true}), false},
		{append(stranger(own), peer{far, true}), true},
		{[]peer{{own, true}, {far, true}}, false},
	} {
		if got := lags(own, c.peers); got != c.want {
			t.Errorf("%+v: %v", c.peers, got)
		}
	}
}

// A replica is killed when it has fetched the state and CometBFT has started, but has stored no
// block. It starts again.
func TestAReplicaKilledBeforeItsFirstBlockStartsAgain(t *testing.T) {
	t.Parallel()
	w := newNetwork(t, 1)
	op := signer("op")
	for range 3 {
		if err := w.pay(w.client(), op); err != nil {
			t.Fatal(err)
		}
	}
	i := w.prepare()
	r, err := Open(w.dirs[i], nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	// what CometBFT does when it starts
	started := func(_ *cmtstore.BlockStore, states sm.Store) error { return states.SetOfflineStateSyncHeight(0) }
	if err := r.home.withStores(started); err != nil {
		t.Fatal(err)
	}
	r.listener.Close()
	if err := r.app.close(); err != nil {
		t.Fatal(err)
	}
	w.start(i)
	if err := w.pay(w.client(), op); err != nil {
		t.Fatal(err)
	}
	w.agree()
}

// A replica that has just started does not deny the runs whose state the next block proves: their
// owner would create them again.
func TestARestartedReplicaDoesNotDenyItsRuns(t *testing.T) {
	t.Parallel()
	dir, owner := replicaDir(t, Options{}), signer("owner")
	r, stop := start(t, dir)
	if err := submit(t, newClient(t, r.Endpoint()), owner, createRun("demo", owner.Key.Public(), 16)); err != nil {
		t.Fatal(err)
	}
	stop()
	r, err := Open(dir, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.listener.Close()
	routes := (&api{app: r.app, ending: t.Context()}).routes()
	asked := func(ctx context.Context, path string) (status int, body string) {
		w := httptest.NewRecorder()
		routes.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", path, nil))
		return w.Code, w.Body.String()
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	for _, path := range []string{"/v1/runs", "/v1/runs/demo", "/v1/runs/demo/state", "/v1/runs/none"} {
		if status, body := asked(gone, path); status != http.StatusServiceUnavailable {
			t.Errorf("%s before a header: %d %s", path, status, body)
		}
	}
	waited := make(chan int)
	go func() {
		status, _ := asked(t.Context(), "/v1/runs/demo")
		waited <- status
	}()
	r.app.hub.confirm(r.app.hash, r.app.host.Height()+1)
	if status := <-waited; status != http.StatusOK {
		t.Errorf("asked before a header, answered after it: %d", status)
	}
	for path, want := range map[string]int{"/v1/runs": http.StatusOK, "/v1/runs/demo": http.StatusOK, "/v1/runs/none": http.StatusNotFound} {
		if status, body := asked(t.Context(), path); status != want || path == "/v1/runs" && !strings.Contains(body, `"demo"`) {
			t.Errorf("%s after a header: %d %s", path, status, body)
		}
	}
}
