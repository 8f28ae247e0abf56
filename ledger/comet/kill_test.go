package comet

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/wire"
)

// childEnv makes the test binary a replica of the directory it names.
const childEnv = "ENTRAIN_TEST_REPLICA"

// runChild is the replica that TestMain becomes. It prints its endpoint and runs until it is
// killed.
func runChild(dir string) {
	r, err := Open(dir, nil, nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(r.Endpoint())
	if err := r.Run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// child is a replica in a process of its own.
type child struct {
	cmd      *exec.Cmd
	endpoint *url.URL
}

func startChild(t *testing.T, dir string) *child {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &child{cmd: exec.Command(self)}
	c.cmd.Env = append(os.Environ(), childEnv+"="+dir)
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("replica says nothing: %v", err)
	}
	if c.endpoint, err = url.Parse(strings.TrimSpace(line)); err != nil {
		t.Fatal(err)
	}
	return c
}

// kill ends the process as kill -9 does, and waits until it is gone.
func (c *child) kill() {
	c.cmd.Process.Kill()
	c.cmd.Wait()
}

// TestKilledReplicaLosesNoAcknowledgedTransaction kills a replica while several clients have
// transactions under way, whenever another few were acknowledged, and counts in the end: members,
// and the tokens that each has put up and has left.
func TestKilledReplicaLosesNoAcknowledgedTransaction(t *testing.T) {
	t.Parallel()
	const kills, senders, joins = 5, 4, 100
	const has, stake = 10, 3
	o := Options{SnapshotBlocks: 7, KeepBlocks: 100, Creators: []key.Public{signer("owner").Key.Public()}}
	for i := range joins {
		o.Accounts = append(o.Accounts, host.Allocation{Key: signer(fmt.Sprint("member ", i)).Key.Public(), Amount: has})
	}
	dir := replicaDir(t, o)
	var now atomic.Pointer[url.URL] // where the replica is this time
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(now.Load()) },
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	})
	defer proxy.Close()
	replica := startChild(t, dir)
	now.Store(replica.endpoint)
	c := newClient(t, proxy.URL)
	owner := signer("owner")
	if err := submit(t, c, owner, createRun("demo", owner.Key.Public(), 256)); err != nil {
		t.Fatal(err)
	}
	seen := make(chan uint64, 10_000)
	c.Watch(t.Context(), "demo", func(s ledger.Snapshot) { seen <- s.Height })

	chance := prng.New(wire.Sum("entrain/test/kill"), "after how many")
	acked := make(chan error, joins)
	next, killed, due := 0, 0, int(chance.Uint64n(joins/kills))
	send := func() {
		body := join("demo")
		body.Value = stake
		tx, err := signer(fmt.Sprint("member ", next)).Sign(time.Now(), body)
		if err != nil {
			t.Fatal(err)
		}
		next++
		c.Send(t.Context(), tx, func(err error) { acked <- err })
	}
	for range senders {
		send()
	}
	for got := 0; got < joins; got++ {
		if err := wait(t, acked); err != nil {
			t.Errorf("join %d: %v", got, err)
		}
		if next < joins {
			send()
		}
		if got == due && killed < kills {
			// Anywhere within two blocks, so that it hits all that a replica does in one.
			<-time.After(time.Duration(chance.Uint64n(uint64(20 * time.Millisecond))))
			replica.kill()
			replica = startChild(t, dir)
			now.Store(replica.endpoint)
			killed++
			due += 1 + int(chance.Uint64n(joins/kills))
		}
	}
	replica.kill()
	r, _ := start(t, dir)
	after := newClient(t, r.Endpoint())
	final := make(chan ledger.Snapshot, 1000)
	after.Watch(t.Context(), "demo", func(s ledger.Snapshot) { final <- s })
	state := wait(t, final).State
	if got := state.Count(); got != joins || state.Escrow() != joins*stake {
		t.Errorf("after %d kills the run has %d members with %d tokens, want all %d that were acknowledged, with %d each", killed+1, got, state.Escrow(), joins, stake)
	}
	for _, account := range o.Accounts {
		if a, err := after.Account(t.Context(), account.Key); err != nil || a.Tokens != has-stake {
			t.Errorf("a member has %d tokens left, %v, want %d", a.Tokens, err, has-stake)
		}
	}
	var heights []uint64
	for len(seen) > 0 {
		heights = append(heights, <-seen)
	}
	for i := 1; i < len(heights); i++ {
		if heights[i] <= heights[i-1] {
			t.Errorf("the watcher saw height %d after %d", heights[i], heights[i-1])
		}
	}
	if len(heights) < kills {
		t.Errorf("the watcher saw %d states over %d kills", len(heights), killed+1)
	}
}
