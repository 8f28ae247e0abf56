package coordinator_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/entrain-network/entrain/chain/solana"
	"github.com/entrain-network/entrain/chain/solana/svm"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	ledger "github.com/entrain-network/entrain/ledger/solana"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/trace/referee"
	"github.com/entrain-network/entrain/wire"
)

// court is a cluster with a run in which a dispute waits for evidence that is judged in parts.
type court struct {
	t        *testing.T
	url      string
	program  solana.Program
	run      solana.Address
	argued   argued
	dispute  dispute.Dispute
	evidence coordinator.Evidence
}

// rpc asks the cluster.
func (c court) rpc(answer any, method string, params ...any) {
	c.t.Helper()
	b, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		c.t.Fatal(err)
	}
	res, err := http.Post(c.url, "application/json", bytes.NewReader(b))
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	r := struct{ Result, Error any }{Result: answer}
	if err := json.NewDecoder(res.Body).Decode(&r); err != nil || r.Error != nil {
		c.t.Fatal(method, r.Error, err)
	}
}

func (c court) put(at, owner solana.Address, parts ...[]byte) {
	c.rpc(nil, "testPut", at, owner, uint64(1)<<40, append([]byte{}, slices.Concat(parts...)...))
}

// begin puts the state with the open dispute on the cluster.
func (c court) begin() {
	c.put(c.run, solana.Address(c.program), coordinator.AtSlice(c.argued.before, c.dispute), make([]byte, solana.TailBytes))
}

func (c court) state() (s coordinator.State) {
	c.t.Helper()
	var r struct{ Value []struct{ Data []string } }
	c.rpc(&r, "getMultipleAccounts", []any{c.run}, map[string]any{"encoding": "base64"})
	b, err := base64.StdEncoding.DecodeString(r.Value[0].Data[0])
	if err == nil {
		s, err = coordinator.Open(solana.State(b))
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return s
}

// purse returns the accuser's lamports, and how many buffers are its.
func (c court) purse() (lamports uint64, buffers int) {
	c.t.Helper()
	own := c.argued.accuser.Address()
	var r struct{ Value []struct{ Lamports uint64 } }
	c.rpc(&r, "getMultipleAccounts", []any{own}, map[string]any{"encoding": "base64"})
	var found []any
	c.rpc(&found, "getProgramAccounts", solana.Address(c.program), map[string]any{"encoding": "base64", "filters": []any{
		map[string]any{"memcmp": map[string]any{"offset": 4, "bytes": own}}}})
	return r.Value[0].Lamports, len(found)
}

// killer sends some transactions, and then ends the process's work.
type killer struct {
	left atomic.Int64
	kill context.CancelFunc
}

func (k *killer) RoundTrip(r *http.Request) (*http.Response, error) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if r.Body = io.NopCloser(bytes.NewReader(b)); bytes.Contains(b, []byte("sendTransaction")) && k.left.Add(-1) < 0 {
		k.kill()
		return nil, errors.New("killed")
	}
	return http.DefaultTransport.RoundTrip(r)
}

// process submits a body to the run as a new process of the accuser's, which ends after so many
// transactions. It returns how many it sent.
func (c court) process(body host.Body, transactions int64) (sent int64, err error) {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	defer cancel()
	k := &killer{kill: cancel}
	k.left.Store(transactions)
	client, err := ledger.NewClient(ctx, ledger.Options{Program: c.program, Endpoints: []string{c.url}, Poll: 10 * time.Millisecond, HTTP: &http.Client{Transport: k}})
	if err != nil {
		c.t.Fatal(err)
	}
	defer client.Close()
	done := make(chan error, 1)
	client.As(coordinator.PrivateOf(c.state().Member(c.dispute.Accuser).Key)).Submit(ctx, body, func(err error) { done <- err })
	select {
	case err = <-done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	return transactions - max(0, k.left.Load()), err
}

func newCourt(t *testing.T) court {
	c := court{t: t, program: solana.Program{1}, run: solana.Address{2}, argued: argue(t, llama.Exact, 24)}
	c.url = svm.Serve(t, c.program, 5*time.Millisecond, 150)
	s, err := coordinator.Open(c.argued.before)
	if err != nil {
		t.Fatal(err)
	}
	config, own := s.Config(), solana.Address(c.program)
	name, err := c.program.Name(config.Name)
	if err != nil {
		t.Fatal(err)
	}
	spec := make([]byte, 32)
	c.put(name, own, []byte(solana.NameMagic), c.run[:], spec)
	rules := c.program.BufferAt(solana.Address(config.Owner), "rules-"+hex.EncodeToString(config.SpecHash[:])[:26])
	c.put(rules, own, []byte(solana.RulesMagic), c.run[:], c.argued.rules)
	c.put(c.argued.accuser.Address(), solana.SystemProgram)

	// A slice that takes more units than a transaction has.
	d := c.argued.dispute
	for d.Op = range c.argued.program.Len() {
		o := c.argued.program.Op(d.Op)
		d.Tile = o.Tiles() - 1
		d.Slice = o.Slices(d.Tile) - 1
		if strings.Contains(o.Name(), "scores") {
			break
		}
	}
	b, err := c.argued.trace.Evidence(t.Context(), d.Op, d.Tile, d.Slice)
	if err != nil {
		t.Fatal(err)
	}
	d.DeadlineMs = uint64(time.Now().Add(time.Hour).UnixMilli())
	d.Traces[dispute.Accuser] = c.argued.trace.Root()
	truth, err := referee.New(c.argued.rules, exact.NewWorker(exact.Kernels()[0]), nil).Judge(d.Case(), d.Op, d.Tile, d.Slice, c.argued.trace.Root(), b)
	if err != nil {
		t.Fatal(err)
	}
	d.Nodes = [2]wire.Hash{dispute.Accused: {1}, dispute.Accuser: truth}
	c.dispute, c.evidence = d, coordinator.Evidence{Dispute: d.ID, Bytes: b}
	return c
}

// TestKilledEvidenceOnSolana kills an accuser's process at each stage of its evidence. The next one
// continues what the first has written, wins, and has all rent back.
func TestKilledEvidenceOnSolana(t *testing.T) {
	c := newCourt(t)
	c.begin()
	evidence := host.ToRun(c.state().Config().Name, c.evidence)
	whole, err := c.process(evidence, 1<<40)
	if s := c.state(); err != nil || s.ConvictionsTotal() != 1 {
		t.Fatalf("without a kill: %v, %d convictions", err, s.ConvictionsTotal())
	}
	over := bytes.Clone(c.state().Bytes())
	parts := int64(len(c.evidence.Bytes)/solana.WritePart) + 1
	t.Logf("%d transactions, of which %d write the evidence", whole, parts)
	if parts < 4 || whole < parts+3 {
		t.Fatal("the evidence is too short for this test")
	}
	for _, at := range []int64{1, parts / 2, parts, parts + 1, whole - 1} {
		c.begin()
		before, _ := c.purse()
		if _, err := c.process(evidence, at); err == nil {
			t.Fatalf("killed after %d transactions: it ends", at)
		}
		if _, left := c.purse(); left == 0 {
			t.Errorf("killed after %d transactions: no account is left", at)
		}
		again, err := c.process(evidence, 1<<40)
		if s := c.state(); err != nil || s.ConvictionsTotal() != 1 {
			t.Errorf("killed after %d transactions: %v, %d convictions", at, err, s.ConvictionsTotal())
		}
		if again > whole-at+2 { // the last may not have come, and one finds out that all is judged
			t.Errorf("killed after %d transactions of %d, the next process sent %d", at, whole, again)
		}
		c.refunded(before, at)
	}

	// The dispute ends without the process. Whatever the key does next returns the rent; but not while the evidence is still due.
	other := host.Transfer{} // refused, as the client has no token
	for _, at := range []int64{parts / 2, parts + 2} {
		c.begin()
		before, _ := c.purse()
		c.process(evidence, at)
		_, left := c.purse()
		if c.locked() < solana.Rent(uint64(len(c.evidence.Bytes))) {
			t.Errorf("an account shows %d lamports of cut-off evidence", c.locked())
		}
		c.process(other, 1<<40)
		if _, still := c.purse(); still != left || left == 0 {
			t.Errorf("of %d accounts of a dispute that goes on, %d are left", left, still)
		}
		c.put(c.run, solana.Address(c.program), over, make([]byte, solana.TailBytes))
		c.process(other, 1<<40)
		c.refunded(before, at)
	}
}

// locked returns what a client shows of the accuser's rent.
func (c court) locked() uint64 {
	c.t.Helper()
	client, err := ledger.NewClient(c.t.Context(), ledger.Options{Program: c.program, Endpoints: []string{c.url}})
	if err != nil {
		c.t.Fatal(err)
	}
	defer client.Close()
	a, err := client.Account(c.t.Context(), key.Public(c.argued.accuser.Address()))
	if err != nil {
		c.t.Fatal(err)
	}
	return a.Locked
}

// refunded checks that the accuser has its rent back, and paid no more than fees.
func (c court) refunded(before uint64, at int64) {
	c.t.Helper()
	after, left := c.purse()
	if locked := c.locked(); left != 0 || locked != 0 || before-after > 200*solana.SignatureFee {
		c.t.Errorf("killed after %d transactions: %d accounts are left, and the key has %d lamports fewer", at, left, before-after)
	}
}
