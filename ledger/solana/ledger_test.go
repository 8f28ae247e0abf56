package solana_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	chain "github.com/entrain-network/entrain/chain/solana"
	"github.com/entrain-network/entrain/chain/solana/svm"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/ledger/ledgertest"
	"github.com/entrain-network/entrain/ledger/solana"
	"github.com/entrain-network/entrain/wire"
)

var program = chain.Program{5, 5}

// cable is a connection that can be cut.
type cable struct{ cut atomic.Bool }

var errCut = errors.New("the cable is cut")

func (c *cable) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.cut.Load() {
		return nil, errCut
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if c.cut.Load() && err == nil {
		res.Body.Close()
		return nil, errCut
	}
	return res, err
}

// post calls a method of the node that is only for tests.
func post(t testing.TB, url, method string, params ...any) {
	t.Helper()
	ask(t, url, nil, method, params...)
}

// ask calls a method of the node. Its whole answer goes to answer, if that is not nil.
func ask(t testing.TB, url string, answer any, method string, params ...any) {
	t.Helper()
	b, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": append([]any{}, params...)})
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.Post(url, "application/json", bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if answer == nil {
		return
	}
	if err := json.NewDecoder(res.Body).Decode(answer); err != nil {
		t.Fatal(err)
	}
}

// rich is a client whose keys get SOL when they are first used.
type rich struct {
	*solana.Client
	t   testing.TB
	url string
	mu  *sync.Mutex
	had map[chain.Address]bool
}

func (r rich) As(k key.Private) ledger.Ledger {
	at := chain.NewSigner(k).Address()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.had[at] {
		r.had[at] = true
		post(r.t, r.url, "requestAirdrop", at, 1_000_000_000_000)
	}
	return r.Client.As(k)
}

// connect returns a client of a node, with a cable.
func connect(t testing.TB, url string, o solana.Options) (*solana.Client, *cable) {
	t.Helper()
	c := &cable{}
	o.Program, o.Endpoints, o.HTTP = program, append(o.Endpoints, url), &http.Client{Transport: c}
	if o.Poll == 0 {
		o.Poll = 10 * time.Millisecond
	}
	client, err := solana.NewClient(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client, c
}

func TestLedgerOnSolana(t *testing.T) {
	url := svm.Serve(t, program, 5*time.Millisecond, 150)
	mu, had := &sync.Mutex{}, map[chain.Address]bool{}
	ledgertest.Test(t, func() ledgertest.Link {
		client, c := connect(t, url, solana.Options{})
		return ledgertest.Link{Client: rich{client, t, url, mu, had}, Cut: c.cut.Store}
	})
}

// world is a node, and a client whose keys have SOL.
type world struct {
	t   *testing.T
	url string
	rich
	cable *cable
}

func newWorld(t *testing.T, blocks int, o solana.Options) world {
	url := svm.Serve(t, program, 5*time.Millisecond, blocks)
	client, c := connect(t, url, o)
	return world{t, url, rich{client, t, url, &sync.Mutex{}, map[chain.Address]bool{}}, c}
}

func (w world) key(n byte) key.Private { return key.FromSeed([32]byte{n}) }

// submit carries out a body, and returns what became of it.
func (w world) submit(k key.Private, body host.Body) error {
	w.t.Helper()
	done := make(chan error, 1)
	w.As(k).Submit(w.t.Context(), body, func(err error) { done <- err })
	select {
	case err := <-done:
		return err
	case <-time.After(30 * time.Second):
		w.t.Fatal("no answer")
		return nil
	}
}

func (w world) must(k key.Private, body host.Body) {
	w.t.Helper()
	if err := w.submit(k, body); err != nil {
		w.t.Fatal(err)
	}
}

// create makes a run, as change wants it.
func (w world) create(run string, change func(b *host.CreateRun)) {
	w.t.Helper()
	w.must(w.key(1), w.body(run, change))
}

func (w world) body(run string, change func(b *host.CreateRun)) host.CreateRun {
	owner := w.key(1)
	text := []byte(strings.Repeat("name = \""+run+"\"\n", 100)) // three parts
	b := host.CreateRun{
		Limits: coordinator.Limits{Members: 8, Witnesses: 4, Validators: 2},
		Config: coordinator.Config{
			Name: run, MinMembers: 1, StartMembers: 2, WaitingMs: 1000, WarmupMs: 600_000, RoundTrainMs: 10_000, RoundWitnessMs: 10_000,
			CooldownMs: 10_000, EpochMs: 600_000, TotalSteps: 100, BatchStart: 8, BatchEnd: 8, SequenceTokens: 128, MissedMax: 3,
			ModelHash: wire.Sum("test/model"), SpecHash: host.SpecHash(text), Owner: owner.Public(),
		},
		Spec: text,
	}
	if change != nil {
		change(&b)
	}
	return b
}

// until waits for a state.
func (w world) until(l ledger.Reader, run string, f func(s coordinator.State) bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 30*time.Second)
	defer cancel()
	l.Watch(ctx, run, func(s ledger.Snapshot) {
		if f(s.State) {
			cancel()
		}
	})
	if <-ctx.Done(); ctx.Err() == context.DeadlineExceeded {
		w.t.Fatal("the state never came")
	}
}

func toRun(run string, value uint64, m coordinator.Message) host.RunMessage {
	b := host.ToRun(run, m)
	b.Value = value
	return b
}

// A transaction that no block takes before its blockhash expires is signed again.
func TestLostTransactionIsSignedAgainOnSolana(t *testing.T) {
	w := newWorld(t, 20, solana.Options{})
	w.create("lost", nil)
	post(t, w.url, "testLose", 2)
	w.must(w.key(2), host.ToRun("lost", coordinator.Join{}))
	w.until(w, "lost", func(s coordinator.State) bool { return s.Count() == 1 })
}

// While nodes lag that are asked for a transaction's outcome, and endpoints fail, it is not signed
// again, long after its blockhash has expired: tokens would be paid twice.
func TestNothingIsPaidTwiceOnSolana(t *testing.T) {
	w := newWorld(t, 5, solana.Options{})
	owner, to := w.key(1), w.key(2).Public()
	w.As(owner) // for its SOL
	mint, err := w.NewToken(t.Context(), owner, 1000)
	if err != nil {
		t.Fatal(err)
	}
	paying, c := connect(t, w.url, solana.Options{Mint: mint})
	post(t, w.url, "testBlind", 20) // 100 ms: four lives of a blockhash
	done := make(chan error, 1)
	paying.As(owner).Submit(t.Context(), host.Transfer{To: to, Amount: 400}, func(err error) { done <- err })
	for range 3 {
		c.cut.Store(true)
		time.Sleep(20 * time.Millisecond)
		c.cut.Store(false)
		time.Sleep(20 * time.Millisecond)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	has, err := paying.Account(t.Context(), to)
	if err != nil || has.Tokens != 400 {
		t.Errorf("%d tokens arrived, %v; want 400", has.Tokens, err)
	}
	if has, err := paying.Account(t.Context(), owner.Public()); err != nil || has.Tokens != 600 || has.Lamports == 0 {
		t.Errorf("%+v, %v", has, err)
	}
}

// The program is put on a cluster by transactions of the loader, in two calls, and a run is made there.
func TestDeployOnSolana(t *testing.T) {
	file, err := os.ReadFile(filepath.Join(svm.Folder(t), "entrain.so"))
	if err != nil {
		t.Fatal(err)
	}
	url := svm.Serve(t, chain.Program{}, 5*time.Millisecond, 150)
	none, err := solana.NewClient(t.Context(), solana.Options{Endpoints: []string{url}, Poll: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer none.Close()
	owner := key.FromSeed([32]byte{1})
	if _, err := none.Deploy(t.Context(), owner, file, func(int, int) {}); host.CodeOf(err) != host.CodeFunds {
		t.Errorf("without SOL: %v", err)
	}
	if err := none.Airdrop(t.Context(), owner.Public(), 1e12); err != nil {
		t.Fatal(err)
	}
	// A stranger's gifts, which keep accounts from being made at once.
	d, mint := chain.NewDeployment(chain.NewSigner(owner), file), chain.MintAt(chain.Address(owner.Public()))
	purse, err := chain.Purse(chain.Address(owner.Public()), mint)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []chain.Address{chain.Address(d.Program()), d.Buffer(), mint, purse} {
		if err := none.Airdrop(t.Context(), key.Public(at), 1e9); err != nil {
			t.Fatal(err)
		}
	}
	if other := chain.NewDeployment(chain.NewSigner(key.FromSeed([32]byte{3})), file); other.Program() == d.Program() || other.Buffer() == d.Buffer() {
		t.Error("two keys deploy to one address")
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := none.Deploy(ctx, owner, file, func(done, all int) {
		if done > all/2 {
			cancel()
		}
	}); err == nil {
		t.Error("a deployment that broke off has no error")
	}
	first := 0
	at, err := none.Deploy(t.Context(), owner, file, func(done, all int) { first = max(first, done) })
	if err != nil || first != len(file) {
		t.Fatal(err, first)
	}
	if again, err := none.Deploy(t.Context(), owner, file, func(int, int) { t.Error("it was there") }); again != at || err != nil {
		t.Error(again, err)
	}
	for range 2 {
		if at, err := none.NewToken(t.Context(), owner, 1000); at != mint || err != nil {
			t.Error(at, err)
		}
	}
	c, err := solana.NewClient(t.Context(), solana.Options{Program: at, Endpoints: []string{url}, Poll: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	w := world{t, url, rich{c, t, url, &sync.Mutex{}, map[chain.Address]bool{}}, nil}
	w.create("deployed", nil)
	runs, err := c.Runs(t.Context())
	if err != nil || len(runs) != 1 || runs[0].Name != "deployed" {
		t.Errorf("%+v, %v", runs, err)
	}
	if _, err := solana.NewClient(t.Context(), solana.Options{Program: chain.Program{9}, Endpoints: []string{url}}); err == nil || !strings.Contains(err.Error(), "has no program") {
		t.Errorf("no program there: %v", err)
	}
}

func FuzzParsePlace(f *testing.F) {
	f.Add("solana:https://api.devnet.solana.com#" + chain.Address(program).String() + ":" + chain.TokenProgram.String())
	f.Add("solana:http://127.0.0.1:8899/?key=secret")
	f.Add("solana:#:")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := solana.ParsePlace(text)
		if err != nil {
			return
		}
		if again, err := solana.ParsePlace(p.String()); err != nil || again != p {
			t.Errorf("%q: %+v, then %+v, %v", text, p, again, err)
		}
		if plain, err := solana.ParsePlace(p.Plain()); err != nil || plain.Program != p.Program || plain.Mint != p.Mint {
			t.Errorf("%q: plain %q, %v", text, p.Plain(), err)
		}
	})
}

// Nobody submits a Tick here but the ledger itself.
func TestLedgerEndsPhasesOnSolana(t *testing.T) {
	w := newWorld(t, 150, solana.Options{})
	w.create("phases", nil)
	for n := range byte(2) {
		w.must(w.key(2+n), host.ToRun("phases", coordinator.Join{}))
	}
	w.until(w.As(w.key(2)), "phases", func(s coordinator.State) bool { return s.Phase() == coordinator.Warmup })
}

// Rent comes back: that of announced addresses by the first transaction after the run's end, that of
// a specification when its run is closed, or at once where none is made.
func TestRentComesBackOnSolana(t *testing.T) {
	w := newWorld(t, 150, solana.Options{})
	owner, ann := w.key(1), w.key(2)
	buffers := func(k key.Private) (n int) {
		var found struct{ Result []any }
		ask(t, w.url, &found, "getProgramAccounts", chain.Address(program), map[string]any{"encoding": "base64", "filters": []any{
			map[string]any{"memcmp": map[string]any{"offset": 4, "bytes": chain.Address(k.Public())}}}})
		return len(found.Result)
	}
	w.create("rent", nil)
	w.must(ann, host.ToRun("rent", coordinator.Join{}))
	addrs := []string{"/ip4/192.0.2.1/tcp/1"}
	w.must(ann, host.Announce{Run: "rent", Addrs: addrs})
	addrs = append(addrs, "/dns4/"+strings.Repeat("a", 240))
	w.must(ann, host.Announce{Run: "rent", Addrs: addrs})
	w.must(ann, host.ToRun("rent", coordinator.Withdraw{}))
	peers := make(chan []host.Peer, 1)
	w.Peers(t.Context(), "rent", func(list []host.Peer, err error) { peers <- list })
	if list := <-peers; len(list) != 1 || !slices.Equal(list[0].Addrs, addrs) || buffers(ann) != 1 {
		t.Errorf("the peers are %v, in %d buffers", list, buffers(ann))
	}
	if a, err := w.Account(t.Context(), ann.Public()); err != nil || a.Locked == 0 {
		t.Errorf("no rent is locked: %+v, %v", a, err)
	}
	next := w.Client.As(ann) // as a later process
	submit := func(body host.Body) {
		done := make(chan error, 1)
		next.Submit(t.Context(), body, func(err error) { done <- err })
		<-done
	}
	submit(host.Transfer{}) // refused, as there is no token
	if buffers(ann) != 1 {
		t.Error("the addresses of a run that goes on are gone")
	}
	w.must(owner, host.ToRun("rent", coordinator.End{}))
	w.until(w.As(owner), "rent", func(s coordinator.State) bool { return s.Phase() == coordinator.Finished })
	next = w.Client.As(ann)
	submit(host.Transfer{})
	if n := buffers(ann); n != 0 {
		t.Errorf("%d buffers are left of a run that is over", n)
	}
	if buffers(owner) != 1 {
		t.Errorf("%d buffers of the owner, want the specification", buffers(owner))
	}
	w.must(owner, host.CloseRun{Run: "rent"})
	if n := buffers(owner); n != 0 {
		t.Errorf("%d buffers are left of a run that is closed", n)
	}
	// A run that the program refuses, as another took the name meanwhile.
	name, err := program.Name("taken")
	if err != nil {
		t.Fatal(err)
	}
	post(t, w.url, "testPut", name, chain.Address(program), 1<<30, base64.StdEncoding.EncodeToString([]byte("x")))
	if err := w.submit(owner, w.body("taken", nil)); host.CodeOf(err) != host.CodeRunExists || buffers(owner) != 0 {
		t.Errorf("a name that is taken: %v, and %d buffers are left", err, buffers(owner))
	}
}

// A message that does not fit a transaction goes through a buffer, whose rent comes back.
func TestLongMessageOnSolana(t *testing.T) {
	w := newWorld(t, 150, solana.Options{})
	w.create("long", nil)
	evidence := coordinator.Evidence{Dispute: 1, Bytes: bytes.Repeat([]byte{7}, 3000)}
	var refused *host.TxError
	err := w.submit(w.key(2), host.ToRun("long", evidence))
	if !errors.As(err, &refused) || refused.Code < host.CodeCoordinator {
		t.Errorf("evidence in no dispute: %v, want a refusal by the coordinator", err)
	}
}

// Blockhashes that expire and transactions that are lost in the middle of a message of many parts
// cost nothing but time.
func TestLostPartsOfALongMessageOnSolana(t *testing.T) {
	w := newWorld(t, 20, solana.Options{})
	w.create("parts", nil)
	w.As(w.key(2)) // for its SOL
	post(t, w.url, "testLose", 5)
	err := w.submit(w.key(2), host.ToRun("parts", coordinator.Evidence{Dispute: 1, Bytes: bytes.Repeat([]byte{7}, 3000)}))
	if host.CodeOf(err) != host.CodeCoordinator+host.Code(coordinator.ErrStage) {
		t.Errorf("evidence in no dispute: %v, want the coordinator's refusal", err)
	}
}

// A name stays where it was when its run is closed, and the run's owner may make another run there,
// which is not taken for the first.
func TestAnotherRunUnderANameOnSolana(t *testing.T) {
	w := newWorld(t, 150, solana.Options{})
	w.create("other", nil)
	at := func(name string) chain.Address {
		a, err := program.Name(name)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	var r struct {
		Result struct{ Value []struct{ Data []string } }
	}
	ask(t, w.url, &r, "getMultipleAccounts", []chain.Address{at("other")}, map[string]any{"encoding": "base64"})
	post(t, w.url, "testPut", at("first"), chain.Address(program), 1<<30, r.Result.Value[0].Data[0])
	if _, err := w.spec("first"); !errors.Is(err, ledger.ErrUnknownRun) {
		t.Errorf("the specification of a run that is closed: %v", err)
	}
	if err := w.submit(w.key(2), host.ToRun("first", coordinator.Join{})); host.CodeOf(err) != host.CodeUnknownRun {
		t.Errorf("a message to a run that is closed: %v", err)
	}
	if text, err := w.spec("other"); err != nil || len(text) == 0 {
		t.Error(err)
	}
}

func TestTokensOnSolana(t *testing.T) {
	mint := chain.Address{3, 3}
	w := newWorld(t, 150, solana.Options{Mint: mint})
	raw := make([]byte, 82)
	raw[45] = 1
	post(t, w.url, "testPut", mint, chain.TokenProgram, 1<<30, base64.StdEncoding.EncodeToString(raw))
	const stake = 100
	w.create("tokens", func(b *host.CreateRun) { b.Config.Stake = stake })
	ann := w.key(2)
	purse, err := chain.Purse(chain.NewSigner(ann).Address(), mint)
	if err != nil {
		t.Fatal(err)
	}
	var refused *host.TxError
	if err := w.submit(ann, toRun("tokens", stake, coordinator.Join{})); err == nil {
		t.Error("a stake from an account that does not exist is accepted")
	}
	raw = make([]byte, 165)
	pub := ann.Public()
	copy(raw, mint[:])
	copy(raw[32:], pub[:])
	binary.LittleEndian.PutUint64(raw[64:], 2*stake-1)
	raw[108] = 1
	post(t, w.url, "testPut", purse, chain.TokenProgram, 1<<30, base64.StdEncoding.EncodeToString(raw))
	w.must(ann, toRun("tokens", stake, coordinator.Join{}))
	if err := w.submit(ann, toRun("tokens", stake, coordinator.Fund{})); !errors.As(err, &refused) || refused.Code != host.CodeFunds {
		t.Errorf("a token too few: %v, want CodeFunds", err)
	}
	w.must(ann, host.ToRun("tokens", coordinator.Withdraw{}))
	w.must(ann, host.ToRun("tokens", coordinator.Claim{}))
	if err := w.submit(ann, toRun("tokens", 2*stake-1, coordinator.Fund{})); err != nil {
		t.Errorf("not all tokens came back: %v", err)
	}
}

func TestRefusalsOnSolana(t *testing.T) {
	w := newWorld(t, 150, solana.Options{})
	w.create("here", nil)
	var refused *host.TxError
	for _, c := range []struct {
		what string
		body host.Body
		want host.Code
	}{
		{"no run", host.ToRun("nowhere", coordinator.Join{}), host.CodeUnknownRun},
		{"no message", host.RunMessage{Run: "here", Message: []byte{200}}, host.CodeBadMessage},
		{"a member of nothing", host.ToRun("here", coordinator.Withdraw{}), host.CodeCoordinator + host.Code(coordinator.ErrNotMember)},
		{"tokens where there are none", toRun("here", 5, coordinator.Join{}), host.CodeFunds},
		{"another's run", host.CreateRun{Limits: coordinator.Limits{Members: 4, Witnesses: 4}}, host.CodeNotOwner},
	} {
		if err := w.submit(w.key(2), c.body); !errors.As(err, &refused) || refused.Code != c.want {
			t.Errorf("%s: %v, want code %v", c.what, err, c.want)
		}
	}
	for _, c := range []struct {
		body host.Body
		want string
	}{
		{host.RunMessage{Run: "here", From: "pool", Message: coordinator.Append(nil, coordinator.Join{})}, "no pools on Solana"},
		{host.Lend{}, "no pools on Solana"},
		{host.Transfer{}, "entrain chain init --supply"},
		{host.ClaimFor{}, "leave out --member"},
		{host.Admit{}, "by a stake"},
		{host.Leave{}, "no replicas there"},
		{host.CloseRun{Run: "here"}, "not finished"},
	} {
		if err := w.submit(w.key(1), c.body); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%T: %v, want %q", c.body, err, c.want)
		}
	}
	clocked := w.body("clocked", func(b *host.CreateRun) {
		b.Limits.Buckets = true
		b.Config.Exchange, b.Config.WindowBlocks, b.Config.Overlap, b.Config.Clock = coordinator.Buckets, 10, 1, 1
	})
	if err := w.submit(w.key(1), clocked); !errors.As(err, &refused) || refused.Code != host.CodeClock {
		t.Errorf("a run that counts another chain's blocks: %v", err)
	}
	poor := make(chan error, 1) // without an airdrop
	w.Client.As(w.key(9)).Submit(t.Context(), host.ToRun("here", coordinator.Join{}), func(err error) { poor <- err })
	if err := <-poor; host.CodeOf(err) != host.CodeFunds {
		t.Errorf("a key without SOL: %v, want CodeFunds", err)
	}
}

// counter counts the calls of a method.
type counter struct {
	method string
	n      atomic.Int64
}

func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if bytes.Contains(b, []byte(c.method)) {
		c.n.Add(1)
	}
	r.Body = io.NopCloser(bytes.NewReader(b))
	return http.DefaultTransport.RoundTrip(r)
}

// A client looks at a run when an endpoint tells of a change, and polls where none does.
func TestSubscriptionOnSolana(t *testing.T) {
	w := newWorld(t, 150, solana.Options{})
	w.create("told", nil)
	const poll = 2 * time.Second
	watch := func() (heard chan uint32, looks *counter, end func() error) {
		looks = &counter{method: "getMultipleAccounts"}
		client, err := solana.NewClient(t.Context(), solana.Options{
			Program: program, Endpoints: []string{w.url}, Poll: poll, HTTP: &http.Client{Transport: looks},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		heard = make(chan uint32, 100)
		client.Watch(t.Context(), "told", func(s ledger.Snapshot) { heard <- uint32(s.State.Count()) })
		<-heard
		return heard, looks, client.Close
	}
	subscribed := func(want int) {
		var r struct{ Result int }
		for r.Result != want {
			ask(t, w.url, &r, "testSubscribed")
		}
	}
	heard, looks, end := watch()
	subscribed(1)
	before := looks.n.Load()
	for n := range byte(4) {
		w.must(w.key(2+n), host.ToRun("told", coordinator.Join{}))
		if got := <-heard; got != uint32(n)+1 {
			t.Errorf("%d members are told of, want %d", got, n+1)
		}
	}
	// Two looks a change, at the tail and at the state, and one that may find the endpoint's answer behind its word.
	if n := looks.n.Load() - before; n > 4*3 {
		t.Errorf("%d looks for 4 changes", n)
	}
	post(t, w.url, "testMute", true)
	subscribed(0)
	w.must(w.key(2), host.ToRun("told", coordinator.Withdraw{}))
	<-heard
	deaf, _, _ := watch()
	w.must(w.key(2), host.ToRun("told", coordinator.Join{}))
	<-deaf
	post(t, w.url, "testMute", false)
	<-heard
	subscribed(2)
	end()
	for n := range byte(4) {
		w.must(w.key(2+n), host.ToRun("told", coordinator.Withdraw{})) // the node tells who is left
	}
	subscribed(1)
}
