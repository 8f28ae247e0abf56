package comet

import (
	"context"
	"errors"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/ledger/comet/headers"
)

// network is a chain of several replicas, each with a directory.
type network struct {
	t       testing.TB
	dirs    []string
	running []*Replica // nil where stopped
	stops   []func()
}

// newNetwork founds a chain whose replicas have a stake of the operator "op".
func newNetwork(t testing.TB, n int) *network {
	t.Helper()
	w := &network{t: t}
	var places []Place
	for range n {
		dir := t.TempDir()
		w.dirs = append(w.dirs, dir)
		places = append(places, Place{Dir: dir, API: "127.0.0.1:0", Peering: freePort(t)})
	}
	op := privateKey("op").Public()
	o := Options{
		Chain: testChain, Block: 10 * time.Millisecond, Operator: op, Stake: 1 << 20,
		Accounts: []host.Allocation{{Key: op, Amount: 1 << 24}},
	}
	if err := InitAll(places, o); err != nil {
		t.Fatal(err)
	}
	w.running, w.stops = make([]*Replica, n), make([]func(), n)
	for i := range n {
		w.start(i)
	}
	return w
}

func (w *network) start(i int) { w.running[i], w.stops[i] = start(w.t, w.dirs[i]) }

func (w *network) stop(i int) {
	w.stops[i]()
	w.running[i] = nil
}

// add starts one more replica, which takes the state from the others.
func (w *network) add() int {
	w.t.Helper()
	i := w.prepare()
	w.start(i)
	return i
}

// prepare makes the directory of one more replica.
func (w *network) prepare() int {
	w.t.Helper()
	genesis, err := os.ReadFile(filepath.Join(w.dirs[0], genesisFile))
	if err != nil {
		w.t.Fatal(err)
	}
	dir := w.t.TempDir()
	o := Options{Genesis: genesis, API: "127.0.0.1:0", Peering: freePort(w.t), Block: 10 * time.Millisecond}
	for _, r := range w.running {
		if r != nil {
			o.Sync, o.Peers = append(o.Sync, r.Endpoint()), append(o.Peers, r.PeerAddress())
		}
	}
	if err := Init(dir, o); err != nil {
		w.t.Fatal(err)
	}
	w.dirs, w.running, w.stops = append(w.dirs, dir), append(w.running, nil), append(w.stops, nil)
	return len(w.dirs) - 1
}

// client talks to all replicas that run.
func (w *network) client() *Client {
	var endpoints []string
	for _, r := range w.running {
		if r != nil {
			endpoints = append(endpoints, r.Endpoint())
		}
	}
	return newClient(w.t, endpoints...)
}

// pay sends tokens to a key that nobody has, so that something happens.
func (w *network) pay(c *Client, s *ledger.Signer) error {
	return submit(w.t, c, s, host.Transfer{To: privateKey("anybody").Public(), Amount: 100})
}

// agree waits until all that run have the same state at the same height.
func (w *network) agree() ledger.Status {
	w.t.Helper()
	var clients []*Client
	for _, r := range w.running {
		if r != nil {
			clients = append(clients, newClient(w.t, r.Endpoint()))
		}
	}
	for end := time.After(patience); ; {
		var first ledger.Status
		same := true
		for _, c := range clients {
			s, err := c.Status(w.t.Context())
			if err != nil {
				w.t.Fatal(err)
			}
			if first.Chain == "" {
				first = s
			}
			same = same && s.Height == first.Height && s.Hash == first.Hash
		}
		if same {
			return first
		}
		select {
		case <-end:
			w.t.Fatal("replicas do not come to the same state")
		default:
		}
	}
}

func TestFourReplicasOutliveOneAndWaitForTwo(t *testing.T) {
	t.Parallel()
	w := newNetwork(t, 4)
	op := signer("op")
	if err := w.pay(w.client(), op); err != nil {
		t.Fatal(err)
	}
	w.stop(1)
	if err := w.pay(w.client(), op); err != nil {
		t.Errorf("with three of four: %v", err)
	}
	before := w.agree()
	w.stop(2)
	tx, err := op.Sign(time.Now(), host.Transfer{To: privateKey("anybody").Public(), Amount: 100})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	w.client().Send(t.Context(), tx, func(err error) { done <- err })
	select {
	case err := <-done:
		t.Errorf("two of four have decided a block: %v", err)
	case <-time.After(2 * time.Second): // several rounds of votes
	}
	if s, err := newClient(t, w.running[0].Endpoint()).Status(t.Context()); err != nil || s.Hash != before.Hash {
		t.Errorf("two of four have changed the state: %v", err)
	}
	w.start(1)
	w.start(2)
	if err := wait(t, done); err != nil {
		t.Errorf("what waited: %v", err)
	}
	w.agree()
	if a, err := w.client().Account(t.Context(), privateKey("anybody").Public()); err != nil || a.Tokens != 300 {
		t.Errorf("%d tokens have arrived (%v), want 300", a.Tokens, err)
	}
}

func TestANewReplicaTakesTheStateAndGetsASeat(t *testing.T) {
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
	if h := w.running[i].home.settings; len(h.Sync) != 1 {
		t.Fatalf("%+v", h)
	}
	blocks, err := os.ReadDir(filepath.Join(w.dirs[i], lightsDir))
	if err != nil || len(blocks) == 0 {
		t.Errorf("no headers are kept to lead others from the genesis: %v", err)
	}
	id, err := ReadIdentity(w.dirs[i])
	if err != nil {
		t.Fatal(err)
	}
	c := w.client()
	if err := submit(t, c, op, id.Stake(op.Key.Public(), 1<<21)); err != nil {
		t.Fatal(err)
	}
	if err := submit(t, c, op, host.Vote{Replica: id.Key, Seated: true}); err != nil {
		t.Fatal(err)
	}
	// With twice the stake of the first, nothing goes on without it.
	for range 3 {
		if err := w.pay(c, op); err != nil {
			t.Fatal(err)
		}
	}
	list, err := c.Replicas(t.Context())
	if err != nil || len(list) != 2 {
		t.Fatalf("replicas %v (%v)", list, err)
	}
	for _, r := range list {
		if r.Seat != "seated" || r.Key == id.Key && r.Power <= 1<<21 {
			t.Errorf("%+v", r)
		}
	}
	w.agree()

	// Who believes the genesis finds the way over the change of replicas.
	fresh := newClient(t, w.running[i].Endpoint())
	fresh.trust.Anchor.Height, fresh.trust.Genesis = 1, w.running[0].home.genesis
	host, err := host.NewHost(w.running[0].home.ledger, rules(nil))
	if err != nil {
		t.Fatal(err)
	}
	fresh.trust.GenesisRoot = host.Hash()
	if a, err := fresh.Account(t.Context(), privateKey("anybody").Public()); err != nil || a.Tokens != 600 {
		t.Errorf("%d tokens (%v), want 600", a.Tokens, err)
	}
	if first := fresh.trust.At(1); first == nil {
		t.Error("the first header is not among those that are believed")
	}
}

// TestAReplicaThatVotesTwiceIsBanned runs one replica's keys in two places.
func TestAReplicaThatVotesTwiceIsBanned(t *testing.T) {
	t.Parallel()
	w := newNetwork(t, 4)
	op := signer("op")
	guilty, err := ReadIdentity(w.dirs[3])
	if err != nil {
		t.Fatal(err)
	}
	if err := w.pay(w.client(), op); err != nil {
		t.Fatal(err)
	}
	w.stop(3)
	twin := w.add()
	w.agree()
	w.stop(twin)
	for _, f := range []string{validatorFile, chanceFile} {
		b, err := os.ReadFile(filepath.Join(w.dirs[3], f))
		if err == nil {
			err = os.WriteFile(filepath.Join(w.dirs[twin], f), b, secretMode)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	w.start(3)
	w.start(twin)
	c := newClient(t, w.running[0].Endpoint(), w.running[1].Endpoint())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		if err := w.pay(c, op); err != nil {
			t.Fatal(err)
		}
		list, err := c.Replicas(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list {
			if r.Key == guilty.Key && r.Seat == "banned" {
				if r.Stake != 0 || r.Power != 0 {
					t.Errorf("%+v", r)
				}
				return
			}
			if r.Key != guilty.Key && r.Seat != "seated" {
				t.Fatalf("an honest replica has no seat: %+v", r)
			}
		}
	}
}

func TestAnotherChainOfTheSameNameIsNotBelieved(t *testing.T) {
	t.Parallel()
	ours, other := newNetwork(t, 1), newNetwork(t, 1)
	path := filepath.Join(t.TempDir(), "chains", "header")
	look := func(endpoint string) error {
		c := newClient(t, endpoint)
		if err := c.Remember(path); err != nil {
			return err
		}
		_, err := c.Account(t.Context(), key.Public{1})
		return errors.Join(err, c.Close())
	}
	if err := look(ours.running[0].Endpoint()); err != nil {
		t.Fatal(err)
	}
	if err := ours.pay(ours.client(), signer("op")); err != nil {
		t.Fatal(err)
	}
	if err := other.pay(other.client(), signer("op")); err != nil {
		t.Fatal(err)
	}
	if err := look(ours.running[0].Endpoint()); err != nil {
		t.Errorf("the chain that is known: %v", err)
	}
	if err := look(other.running[0].Endpoint()); !errors.Is(err, headers.ErrLied) || !strings.Contains(err.Error(), path) {
		t.Errorf("another chain: got %v, want headers.ErrLied, and what is remembered where", err)
	}
	c := newClient(t, other.running[0].Endpoint())
	if _, err := c.Replicas(t.Context()); err != nil {
		t.Fatal(err)
	}
	anchor, _, _ := c.Trusted()
	if err := look(other.running[0].Endpoint() + "#" + anchor.String()); !errors.Is(err, headers.ErrLied) {
		t.Errorf("another chain by its own header, as in a stranger's ticket: got %v, want headers.ErrLied", err)
	}
	c = newClient(t, ours.running[0].Endpoint())
	if _, err := c.Replicas(t.Context()); err != nil {
		t.Fatal(err)
	}
	anchor, _, _ = c.Trusted()
	if _, err := newClient(t, ours.running[0].Endpoint()+"#"+anchor.String()).Replicas(t.Context()); err != nil {
		t.Errorf("with the chain's own header: %v", err)
	}
	if _, err := newClient(t, other.running[0].Endpoint()+"#"+anchor.String()).Replicas(t.Context()); err == nil {
		t.Error("another chain's header is accepted")
	}
	// With both, the client leaves the one that is not its chain.
	both := newClient(t, other.running[0].Endpoint()+"#"+anchor.String(), ours.running[0].Endpoint())
	if a, err := both.Account(t.Context(), privateKey("anybody").Public()); err != nil || a.Tokens != 100 {
		t.Errorf("%d tokens (%v)", a.Tokens, err)
	}
}

// TestFalseAnswersAreCaughtAndTheEndpointLeft has endpoints that answer with something else of the
// same chain, or an old state.
func TestFalseAnswersAreCaughtAndTheEndpointLeft(t *testing.T) {
	t.Parallel()
	w := newNetwork(t, 1)
	op, honest := signer("op"), w.running[0].Endpoint()
	for _, run := range []string{"demo", "demo-2"} {
		if err := submit(t, newClient(t, honest), op, createRun(run, op.Key.Public(), 4)); err != nil && run == "demo" {
			t.Fatal(err)
		}
	}
	if err := submit(t, newClient(t, honest), op, host.Announce{Run: "demo", Addrs: []string{"/dns/here"}}); err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(honest)
	if err != nil {
		t.Fatal(err)
	}
	nobody := privateKey("nobody").Public()
	for name, swap := range map[string]func(path string) string{
		"another's purse": func(p string) string { return strings.Replace(p, op.Key.Public().String(), nobody.String(), 1) },
		"another run":     func(p string) string { return strings.Replace(p, "/demo/", "/demo-2/", 1) },
		"another part":    func(p string) string { return strings.Replace(p, "/peers", "/spec", 1) },
		"spec":            func(p string) string { return strings.Replace(p, "/spec", "/peers", 1) },
	} {
		swapped := false
		liar := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(at)
			if p := swap(r.Out.URL.Path); p != r.Out.URL.Path {
				swapped, r.Out.URL.Path = true, p
			}
		}})
		defer liar.Close()
		c := newClient(t, liar.URL, honest)
		if a, err := c.Account(t.Context(), op.Key.Public()); err != nil || a.Tokens == 0 {
			t.Errorf("%s: account %+v (%v)", name, a, err)
		}
		if got := askPeers(t, c); len(got) != 1 {
			t.Errorf("%s: peers %v", name, got)
		}
		spec := make(chan []byte, 1)
		c.Spec(t.Context(), "demo", func(b []byte, err error) { spec <- b })
		if got := wait(t, spec); string(got) != string(testSpec) {
			t.Errorf("%s: spec %q", name, got)
		}
		if !swapped {
			t.Errorf("%s: the liar was not asked", name)
		}
	}
}
