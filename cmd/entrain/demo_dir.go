package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/atomicfile/dirlock"
	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger/comet"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/tokenizer"
)

// A demo's directory:
//
//	demo.json          what was asked for, and where the chain listens; written last when the directory is set up
//	run.toml           the run's specification
//	data/              the data set
//	chain/             the replica
//	owner.key          who creates the run
//	client-1/          a client's key, state and checkpoints
//	validator-1/       a validator's key and state
//	s3/                the buckets, in a run by buckets
//	logs/              what the processes had to say
//	checkpoint/        the trained model, once there is one
//	summary.json       likewise
type demoDir struct {
	path    string
	kept    bool // by --keep; else everything but the checkpoint is removed in the end
	made    bool // now: nothing of value is lost with it
	set     demoSettings
	spec    spec.Spec
	text    []byte // of the specification
	summary *summary
	unlock  func()
}

// demoSettings is what demo.json holds.
type demoSettings struct {
	Clients int    `json:"clients"`
	Rounds  uint32 `json:"rounds"`
	Text    string `json:"text"`
	Preset  string `json:"preset"`
	// Adversary is the kind of cheat that the last clients are, "" if all are honest, and Verification the percentage of results that
	// are recomputed.
	Adversary    string `json:"adversary,omitempty"`
	Verification uint8  `json:"verification_percent"`
	API          string `json:"api"` // where the chain serves clients
	// Exchange is how results travel; "" means between peers. S3 is where the demo's own server serves buckets, if it has one.
	Exchange   string        `json:"exchange,omitempty"`
	S3         string        `json:"s3,omitempty"`
	Validators int           `json:"validators,omitempty"`
	Window     time.Duration `json:"window_ns,omitempty"`
}

func (d *demoDir) file(name ...string) string {
	return filepath.Join(append([]string{d.path}, name...)...)
}

// demoFileBytesMax bounds the demo's own small files.
const demoFileBytesMax = 1 << 20

// openDemoDir opens the directory of an earlier demo, or sets up a new one.
func openDemoDir(ctx context.Context, c console, o demoOptions, given func(flag string) bool) (d *demoDir, err error) {
	d = &demoDir{path: o.keep, kept: o.keep != ""}
	if !d.kept {
		if d.path, err = os.MkdirTemp("", "entrain-demo-"); err != nil {
			return nil, fmt.Errorf("directory for the demo: %w", err)
		}
	}
	if d.path, err = filepath.Abs(d.path); err != nil {
		return nil, err
	}
	if d.unlock, err = dirlock.Lock(d.path, "directory of the demo"); err != nil {
		return nil, err
	}
	b, err := atomicfile.ReadBounded(d.file("demo.json"), demoFileBytesMax)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.made = true
		err = d.setUp(ctx, c, o)
	case err == nil:
		err = d.resume(c, b, o, given)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("demo in %q: %w", d.path, err), d.close())
	}
	return d, nil
}

// close lets go of the directory; what was not to be kept is removed, but for a checkpoint.
func (d *demoDir) close() error {
	d.unlock()
	if d.kept {
		return nil
	}
	swept := d.sweep()
	entries, err := os.ReadDir(d.path)
	errs := []error{swept, err}
	for _, e := range entries {
		if e.Name() != checkpointName {
			errs = append(errs, os.RemoveAll(d.file(e.Name())))
		}
	}
	if _, err := os.Stat(d.file(checkpointName)); errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, os.Remove(d.path))
	}
	return errors.Join(errs...)
}

const checkpointName = "checkpoint"

// setUp prepares the data, the specification and the chain.
func (d *demoDir) setUp(ctx context.Context, c console, o demoOptions) error {
	d.set = demoSettings{Clients: o.clients, Rounds: o.rounds, Text: o.text, Preset: o.preset, Adversary: o.adversary, Verification: o.verification,
		Exchange: o.exchange, Validators: o.validators, Window: o.window}
	m, err := data.Prepare(ctx, d.file("data"), []string{o.text}, data.PrepareOptions{
		Name: data.PlainName(filepath.Base(o.text)), Tokenizer: tokenizer.Bytes{}, HeldOutPermille: heldOutPermille,
	})
	if err != nil {
		return err
	}
	if m.HeldOutTokens <= uint64(demoSpec(o).Data.Sequence) {
		return fmt.Errorf("text %q is too short: only %d bytes would be held out; some 100 kB are the least", o.text, m.HeldOutTokens)
	}
	s := demoSpec(o)
	s.Data.Manifest, s.Data.Location = m.Hash().String(), d.file("data")
	text, err := s.Append([]byte("# The run of an entrain demo. Participants read it from the chain.\n"))
	if err != nil {
		return err
	}
	if d.spec, err = spec.Parse(text); err != nil { // also fills in what follows from the preset
		return fmt.Errorf("the demo's specification: %w", err)
	}
	d.text = text
	if d.set.API, err = freeAddress(); err != nil {
		return err
	}
	// Left over from a set-up that was interrupted; without demo.json nothing depends on it.
	if err := os.RemoveAll(d.file("chain")); err != nil {
		return err
	}
	accounts, err := d.makeKeys(c)
	if err != nil {
		return err
	}
	if err := d.setUpBuckets(ctx, c, o); err != nil {
		return err
	}
	if err := comet.Init(d.file("chain"), comet.Options{Chain: "demo", API: d.set.API, Block: o.block(), Accounts: accounts}); err != nil {
		return err
	}
	if err := os.MkdirAll(d.file("logs"), 0o755); err != nil {
		return err
	}
	if err := atomicfile.WriteBytes(d.file("run.toml"), 0o644, text); err != nil {
		return err
	}
	return d.writeJSON("demo.json", d.set)
}

// makeKeys makes the owner's key and those of the clients, and says what tokens they have: a client its stake, the owner the rest.
func (d *demoDir) makeKeys(c console) ([]host.Allocation, error) {
	owner, _, err := c.ensureKey(d.file("owner.key"))
	if err != nil {
		return nil, err
	}
	accounts := []host.Allocation{{Key: owner.Public(), Amount: demoTokens}}
	for i := range d.set.Clients {
		k, err := d.clientKey(c, i)
		if err != nil {
			return nil, err
		}
		accounts = append(accounts, host.Allocation{Key: k, Amount: demoStake})
	}
	validators, err := d.validatorAccounts(c)
	if err != nil {
		return nil, err
	}
	accounts = append(accounts, validators...)
	slices.SortFunc(accounts, func(a, b host.Allocation) int { return a.Key.Compare(b.Key) })
	return accounts, nil
}

// clientKey is the public key of a client, which is made if need be.
func (d *demoDir) clientKey(c console, i int) (key.Public, error) {
	if err := os.MkdirAll(d.file(clientName(i)), 0o755); err != nil {
		return key.Public{}, err
	}
	k, _, err := c.ensureKey(d.file(clientName(i), "key"))
	return k.Public(), err
}

const (
	// heldOutPermille of the text are never trained on.
	heldOutPermille = 50
	// demoBlock is the time between blocks: a round takes several, one after the other.
	demoBlock = 10_000_000 // ns
	// demoSlowBlock is that of a run whose windows are counted in blocks, and of one with a cheat, whose rounds leave time for finding it out.
	demoSlowBlock = 50_000_000 // ns
)

// block is the time between blocks.
func (o demoOptions) block() time.Duration {
	if o.buckets() || o.adversary != "" {
		return demoSlowBlock
	}
	return demoBlock
}

// freeAddress finds a free port of this machine for the chain, so that several demos do not get in each other's way.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	addr := l.Addr().String()
	return addr, l.Close()
}

// resume reads what an earlier demo left.
func (d *demoDir) resume(c console, settings []byte, o demoOptions, given func(flag string) bool) error {
	if err := json.Unmarshal(settings, &d.set); err != nil {
		return fmt.Errorf("demo.json: %w; remove the directory to begin anew", err)
	}
	for _, f := range []struct {
		flag  string
		other bool
		is    any
	}{
		{"clients", o.clients != d.set.Clients, d.set.Clients},
		{"rounds", o.rounds != d.set.Rounds, d.set.Rounds},
		{"data", o.text != d.set.Text, d.set.Text},
		{"preset", o.preset != d.set.Preset, d.set.Preset},
		{"adversary", o.adversary != d.set.Adversary, d.set.Adversary},
		{"verification", o.verification != d.set.Verification, d.set.Verification},
		{"exchange", o.exchange != d.set.Exchange, d.set.Exchange},
		{"validators", o.validators != d.set.Validators, d.set.Validators},
		{"window", o.window != d.set.Window, d.set.Window},
	} {
		if given(f.flag) && f.other {
			return fmt.Errorf("--%s differs from that of the run kept here, %v; leave it out to go on with that run, or choose another directory", f.flag, f.is)
		}
	}
	var err error
	if d.text, err = atomicfile.ReadBounded(d.file("run.toml"), demoFileBytesMax); err != nil {
		return err
	}
	if d.spec, err = spec.Parse(d.text); err != nil {
		return fmt.Errorf("run.toml: %w", err)
	}
	b, err := atomicfile.ReadBounded(d.file("summary.json"), demoFileBytesMax)
	if errors.Is(err, fs.ErrNotExist) {
		c.say("going on with the run kept in %s", d.path)
		return nil
	}
	if err != nil {
		return err
	}
	d.summary = new(summary)
	if err := json.Unmarshal(b, d.summary); err != nil {
		return fmt.Errorf("summary.json: %w; remove the directory to begin anew", err)
	}
	return nil
}

// finish records that the run has finished.
func (d *demoDir) finish(s summary) error { return d.writeJSON("summary.json", s) }

func (d *demoDir) writeJSON(name string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic("entrain: a demo's file has no JSON: " + err.Error())
	}
	return atomicfile.WriteBytes(d.file(name), 0o644, append(b, '\n'))
}
