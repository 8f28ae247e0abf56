package comet

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/ledger"
)

// fetch makes a request and returns the status and the body.
func fetch(t *testing.T, method, url string, body io.Reader, header ...string) (int, []byte) {
	t.Helper()
	req, err := http.NewRequest(method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.Header.Get(chainHeader) != testChain {
		t.Errorf("%s %s: answer names chain %q", method, url, res.Header.Get(chainHeader))
	}
	return res.StatusCode, b
}

func TestBadTransactionsAreRefusedAndChangeNothing(t *testing.T) {
	r, _ := start(t, replicaDir(t, Options{}))
	c := newClient(t, r.Endpoint())
	owner := signer("owner")
	create, err := owner.Sign(time.Now(), createRun("demo", owner.Key.Public(), 16))
	if err != nil {
		t.Fatal(err)
	}
	if err := submitBytes(t, c, create); err != nil {
		t.Fatal(err)
	}
	now := uint64(time.Now().UnixMilli())
	sign := func(tx host.Tx) []byte {
		b, err := tx.Sign(privateKey("ann"))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	good := host.Tx{Chain: testChain, Nonce: 1, ExpiresMs: now + 60_000, Body: join("demo")}
	forged := sign(good)
	forged[len(forged)-1] ^= 1
	other, expired, late := good, good, good
	other.Chain = "other-chain"
	expired.ExpiresMs = now - 60_000
	late.ExpiresMs = now + 2*host.TxLifetimeMs

	before, err := c.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c2 := range []struct {
		name string
		tx   []byte
		want host.Code
	}{
		{"malformed", []byte("hello"), host.CodeMalformed},
		{"empty", nil, host.CodeMalformed},
		{"oversize", make([]byte, host.TxBytesMax+1), host.CodeTooLarge},
		{"far oversize", make([]byte, 8<<20), host.CodeTooLarge},
		{"wrong chain", sign(other), host.CodeWrongChain},
		{"wrong signature", forged, host.CodeBadSignature},
		{"expired", sign(expired), host.CodeExpired},
		{"expires late", sign(late), host.CodeExpiresLate},
	} {
		if got := codeOf(t, submitBytes(t, c, c2.tx)); got != c2.want {
			t.Errorf("%s: got %v, want %v", c2.name, got, c2.want)
		}
	}
	after, err := c.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if after.Hash != before.Hash || after.Height != before.Height {
		t.Fatalf("state %v at height %d became %v at height %d", before.Hash, before.Height, after.Hash, after.Height)
	}
	// Whatever got through would be in this block, or make one more.
	if got := codeOf(t, submitBytes(t, c, sign(good))); got != host.CodeOK {
		t.Errorf("the good transaction: got %v", got)
	}
	if after, err = c.Status(t.Context()); err != nil || after.Height != before.Height+2 {
		t.Errorf("one transaction and its proof led from height %d to %d (%v)", before.Height, after.Height, err)
	}
}

func TestAReplayIsToldWhatBecameOfTheFirst(t *testing.T) {
	r, _ := start(t, replicaDir(t, Options{}))
	c := newClient(t, r.Endpoint())
	owner := signer("owner")
	if err := submit(t, c, owner, createRun("demo", owner.Key.Public(), 16)); err != nil {
		t.Fatal(err)
	}
	good := host.Tx{Chain: testChain, Nonce: 1, ExpiresMs: uint64(time.Now().UnixMilli()) + 60_000, Body: join("demo")}
	sign := func(tx host.Tx) []byte {
		b, err := tx.Sign(privateKey("ann"))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for range 2 {
		if err := submitBytes(t, c, sign(good)); err != nil {
			t.Error(err)
		}
	}
	// Its nonce in another transaction is refused.
	again := good
	again.Body = host.RunMessage{Run: "demo", Message: coordinator.Append(nil, coordinator.Withdraw{})}
	if got := codeOf(t, submitBytes(t, c, sign(again))); got != host.CodeReplayed {
		t.Errorf("nonce used twice: got %v", got)
	}
	// What the coordinator refuses is in a block, and is remembered as refused.
	again.Nonce++
	again.Body = join("demo")
	for range 2 {
		code := codeOf(t, submitBytes(t, c, sign(again)))
		if e, ok := code.Coordinator(); !ok || e != coordinator.ErrAlreadyMember {
			t.Errorf("joining twice: got %v", code)
		}
	}
}

func TestAnswersForPeople(t *testing.T) {
	r, _ := start(t, replicaDir(t, Options{}))
	c := newClient(t, r.Endpoint())
	owner := signer("owner")
	if err := submit(t, c, owner, createRun("demo", owner.Key.Public(), 16)); err != nil {
		t.Fatal(err)
	}
	for _, q := range []struct {
		method, path string
		status       int
		want         string
	}{
		{"GET", "/v1/status", 200, `"chain":"test-chain"`},
		{"GET", "/v1/runs", 200, `"name":"demo","phase":"WaitingForMembers"`},
		{"GET", "/v1/runs/demo", 200, `"members":0`},
		{"GET", "/v1/runs/demo/spec", 200, string(testSpec)},
		{"GET", "/v1/runs/demo/peers", 200, "[]"},
		{"GET", "/v1/runs/none", 404, `no run \"none\" on chain \"test-chain\"`},
		{"GET", "/v1/runs/none/watch", 404, `no run \"none\"`},
		{"GET", "/v1/runs/none/spec", 404, `no run \"none\"`},
		{"GET", "/v1/runs/none/peers", 404, `no run \"none\"`},
		{"GET", "/v1/runs/none/state", 404, `no run \"none\"`},
		{"GET", "/v1/runs/demo/watch?since=x", 400, `since=\"x\"`},
		{"GET", "/", 404, "/v1/status"},
		{"PUT", "/v1/txs", 404, "PUT"},
	} {
		status, b := fetch(t, q.method, r.Endpoint()+q.path, nil)
		if status != q.status || !strings.Contains(string(b), q.want) {
			t.Errorf("%s %s: got %d %s, want %d with %s", q.method, q.path, status, b, q.status, q.want)
		}
	}
	status, b := fetch(t, "GET", r.Endpoint()+"/v1/status", nil, chainHeader, "other")
	if status != http.StatusMisdirectedRequest || !strings.Contains(string(b), `this is chain \"test-chain\", wanted \"other\"`) {
		t.Errorf("wrong chain: got %d %s", status, b)
	}

	var run ledger.RunStatus
	_, b = fetch(t, "GET", r.Endpoint()+"/v1/runs/demo", nil)
	if err := json.Unmarshal(b, &run); err != nil {
		t.Fatal(err)
	}
	_, b = fetch(t, "GET", r.Endpoint()+"/v1/runs/demo/state", nil)
	if s, err := coordinator.Open(b); err != nil || s.Hash() != run.Hash || len(b) != run.Bytes {
		t.Errorf("state of %d bytes (%v), want one of hash %v and %d bytes", len(b), err, run.Hash, run.Bytes)
	}
}

// TestNothingIsBurntWhenNothingHappens watches a chain with a run that waits for members: it has no
// deadline. Ticks at which nothing is due make no blocks; and the block that proves the last change
// is the last one.
func TestNothingIsBurntWhenNothingHappens(t *testing.T) {
	r, _ := start(t, replicaDir(t, Options{}))
	c := newClient(t, r.Endpoint())
	owner := signer("owner")
	if err := submit(t, c, owner, createRun("demo", owner.Key.Public(), 16)); err != nil {
		t.Fatal(err)
	}
	first, err := c.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for end := time.After(300 * time.Millisecond); ; { // thirty times the interval between blocks
		s, err := c.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if s.Hash != first.Hash || s.Height > first.Height || !s.Current {
			t.Fatalf("block %d with hash %v became block %d with hash %v; current: %v", first.Height, first.Hash, s.Height, s.Hash, s.Current)
		}
		select {
		case <-end:
			return
		default:
		}
	}
}

// TestADeadlineMakesABlock has a run whose warmup is over after a while in which nobody sends
// anything.
func TestADeadlineMakesABlock(t *testing.T) {
	r, _ := start(t, replicaDir(t, Options{}))
	c := newClient(t, r.Endpoint())
	owner := signer("owner")
	run := createRun("demo", owner.Key.Public(), 16)
	run.Config.WarmupMs = 300
	if err := submit(t, c, owner, run); err != nil {
		t.Fatal(err)
	}
	snapshots := make(chan ledger.Snapshot, 1000)
	c.Watch(t.Context(), "demo", func(s ledger.Snapshot) { snapshots <- s })
	if err := submit(t, c, signer("ann"), join("demo")); err != nil {
		t.Fatal(err)
	}
	var began ledger.Snapshot
	for s := wait(t, snapshots); ; s = wait(t, snapshots) {
		switch phase := s.State.Phase(); {
		case phase == coordinator.Warmup:
			began = s
		case began.Height > 0: // nobody was ready
			if late := s.TimeMs - began.TimeMs; late < 300 || s.Height > began.Height+10 {
				t.Errorf("warmup of 300 ms ended after %d ms and %d blocks", late, s.Height-began.Height)
			}
			return
		}
	}
}

func TestStatesOfOtherRunsDoNotMix(t *testing.T) {
	r, _ := start(t, replicaDir(t, Options{}))
	c := newClient(t, r.Endpoint())
	owner := signer("owner")
	for _, name := range []string{"one", "two"} {
		if err := submit(t, c, owner, createRun(name, owner.Key.Public(), 16)); err != nil {
			t.Fatal(err)
		}
	}
	if err := submit(t, c, owner, join("two")); err != nil {
		t.Fatal(err)
	}
	list, err := c.Runs(t.Context())
	if err != nil || len(list) != 2 || list[0].Members != 0 || list[1].Members != 1 {
		t.Errorf("runs are %+v (%v)", list, err)
	}
}
