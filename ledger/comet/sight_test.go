package comet

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/wire"
)

// outer is another chain's node, as far as replicas ask it. Its chain's blocks follow from a name.
type outer struct {
	*httptest.Server
	name string
	head *atomic.Uint64 // the newest final block
	gone atomic.Bool
}

func newOuter(t *testing.T, name string, head *atomic.Uint64) *outer {
	o := &outer{name: name, head: head}
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			Method string
			Params []any
		}
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil || o.gone.Load() {
			http.Error(w, "gone", http.StatusBadGateway)
			return
		}
		var v any
		switch q.Method {
		case "chain_getFinalizedHead":
			v = "0x" + o.block(head.Load()).String()
		case "chain_getHeader":
			v = map[string]string{"number": fmt.Sprintf("0x%x", head.Load())}
		case "chain_getBlockHash":
			v = "0x" + o.block(uint64(q.Params[0].(float64))).String()
		default:
			t.Errorf("the replica asks %s", q.Method)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": 1, "result": v})
	}))
	t.Cleanup(o.Close)
	return o
}

func (o *outer) block(n uint64) wire.Hash {
	if n == 0 {
		return wire.Sum("entrain/test/outer", []byte(o.name[:1])) // a liar's chain has the same genesis
	}
	return wire.Sum("entrain/test/outer", []byte(o.name), wire.AppendU64(nil, n))
}

// follow names a node in the replica's settings.
func (w *network) follow(i int, url string) {
	w.t.Helper()
	w.stop(i)
	path := filepath.Join(w.dirs[i], settingsFile)
	b, err := os.ReadFile(path)
	if err != nil {
		w.t.Fatal(err)
	}
	var s settings
	if err := json.Unmarshal(b, &s); err != nil {
		w.t.Fatal(err)
	}
	s.Bittensor = url
	if b, err = json.Marshal(s); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, b, settingsMode); err != nil {
		w.t.Fatal(err)
	}
	w.start(i)
}

// until waits for a status of the chain.
func (w *network) until(what string, ok func(host.Clock) bool) host.Clock {
	w.t.Helper()
	c := w.client()
	defer c.Close()
	for end := time.Now().Add(2 * patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		s, err := c.Status(w.t.Context())
		if err == nil && s.Clock != nil && ok(*s.Clock) {
			return *s.Clock
		}
	}
	w.t.Fatalf("waited in vain until %s", what)
	panic("unreachable")
}

// Four replicas follow a chain, each by a node of its own: one node lies about all hashes. A run's windows end with the
// blocks that the other three agree on; with two, no block is agreed on, and the chain itself goes on.
func TestARunCountsTheBlocksOfAnotherChain(t *testing.T) {
	t.Parallel()
	var head, ahead atomic.Uint64
	head.Store(100)
	ahead.Store(1 << 20)
	w := newNetwork(t, 4)
	owner := signer("op")
	create := createRun("demo", owner.Key.Public(), 4)
	create.Limits.Buckets, create.Config.RoundWitnessMs = true, 600_000
	create.Config.Exchange, create.Config.WindowBlocks, create.Config.Overlap, create.Config.Clock = coordinator.Buckets, 5, 1, 1
	if got := codeOf(t, submit(t, w.client(), owner, create)); got != host.CodeClock {
		t.Fatalf("a run without blocks to count: %v", got)
	}
	var nodes []*outer
	for i, name := range []string{"x", "x", "x", "x, but a liar's"} {
		nodes = append(nodes, newOuter(t, name, &head))
		w.follow(i, nodes[i].URL)
	}
	c := w.until("three of four agree", func(c host.Clock) bool { return c.Number == 100 })
	if c.Hash != nodes[0].block(100) || c.Genesis != nodes[0].block(0) || c.Wanted || c.Standing {
		t.Fatalf("agreed on %+v", c)
	}

	if err := submit(t, w.client(), owner, create); err != nil {
		t.Fatal(err)
	}
	if err := submit(t, w.client(), signer("ann"), join("demo")); err != nil {
		t.Fatal(err)
	}
	ready := coordinator.Ready{Epoch: 1, Params: create.Config.ModelHash}
	if err := submit(t, w.client(), signer("ann"), host.ToRun("demo", ready)); err != nil {
		t.Fatal(err)
	}
	phase := func() string {
		t.Helper()
		w.agree() // any of them may be asked
		runs, err := w.client().Runs(t.Context())
		if err != nil || len(runs) != 1 {
			t.Fatalf("%d runs, %v", len(runs), err)
		}
		return runs[0].Phase
	}
	head.Store(104)
	w.until("it is block 104", func(c host.Clock) bool { return c.Number == 104 && c.Wanted })
	if err := w.pay(w.client(), owner); err != nil { // a block, which ticks the run
		t.Fatal(err)
	}
	if got := phase(); got != coordinator.RoundTrain.String() {
		t.Fatalf("before the window's last block the run is in %s", got)
	}

	// One of three honest nodes is lost, another one is replaced by a node of another chain that is far ahead.
	nodes[1].gone.Store(true)
	head.Store(105)
	for range 3 {
		if err := w.pay(w.client(), owner); err != nil {
			t.Fatal(err)
		}
	}
	w.follow(2, newOuter(t, "y", &ahead).URL)
	if s := w.agree(); s.Clock.Number != 104 || s.Clock.Hash != nodes[0].block(104) {
		t.Fatalf("one and a liar agree on %+v", s.Clock)
	}
	nodes[1].gone.Store(false)
	w.follow(2, nodes[2].URL)
	w.until("the nodes are back", func(c host.Clock) bool { return c.Number == 105 })
	if err := w.pay(w.client(), owner); err != nil {
		t.Fatal(err)
	}
	if got := phase(); got != coordinator.RoundWitness.String() {
		t.Fatalf("after the window's last block the run is in %s", got)
	}
	w.agree()
}
