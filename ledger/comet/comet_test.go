package comet

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	_ "github.com/entrain-network/entrain/tests/heap"
	_ "github.com/entrain-network/entrain/tests/ramdisk"
	"github.com/entrain-network/entrain/wire"
)

const testChain = "test-chain"

// patience bounds what a test waits for something that must happen; only a failing test waits so
// long.
const patience = 30 * time.Second

func privateKey(name string) key.Private {
	return key.FromSeed(wire.Sum("entrain/test/key", []byte(name)))
}

func signer(name string) *ledger.Signer {
	return &ledger.Signer{Chain: testChain, Key: privateKey(name)}
}

var testSpec = []byte("name = \"demo\"\n")

// createRun is a run that goes into warmup with its first member.
func createRun(name string, owner key.Public, members uint32) host.CreateRun {
	return host.CreateRun{
		Limits: coordinator.Limits{Members: members, Witnesses: 32},
		Config: coordinator.Config{
			Name: name, MinMembers: 1, StartMembers: 1,
			WarmupMs: 600_000, RoundTrainMs: 10_000, RoundWitnessMs: 10_000, CooldownMs: 10_000, EpochMs: 600_000,
			TotalSteps: 100, BatchStart: 8, BatchEnd: 8, SequenceTokens: 128, MissedMax: 3,
			ModelHash: wire.Sum("entrain/test/model"), SpecHash: host.SpecHash(testSpec), Owner: owner,
		},
		Spec: testSpec,
	}
}

func join(run string) host.RunMessage {
	return host.RunMessage{Run: run, Message: coordinator.Append(nil, coordinator.Join{Speed: 1})}
}

// replicaDir makes a directory with a fresh chain of fast blocks, for a replica at any free port.
func replicaDir(t testing.TB, o Options) string {
	t.Helper()
	dir := t.TempDir()
	if o.Chain == "" {
		o.Chain = testChain
	}
	if o.API == "" {
		o.API = "127.0.0.1:0"
	}
	if o.Block == 0 {
		o.Block = 10 * time.Millisecond
	}
	if err := Init(dir, o); err != nil {
		t.Fatal(err)
	}
	return dir
}

// start runs a replica until stop is called, or the test ends.
func start(t testing.TB, dir string) (r *Replica, stop func()) {
	t.Helper()
	r, err := Open(dir, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r, run(t, r)
}

// run is start of a replica that is open.
func run(t testing.TB, r *Replica) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel(errors.New("interrupt signal received")) // as signal.NotifyContext does
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("Run: %v", err)
			}
		case <-time.After(patience):
			t.Error("Run has not ended")
		}
	}
	t.Cleanup(stop)
	return stop
}

func newClient(t testing.TB, endpoints ...string) *Client {
	t.Helper()
	c, err := NewClient(testChain, endpoints, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// submit signs, submits and waits for the outcome.
func submit(t testing.TB, l ledger.Sender, s *ledger.Signer, body host.Body) error {
	t.Helper()
	tx, err := s.Sign(time.Now(), body)
	if err != nil {
		t.Fatal(err)
	}
	return submitBytes(t, l, tx)
}

func submitBytes(t testing.TB, l ledger.Sender, tx []byte) error {
	t.Helper()
	done := make(chan error, 1)
	l.Send(t.Context(), tx, func(err error) { done <- err })
	return wait(t, done)
}

func wait[T any](t testing.TB, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		t.Fatal("waited in vain")
		panic("unreachable")
	}
}

// codeOf returns the code of a refusal, or CodeOK.
func codeOf(t testing.TB, err error) host.Code {
	t.Helper()
	var refused *host.TxError
	if err != nil && !errors.As(err, &refused) {
		t.Fatalf("got error %v, want a *host.TxError", err)
	}
	return host.CodeOf(err)
}

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		runChild(dir)
		return
	}
	// Tests that run in parallel wait for blocks more than they compute.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	code := m.Run()
	if left := ownGoroutines(); code == 0 && left != "" {
		fmt.Fprintf(os.Stderr, "goroutines of ours are left:\n%s", left)
		code = 1
	}
	os.Exit(code)
}

// ownGoroutines returns the stacks of goroutines that this package started or is in, after they had
// time to end. CometBFT leaves some of its own behind (its log's SIGHUP listener, sleeping routines
// of peers), which are not counted.
func ownGoroutines() string {
	deadline := time.Now().Add(patience)
	for {
		var own []string
		buf := make([]byte, 4<<20)
		stacks := strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")
		for _, s := range stacks[1:] { // the first is this one
			if strings.Contains(s, "entrain-network/entrain") {
				own = append(own, s)
			}
		}
		if len(own) == 0 || time.Now().After(deadline) {
			return strings.Join(own, "\n\n")
		}
		runtime.Gosched()
	}
}
