package participant

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/checkpoint/depot"
	"github.com/entrain-network/entrain/model"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/participant/trainer"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/wire"
)

// uploader uploads a member's checkpoints in the background, one at a time. If the run writes them
// faster than the network takes them, it skips all but the newest.
type uploader struct {
	depots []*depot.Depot
	keep   int
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu      sync.Mutex // guards what follows
	running bool
	next    string            // directory of the checkpoint that waits, or ""
	told    func(text string) // what came of each
}

// newUploader returns an uploader to the places at the addresses, nil if there are none.
func newUploader(addresses []string, keep int, getenv func(string) string, told func(string)) (*uploader, error) {
	if len(addresses) == 0 {
		return nil, nil
	}
	u := &uploader{keep: keep, told: told}
	for _, address := range addresses {
		d, err := depot.Open(address, depot.Options{Getenv: getenv})
		if err != nil {
			u.closeDepots()
			return nil, fmt.Errorf("--upload: %w", err)
		}
		u.depots = append(u.depots, d)
	}
	u.ctx, u.cancel = context.WithCancel(context.Background())
	return u, nil
}

func (u *uploader) closeDepots() {
	for _, d := range u.depots {
		d.Close()
	}
}

// tell reports the outcome of an upload.
func (u *uploader) tell(text string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.told(text)
}

// add uploads the checkpoint in dir, when the one under way is done.
func (u *uploader) add(dir string) {
	if u == nil || dir == "" {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.next = dir
	if !u.running {
		u.running = true
		u.work.Go(u.run)
	}
}

// run uploads until nothing waits.
func (u *uploader) run() {
	for {
		u.mu.Lock()
		dir := u.next
		u.next, u.running = "", dir != ""
		u.mu.Unlock()
		if dir == "" {
			return
		}
		saved, err := checkpoint.OpenLocal(os.DirFS(dir))
		if err != nil {
			u.tell(fmt.Sprintf("the checkpoint in %s is not uploaded: %v", dir, err))
			continue
		}
		for _, d := range u.depots {
			err := d.Upload(u.ctx, dir, saved.Manifest, u.keep)
			switch {
			case u.ctx.Err() != nil:
				return
			case err != nil:
				u.tell(err.Error())
			default:
				u.tell(fmt.Sprintf("the checkpoint of step %d is at %s", saved.Manifest.Step, d))
			}
		}
	}
}

// finish waits for the uploads under way until ctx ends, and reports their outcome to told.
func (u *uploader) finish(ctx context.Context, told func(text string)) {
	if u == nil {
		return
	}
	var texts []string
	u.mu.Lock()
	u.told = func(text string) { texts = append(texts, text) }
	u.mu.Unlock()
	defer context.AfterFunc(ctx, u.cancel)()
	u.work.Wait()
	for _, text := range texts {
		told(text)
	}
}

// close ends the uploads under way.
func (u *uploader) close() {
	if u == nil {
		return
	}
	u.cancel()
	u.work.Wait()
	u.closeDepots()
}

// originDir is the directory, in the state directory, of a fetched checkpoint that the run
// continues.
const originDir = "origin"

// partialSuffix ends the name of the directory beside it with what was fetched before an
// interruption.
const partialSuffix = ".partial"

// originSlack is the size allowed for a checkpoint's tokenizer and headers, in bytes.
const originSlack = 256 << 20

// origin is found for a member. If --from has parameters that the run agreed on, carries is it, as
// carried returns it.
func (p Options) origin(ctx context.Context, on onchain.Run) (dir, carries string, err error) {
	if carries, err = p.carried(on); err != nil {
		return "", "", err
	}
	if carries != "" {
		p.From = ""
	}
	dir, err = p.found(ctx, on.Spec)
	return dir, carries, err
}

// found returns the directory of the checkpoint that model.from names, "" if it is not on this
// machine. It fetches it if an address names it.
func (p Options) found(ctx context.Context, s spec.Spec) (string, error) {
	asked, err := p.fetchOrigin(ctx, s, p.Getenv)
	if err != nil {
		return "", err
	}
	dir, err := trainer.FindOrigin(s, asked, p.Log)
	if want, ok := s.From(); ok && err == nil && dir == "" {
		// This member may have written it, or fetched it.
		if dir, _ = trainer.OriginIn(p.State, want); dir == "" {
			dir, _ = trainer.OriginIn(filepath.Join(p.State, originDir), want)
		}
	}
	return dir, err
}

// carried returns --from if it is a directory with the parameters that the run agreed on last, or
// with those of its last checkpoint, "" if it is not, or if it has those that the run began with.
// Parameters that nobody else holds any more let the run go on.
func (p Options) carried(on onchain.Run) (string, error) {
	if p.From == "" || depot.IsAddress(p.From) {
		return "", nil
	}
	first, ok := on.Spec.From()
	if ok {
		if _, err := trainer.OriginIn(p.From, first); err == nil {
			return "", nil
		}
	}
	agreed, round := on.Snapshot.State.Params()
	if round == 0 {
		return "", nil // FindOrigin says what the run begins with
	}
	_, err := trainer.OriginIn(p.From, agreed)
	if saved, ok := on.Snapshot.State.LastCheckpoint(); ok && err != nil {
		if _, fault := trainer.OriginIn(p.From, saved.Params); fault == nil {
			err = nil
		}
	}
	if err != nil {
		return "", fmt.Errorf("--from: run %q agreed last on the parameters %s, of step %d: %w", on.Spec.Name, agreed, paramsStep(on.Snapshot.State), err)
	}
	return p.From, nil
}

// fetchOrigin fetches the checkpoint that a run continues into the state directory, if an address
// names it, and returns its directory. One that the user named must be there. One that the
// specification names may be missing, as peers have the model; the environment's credentials are
// not used for it.
func (p Options) fetchOrigin(ctx context.Context, s spec.Spec, getenv func(string) string) (string, error) {
	address, asked := p.From, p.From != ""
	if !asked {
		address, getenv = s.Model.FromLocation, nil
	}
	want, ok := s.From()
	if !ok || !depot.IsAddress(address) {
		return p.From, nil
	}
	dir := filepath.Join(p.State, originDir)
	if _, err := trainer.OriginIn(dir, want); err == nil {
		return dir, nil // from an earlier start
	}
	o := depot.Options{Getenv: getenv, Partial: dir + partialSuffix, Stranger: !asked, Public: !asked && !onchain.AllPrivate(p.Endpoints)}
	if p.Log != nil {
		o.Say = func(format string, args ...any) { p.Log.Info(fmt.Sprintf(format, args...)) }
	}
	err := fetchParams(ctx, address, dir, s, want, o, p.Log)
	if err == nil || !asked && ctx.Err() == nil {
		_ = os.RemoveAll(o.Partial) // nobody continues it
	}
	switch {
	case err == nil:
		return dir, nil
	case asked || ctx.Err() != nil:
		return "", fmt.Errorf("--from: %w", err)
	}
	p.Say("the specification names where the model is, but it cannot be had there: %v", err)
	return "", nil
}

// fetchParams fetches a checkpoint whose parameters must have the hash want. It asks for the
// manifest, for each file that it lists, 8 MiB at a time, and for no more bytes than such a
// checkpoint has.
func fetchParams(ctx context.Context, address, dir string, s spec.Spec, want wire.Hash, o depot.Options, log *slog.Logger) error {
	m, err := s.Llama()
	if err != nil {
		return err
	}
	o.BytesMax = uint64(4*m.Base().Layout().Len() + originSlack)
	d, err := depot.Open(address, o)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := os.RemoveAll(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if log != nil {
		log.Info("fetching the checkpoint that the run goes on from", "at", d.String())
	}
	_, err = d.Fetch(ctx, dir, func(m checkpoint.Manifest) error {
		// The manifest has the hash before rounding to another type.
		if m.DType == checkpoint.F32.String() && m.Params != want {
			return fmt.Errorf("it has the parameters %s, but the run continues from %s", m.Params, want)
		}
		return nil
	})
	if err != nil {
		return err
	}
	// Its author may have written any hash into the manifest.
	got, err := model.Open(dir)
	if err == nil && got.Hash() != want {
		err = fmt.Errorf("its files have the parameters %s, but the run continues from %s", got.Hash(), want)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	return nil
}
