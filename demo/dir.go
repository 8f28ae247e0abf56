package demo

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sort"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/atomicfile/dirlock"
	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/codec/all"
	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/internal/opticks"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/key/keyfile"
	"github.com/entrain-network/entrain/ledger/comet"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/tokenizer"
)

// A directory is where a demo keeps everything:
//
//	demo.json          the settings, and where the servers listen; written last at set-up
//	run.toml           the run's specification
//	data/              the data set
//	chain/             the replica, or solana.sqlite, the accounts of the cluster
//	owner.key          the key that creates the run
//	client-1/          a client's key, state and checkpoints
//	validator-1/       a validator's key and state
//	s3/                the buckets, in a run by buckets
//	logs/              standard error of the processes
//	checkpoint/        the trained model, once there is one
//	summary.json       the summary, likewise
type directory struct {
	path    string
	kept    bool // Options.Dir; else everything but the checkpoint is removed in the end
	made    bool // by this Run
	set     saved
	spec    spec.Spec
	text    []byte   // of the specification
	summary *Summary // of a run that has finished
	unlock  func()
}

// saved is the content of demo.json.
type saved struct {
	Settings
	API string `json:"api"`          // where the chain serves clients
	S3  string `json:"s3,omitempty"` // where the demo's own server serves buckets, if it has one
}

const (
	settingsFile  = "demo.json"
	summaryFile   = "summary.json"
	checkpointDir = "checkpoint"
	serverDir     = "s3"
	bucketWrite   = "bucket.write"
	bucketRead    = "bucket.read"

	// fileBytesMax bounds the demo's own small files.
	fileBytesMax = 1 << 20
	// heldOutPermille of the text are never trained on.
	heldOutPermille = 50
)

func clientName(i int) string    { return fmt.Sprintf("client-%d", i+1) }
func validatorName(i int) string { return fmt.Sprintf("validator-%d", i+1) }

func (d *directory) file(name ...string) string {
	return filepath.Join(append([]string{d.path}, name...)...)
}

// Kept returns the settings of the demo that a directory keeps, and false if it keeps none.
func Kept(dir string) (Settings, bool, error) {
	s, kept, err := readSaved(dir)
	return s.Settings, kept, err
}

// readSaved reads demo.json. It returns false if there is none.
func readSaved(dir string) (s saved, kept bool, err error) {
	b, err := atomicfile.ReadBounded(filepath.Join(dir, settingsFile), fileBytesMax)
	if errors.Is(err, fs.ErrNotExist) {
		return s, false, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	if err != nil {
		return s, false, fmt.Errorf("demo in %q: %s: %w; remove the directory to start over", dir, settingsFile, err)
	}
	s.Exchange = cmp.Or(s.Exchange, Peers)
	return s, true, nil
}

// openDirectory opens the directory of an earlier demo, or sets up a new one.
func openDirectory(ctx context.Context, o Options) (d *directory, err error) {
	d = &directory{path: o.Dir, kept: o.Dir != ""}
	if !d.kept {
		if d.path, err = os.MkdirTemp("", "entrain-demo-"); err != nil {
			return nil, fmt.Errorf("directory for the demo: %w", err)
		}
	}
	if d.path, err = filepath.Abs(d.path); err != nil {
		return nil, err
	}
	if err := ours(d.path); err != nil {
		return nil, err
	}
	if d.unlock, err = dirlock.Lock(d.path, "directory of the demo"); err != nil {
		return nil, err
	}
	var kept bool
	switch d.set, kept, err = readSaved(d.path); {
	case err != nil:
	case kept:
		err = d.resume()
	default:
		d.made = true
		err = d.setUp(ctx, o)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("demo in %q: %w", d.path, err), d.close())
	}
	return d, nil
}

// ours returns an error if a directory has files and no demo locked it before.
func ours(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == "lock" }) {
		return fmt.Errorf("directory %q has other files; choose an empty or a new one", dir)
	}
	return nil
}

// close unlocks the directory. If it is not kept, close removes everything but a checkpoint.
func (d *directory) close() error {
	d.unlock()
	if d.kept {
		return nil
	}
	errs := []error{d.sweep()}
	entries, err := os.ReadDir(d.path)
	errs = append(errs, err)
	for _, e := range entries {
		if e.Name() != checkpointDir {
			errs = append(errs, os.RemoveAll(d.file(e.Name())))
		}
	}
	if _, err := os.Stat(d.file(checkpointDir)); errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, os.Remove(d.path))
	}
	return errors.Join(errs...)
}

// setUp prepares the data, the specification, the keys, the buckets and the chain.
func (d *directory) setUp(ctx context.Context, o Options) error {
	if err := o.Check(); err != nil {
		return err
	}
	d.set.Settings = o.Settings
	text, err := o.Text, error(nil)
	if text == "" {
		if text, err = opticks.Write(d.path); err != nil {
			return err
		}
	}
	m, err := data.Prepare(ctx, d.file("data"), []string{text}, data.PrepareOptions{
		Name: data.PlainName(filepath.Base(text)), Tokenizer: tokenizer.Bytes{}, HeldOutPermille: heldOutPermille,
	})
	if err != nil {
		return err
	}
	s := o.Specification()
	if m.HeldOutTokens <= uint64(s.Data.Sequence) {
		return fmt.Errorf("text %q is too short: only %d bytes would be held out; want at least 100 kB", o.Text, m.HeldOutTokens)
	}
	s.Data.Manifest, s.Data.Location = m.Hash().String(), d.file("data")
	if d.text, err = s.Append([]byte("# The run of an entrain demo. Participants read it from the chain.\n")); err != nil {
		return err
	}
	// Parse also fills in what follows from the preset.
	if d.spec, err = spec.Parse(d.text, all.Kinds()); err != nil {
		return fmt.Errorf("the demo's specification: %w", err)
	}
	if d.set.API, err = freeAddress(); err != nil {
		return err
	}
	// Left over from a set-up that was interrupted; without demo.json nothing depends on it.
	if err := os.RemoveAll(d.file("chain")); err != nil {
		return err
	}
	accounts, err := d.makeKeys()
	if err != nil {
		return err
	}
	if o.buckets() {
		if err := d.setUpBuckets(o.S3); err != nil {
			return err
		}
	}
	if o.Chain == "" {
		if err := comet.Init(d.file("chain"), comet.Options{Chain: runName, API: d.set.API, Block: o.blockTime(), Accounts: accounts}); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(d.file("logs"), 0o755); err != nil {
		return err
	}
	if err := atomicfile.WriteBytes(d.file("run.toml"), 0o644, d.text); err != nil {
		return err
	}
	return d.writeJSON(settingsFile, d.set)
}

// makeKeys makes all keys and returns the tokens of each: clients and validators have their stake,
// the owner has the rest.
func (d *directory) makeKeys() ([]host.Allocation, error) {
	owner, err := ensureKey(d.file("owner.key"))
	accounts := []host.Allocation{{Key: owner.Public(), Amount: supply}}
	for _, name := range d.participants() {
		if err != nil {
			return nil, err
		}
		var k key.Private
		k, err = ensureKey(d.file(name, "key"))
		accounts = append(accounts, host.Allocation{Key: k.Public(), Amount: stake})
	}
	sort.Slice(accounts, func(i, j int) bool { return accounts[i].Key.Compare(accounts[j].Key) < 0 })
	return accounts, err
}

// participants returns the names of all clients and validators.
func (d *directory) participants() (names []string) {
	for i := range d.set.Clients {
		names = append(names, clientName(i))
	}
	for i := range d.set.Validators {
		names = append(names, validatorName(i))
	}
	return names
}

// ensureKey loads a key, which it makes if there is none.
func ensureKey(path string) (key.Private, error) {
	k, _, err := keyfile.Ensure(path, false, func(string) ([]byte, error) { return nil, keyfile.ErrPassphrase })
	return k, err
}

// setUpBuckets prepares the exchange: the address of the server to be started, or each client's
// place in a bucket elsewhere.
func (d *directory) setUpBuckets(at *bucket.Location) (err error) {
	if err := os.MkdirAll(d.file(serverDir), 0o700); err != nil {
		return err
	}
	if at == nil {
		d.set.S3, err = freeAddress()
		return err
	}
	for i := range d.set.Clients {
		for _, name := range []string{bucketWrite, bucketRead} {
			line := []byte(at.Under(clientName(i)).URL() + "\n")
			if err := atomicfile.WriteBytes(d.file(clientName(i), name), 0o600, line); err != nil {
				return err
			}
		}
	}
	return nil
}

// freeAddress returns a free port of this machine, so that demos do not disturb each other.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	addr := l.Addr().String()
	return addr, l.Close()
}

// resume reads what an earlier demo left.
func (d *directory) resume() (err error) {
	if d.text, err = atomicfile.ReadBounded(d.file("run.toml"), fileBytesMax); err != nil {
		return err
	}
	if d.spec, err = spec.Parse(d.text, all.Kinds()); err != nil {
		return fmt.Errorf("run.toml: %w", err)
	}
	b, err := atomicfile.ReadBounded(d.file(summaryFile), fileBytesMax)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	d.summary = new(Summary)
	if err := json.Unmarshal(b, d.summary); err != nil {
		return fmt.Errorf("%s: %w; remove the directory to start over", summaryFile, err)
	}
	return nil
}

func (d *directory) writeJSON(name string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic("demo: a file has no JSON: " + err.Error())
	}
	return atomicfile.WriteBytes(d.file(name), 0o644, append(b, '\n'))
}
