package comet

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	dbm "github.com/cometbft/cometbft-db"
	cmtstore "github.com/cometbft/cometbft/store"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/ledger/comet/statefile"
)

// contains checks that err tells all of parts.
func contains(t *testing.T, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("got error %v, want one with %q", err, part)
		}
	}
}

func TestPortInUseIsAnError(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dir := replicaDir(t, Options{API: l.Addr().String()})
	_, err = Open(dir, nil, nil)
	if !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("got %v, want address in use", err)
	}
	contains(t, err, l.Addr().String(), "chain.json")
}

func TestTwoReplicasInOneDirectoryAreAnError(t *testing.T) {
	dir := replicaDir(t, Options{})
	r, _ := start(t, dir)
	owner := signer("owner")
	if err := submit(t, newClient(t, r.Endpoint()), owner, createRun("demo", owner.Key.Public(), 4)); err != nil {
		t.Fatal(err) // so the first one runs for sure
	}
	second, err := Open(dir, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	contains(t, second.Run(t.Context()), "does another process run this chain")
}

// CometBFT sleeps until a genesis in the future, and neither answers nor ends meanwhile.
func TestAReplicaWhoseClockIsBehindItsChainSaysSo(t *testing.T) {
	dir := replicaDir(t, Options{})
	path := filepath.Join(dir, genesisFile)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	later := `"genesis_time": "` + time.Now().Add(time.Hour).UTC().Format(time.RFC3339) + `"`
	b = regexp.MustCompile(`"genesis_time": "[^"]*"`).ReplaceAll(b, []byte(later))
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Open(dir, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	contains(t, r.Run(t.Context()), "ahead of this machine's clock", "timedatectl", "start again in 59m", "entrain host --from")
}

func TestInitKeepsWhatIsThere(t *testing.T) {
	dir := replicaDir(t, Options{})
	before, err := os.ReadFile(filepath.Join(dir, validatorFile))
	if err != nil {
		t.Fatal(err)
	}
	contains(t, Init(dir, Options{Chain: "other"}), dir, "there is one already")
	after, err := os.ReadFile(filepath.Join(dir, validatorFile))
	if err != nil || string(after) != string(before) {
		t.Errorf("the validator's key has changed (%v)", err)
	}
	_, err = Open(t.TempDir(), nil, nil)
	contains(t, err, "no chain in")
}

func TestInitRefusesBadOptions(t *testing.T) {
	for want, o := range map[string]Options{
		"chain id \"Bad!\"": {Chain: "Bad!"},
		"api: \"nowhere\"":  {Chain: "c", API: "nowhere"},
		"peers: \"x\"":      {Chain: "c", Peers: []string{"x"}},
		"snapshot_blocks":   {Chain: "c", SnapshotBlocks: 10, KeepBlocks: 19},
		"genesis":           {Genesis: []byte("{}")},
	} {
		dir := filepath.Join(t.TempDir(), "home")
		contains(t, Init(dir, o), want)
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: the directory was made", want)
		}
	}
}

func TestDamagedFilesAreErrorsThatNameThem(t *testing.T) {
	for _, c := range []struct{ file, content string }{
		{genesisFile, "{}"},
		{settingsFile, `{"api":"127.0.0.1:0","no_such_setting":1}`},
		{settingsFile, `{"api":"127.0.0.1:0"}`},
		{validatorFile, "not JSON"},
		{nodeFile, "{}"},
		{votesFile, ""},
	} {
		dir := replicaDir(t, Options{})
		if err := os.WriteFile(filepath.Join(dir, c.file), []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Open(dir, nil, nil)
		if c.file == nodeFile {
			contains(t, err, keysDir)
			continue
		}
		contains(t, err, filepath.Join(dir, c.file))
	}
}

// populate makes a chain with a run and returns its directory after the replica has stopped, with
// two saved states.
func populate(t *testing.T) string {
	t.Helper()
	dir := replicaDir(t, Options{SnapshotBlocks: 2})
	r, stop := start(t, dir)
	c := newClient(t, r.Endpoint())
	owner := signer("owner")
	if err := submit(t, c, owner, createRun("demo", owner.Key.Public(), 16)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ann", "bob", "cat"} { // each takes a block
		if err := submit(t, c, signer(name), join("demo")); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	return dir
}

func TestCorruptedStateIsAnErrorAndCanBeReplaced(t *testing.T) {
	dir := populate(t)
	path := filepath.Join(dir, stateDir, statefile.File)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for what, b := range map[string][]byte{
		"corrupted":                  append([]byte(nil), good...),
		"not a file of ledger state": []byte("something else"),
		"checksum":                   good[:len(good)-5],
	} {
		b[len(b)/2] ^= 1
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Open(dir, nil, nil)
		contains(t, err, path, what, "move the file away")
	}

	// The advice is good: the older state and the blocks since make up for it.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	r, _ := start(t, dir)
	snapshots := make(chan ledger.Snapshot, 100)
	newClient(t, r.Endpoint()).Watch(t.Context(), "demo", func(s ledger.Snapshot) { snapshots <- s })
	if s := wait(t, snapshots); s.State.Count() != 3 {
		t.Errorf("%d members after going on from the older state, want 3", s.State.Count())
	}
}

func TestStateWithoutItsBlocksIsAnError(t *testing.T) {
	dir := populate(t)
	if err := os.RemoveAll(filepath.Join(dir, dataDir, "blockstore.db")); err != nil {
		t.Fatal(err)
	}
	r, err := Open(dir, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	contains(t, r.Run(t.Context()), "start chain", dir)
}

// TestReplicaHaltsWhenItCannotWrite stands in for a full disk, once for each of the two writers: a
// directory in the place of the file fails for root too.
func TestReplicaHaltsWhenItCannotWrite(t *testing.T) {
	for name, c := range map[string]struct{ obstacle, want string }{
		"state":         {filepath.Join(stateDir, statefile.File+".new"), "save ledger state"},
		"CometBFT vote": {votesFile, "engine has halted"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := populate(t)
			obstacle := filepath.Join(dir, c.obstacle)
			saved, _ := os.ReadFile(obstacle) // the state's temporary file is not there
			r, err := Open(dir, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			os.Remove(obstacle)
			if err := os.MkdirAll(filepath.Join(obstacle, "full"), 0o700); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() { ended <- r.Run(ctx) }()
			eve := signer("eve")
			tx, err := eve.Sign(time.Now(), join("demo")) // without, there would be nothing to write
			if err != nil {
				t.Fatal(err)
			}
			newClient(t, r.Endpoint()).Send(ctx, tx, func(error) {})
			contains(t, wait(t, ended), c.want, dir)

			// With the cause removed it goes on.
			if err := os.RemoveAll(obstacle); err != nil {
				t.Fatal(err)
			}
			if saved != nil {
				if err := os.WriteFile(obstacle, saved, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			r, _ = start(t, dir)
			if err := submit(t, newClient(t, r.Endpoint()), signer("dan"), join("demo")); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestOldBlocksAreDeleted(t *testing.T) {
	t.Parallel()
	dir := replicaDir(t, Options{SnapshotBlocks: 5, KeepBlocks: 20})
	r, stop := start(t, dir)
	snapshots := make(chan ledger.Snapshot, 100)
	c := newClient(t, r.Endpoint())
	owner := signer("owner")
	if err := submit(t, c, owner, createRun("demo", owner.Key.Public(), 4)); err != nil {
		t.Fatal(err)
	}
	height := uint64(0)
	for i := 0; height < 40; i++ { // blocks pass while others join and leave
		if err := submit(t, c, owner, host.Announce{Run: "demo", Addrs: []string{"/dns/a", "/dns/b"}[i%2 : i%2+1]}); err != nil {
			t.Fatal(err)
		}
		s, err := c.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		height = s.Height
	}
	stop()

	db, err := dbm.NewGoLevelDB("blockstore", filepath.Join(dir, dataDir))
	if err != nil {
		t.Fatal(err)
	}
	blocks := cmtstore.NewBlockStore(db)
	base, last := blocks.Base(), blocks.Height()
	if err := blocks.Close(); err != nil {
		t.Fatal(err)
	}
	if base < 10 || last-base > 30 {
		t.Errorf("blocks %d to %d are kept, want the last 20 to 30", base, last)
	}
	r, _ = start(t, dir)
	newClient(t, r.Endpoint()).Watch(t.Context(), "demo", func(s ledger.Snapshot) { snapshots <- s })
	wait(t, snapshots)
}
