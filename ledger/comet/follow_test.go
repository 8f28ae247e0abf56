package comet

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/entrain-network/entrain/internal/freeport"
	"github.com/entrain-network/entrain/ledger"
)

// freePort returns the address of a port that nobody uses.
func freePort(t testing.TB) string {
	t.Helper()
	return fmt.Sprint("127.0.0.1:", freeport.First(t, 1))
}

// TestAFollowerServesWhenTheValidatorIsGone has a second replica without a vote. What it has caught
// up with stays there to read, to a client that was with the validator before.
func TestAFollowerServesWhenTheValidatorIsGone(t *testing.T) {
	t.Parallel()
	dir := replicaDir(t, Options{Peering: freePort(t)})
	validator, stop := start(t, dir)
	genesis, err := os.ReadFile(filepath.Join(dir, genesisFile))
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	o := Options{Chain: testChain, Genesis: genesis, Peers: []string{validator.PeerAddress()}, API: "127.0.0.1:0"}
	if err := Init(home, o); err != nil {
		t.Fatal(err)
	}
	follower, _ := start(t, home)

	c := newClient(t, validator.Endpoint(), follower.Endpoint())
	owner := signer("owner")
	if err := submit(t, c, owner, createRun("demo", owner.Key.Public(), 16)); err != nil {
		t.Fatal(err)
	}
	// A transaction given to the follower finds its way to the validator, and its outcome back.
	direct := newClient(t, follower.Endpoint())
	if err := submit(t, direct, signer("ann"), join("demo")); err != nil {
		t.Fatal(err)
	}
	stop()
	snapshots := make(chan ledger.Snapshot, 100)
	c.Watch(t.Context(), "demo", func(s ledger.Snapshot) { snapshots <- s })
	if s := wait(t, snapshots); s.State.Count() != 1 {
		t.Errorf("the follower knows %d members, want 1", s.State.Count())
	}
}
