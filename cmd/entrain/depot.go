package main

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
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/wire"
)

// uploader uploads the checkpoints that a member writes, one after the other and beside everything else. When the network is slower than the run
// writes them, the newest that waits is the next, and those between are left out.
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

// newUploader returns an uploader to the depots at the addresses, nil if there are none.
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

// tell says what came of an upload.
func (u *uploader) tell(text string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.told(text)
}

// add uploads the checkpoint in dir, now or when the one before is done.
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

// finish waits for what is under way, or until ctx ends, and from then on tells what came of it to the caller.
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

// close ends what is under way.
func (u *uploader) close() {
	if u == nil {
		return
	}
	u.cancel()
	u.work.Wait()
	u.closeDepots()
}

// originSlack is what a checkpoint may have besides its parameters: a tokenizer, and headers.
const originSlack = 256 << 20

// fetchOrigin brings the checkpoint that a run goes on from into the state directory, if it is named by an address, and returns its directory; what
// is named otherwise it returns as it is. One that the user asked for must be had; the one that the specification names, for which the
// environment's credentials are not used, may be missing, as peers have the model.
func (p participation) fetchOrigin(ctx context.Context, s spec.Spec, getenv func(string) string) (string, error) {
	address, asked := p.from, p.from != ""
	if !asked {
		address, getenv = s.Model.FromLocation, nil
	}
	want, ok := s.From()
	if !ok || !depot.IsAddress(address) {
		return p.from, nil
	}
	dir := filepath.Join(p.state, "origin")
	if _, err := originIn(dir, want); err == nil {
		return dir, nil // from an earlier start
	}
	err := fetchParams(ctx, address, dir, s, want, getenv, p.log)
	switch {
	case err == nil:
		return dir, nil
	case asked || ctx.Err() != nil:
		return "", fmt.Errorf("--from: %w", err)
	case p.log != nil:
		p.log.Warn("the model comes from peers", "error", err)
	}
	return "", nil
}

// fetchParams fetches a checkpoint whose parameters must have the hash want.
func fetchParams(ctx context.Context, address, dir string, s spec.Spec, want wire.Hash, getenv func(string) string, log *slog.Logger) error {
	m, err := s.Llama()
	if err != nil {
		return err
	}
	d, err := depot.Open(address, depot.Options{Getenv: getenv, BytesMax: uint64(4*m.Layout().Len() + originSlack)})
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
		// That of another type was rounded, so its manifest has the hash of other parameters than the files hold.
		if m.DType == checkpoint.F32.String() && m.Params != want {
			return fmt.Errorf("it has the parameters %s, but the run goes on from %s", m.Params, want)
		}
		return nil
	})
	return err
}
