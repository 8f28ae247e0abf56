package participant

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/checkpoint/depot"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/model"
	"github.com/entrain-network/entrain/node"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/participant/trainer"
	"github.com/entrain-network/entrain/retry"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/tokenizer/chat"
	"github.com/entrain-network/entrain/view"
	"github.com/entrain-network/entrain/wire"
)

// fetchPatience is how long a fetch from members goes on while nothing comes. fetchEvery is the
// pause between attempts.
const (
	fetchPatience = 30 * time.Second
	fetchEvery    = 500 * time.Millisecond
)

// wanted is what a guest asks the members for.
type wanted struct {
	root     func(coordinator.State) wire.Hash // in the newest state of the run
	n        int                               // parameters
	kept     *data.Chunks                      // keeps what has come, until all has
	progress func(done, total uint64)
}

// params gets parameters from members that hold them, and returns the state that they are of.
func (g *Guest) params(ctx context.Context, w wanted) (s coordinator.State, values []float32, err error) {
	w.kept.Fit(4 * uint64(w.n))
	var part p2p.FetchError
	moved := time.Now()
	for {
		at, err := onchain.GetSnapshot(ctx, g.own, g.run)
		if err != nil {
			return s, nil, err
		}
		s = at.State
		f := p2p.Fetch{Ref: p2p.Ref{Root: w.root(s), Size: 4 * uint64(w.n)}, From: g.holders(s)}
		if part.Ref != f.Ref {
			part = p2p.FetchError{Ref: f.Ref}
		}
		f.Leaves = part.Leaves()
		f.Have = part.Chunk
		safe := f.Resume(w.kept)
		f.Progress = func(done, total uint64) {
			moved = time.Now()
			w.progress(done, total)
		}
		b, err := g.Fetch(ctx, f)
		if err == nil {
			values = make([]float32, w.n)
			tensor.SetBytes(values, b)
			safe()
			return s, values, nil
		}
		if failed, ok := errors.AsType[*p2p.FetchError](err); ok && failed.Held > 0 {
			part = *failed
		}
		if time.Since(moved) > fetchPatience || retry.Wait(ctx, fetchEvery) != nil {
			return s, nil, fmt.Errorf("ask the run's members: %w", err)
		}
	}
}

// holders returns whom to ask: the members, and then others, of whom one may give what the run
// began with (Give).
func (g *Guest) holders(s coordinator.State) (list []key.Public) {
	seen := map[key.Public]bool{g.key: true}
	for i := range s.Count() {
		if s.Status(i).Present() {
			list = append(list, s.Key(i))
			seen[s.Key(i)] = true
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, k := range g.listed {
		if !seen[k] {
			list = append(list, k)
		}
	}
	return list
}

// Frozen returns what gets the frozen model of a run of adapters from its members, for
// trainer.Machine; nil in a run of buckets, whose members serve nothing else.
func Frozen(client ledger.Chain, on onchain.Run, kept *data.Chunks, say func(format string, args ...any)) func(context.Context, wire.Hash, int) ([]float32, error) {
	if on.Spec.Buckets() {
		return nil
	}
	return func(ctx context.Context, root wire.Hash, n int) (values []float32, err error) {
		say("fetching the frozen model, %s, from the run's members", view.Bytes(4*uint64(n)))
		g, err := Visit(ctx, client, on.Spec.Name, on.Snapshot.State.ID(), nil)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, g.Close()) }()
		_, values, err = g.params(ctx, wanted{func(coordinator.State) wire.Hash { return root }, n, kept, view.Transferred(say)})
		return values, err
	}
}

// frozenModel returns the frozen model of a run of adapters as a checkpoint.
func frozenModel(t *trainer.Trainer, params []float32) checkpoint.Model {
	config, end := model.CheckpointConfig(t.Model.Base()), chat.End(t.Set.Manifest().Chat, t.Tokenizer)
	config.EOS = &end
	return checkpoint.Model{
		Run: "frozen-" + t.Spec.Model.From[:12], Config: config, Tokenizer: t.Tokenizer,
		Layout: t.Model.Base().Layout(), Params: params, Chat: t.Set.Manifest().Chat,
	}
}

// Fetching gets the model of a run for a program that takes no part in it. The chain says which
// parameters the members agreed on last; they come from members, or from their buckets.
type Fetching struct {
	model.Fetcher
	Target    onchain.Target
	Endpoints []string
	Kept      *data.Chunks // keeps the data set's files, and what has come of the model
	Remember  string       // as in Options

	free func(dir string) uint64 // data.Free, but for tests
}

// Model returns a directory of the cache with the newest agreed parameters as a checkpoint. The
// directory stays until release is called.
func (f Fetching) Model(ctx context.Context) (dir string, release func(), err error) {
	client, on, err := onchain.Open(ctx, f.Endpoints, onchain.DialOptions{Remember: f.Remember}, f.Target)
	if err != nil {
		return "", nil, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	at, err := f.Target.DataOf("", on, f.Endpoints)
	if err != nil {
		return "", nil, fmt.Errorf("the tokenizer comes with the data, and the chain does not say where that is; name a ticket that does (entrain run ticket %s --data URL), or a member's state directory", on.Spec.Name)
	}
	at.Kept = f.Kept
	from, err := trainer.FindOrigin(on.Spec, "", nil)
	if err != nil {
		return "", nil, err
	}
	t, err := trainer.Open(ctx, on.Spec, at, from)
	if err != nil {
		return "", nil, fmt.Errorf("the tokenizer comes with the data: %w", err)
	}
	defer t.Close()
	free := func() {}
	if t.Model.LoRA != (llama.LoRA{}) {
		if t.From, free, err = f.frozen(ctx, client, on, t); err != nil {
			return "", nil, err
		}
	}
	dir, held, err := f.agreed(ctx, client, on, t)
	if err != nil {
		free()
		return "", nil, err
	}
	return dir, func() { held(); free() }, nil
}

// frozen returns a directory with the frozen model of a run of adapters.
func (f Fetching) frozen(ctx context.Context, client ledger.Chain, on onchain.Run, t *trainer.Trainer) (dir string, release func(), err error) {
	if t.From != "" {
		return t.From, func() {}, nil
	}
	want, _ := on.Spec.From()
	n := t.Model.Base().Layout().Len()
	if dir, release, ok := f.Held(frozenModel(t, nil).Run, want); ok {
		return dir, release, nil
	}
	if err := f.room(n); err != nil {
		return "", nil, err
	}
	if dir, release, err = f.located(ctx, on.Spec, n); dir != "" {
		return dir, release, nil
	} else if err != nil {
		f.Say("%v", err)
	}
	get := Frozen(client, on, f.Kept, f.Say)
	if get == nil {
		return "", nil, fmt.Errorf("run %q trains adapters of the model %s, which its members' buckets do not have", on.Spec.Name, want)
	}
	params, err := get(ctx, want, n)
	if err != nil {
		return "", nil, err
	}
	return f.Keep(ctx, frozenModel(t, params))
}

// located returns a directory with the checkpoint that the specification says where to find, of n
// parameters, "" if it names no address.
func (f Fetching) located(ctx context.Context, s spec.Spec, n int) (dir string, release func(), err error) {
	want, _ := s.From()
	at := s.Model.FromLocation
	if !depot.IsAddress(at) {
		return "", nil, nil
	}
	f.BytesMax = uint64(4*n + originSlack)
	f.Getenv = nil // the owner says where it is: no credentials go there
	f.Stranger, f.Public = true, !onchain.AllPrivate(f.Endpoints)
	return f.Local(ctx, at, want)
}

// Origin returns the directory of the checkpoint that a run continues, for a program that takes no
// part in it: asked, if it is not "", or one on this machine; adapters' frozen model is fetched
// from where the specification says that it is. It returns "" if there is none. The directory stays
// until release is called.
func (f Fetching) Origin(ctx context.Context, s spec.Spec, asked string) (dir string, release func(), err error) {
	release = func() {}
	if depot.IsAddress(asked) {
		want, _ := s.From()
		if asked, release, err = f.Local(ctx, asked, want); err != nil {
			return "", nil, fmt.Errorf("--from: %w", err)
		}
	}
	if dir, err = trainer.FindOrigin(s, asked, nil); err != nil {
		release()
		return "", nil, err
	}
	m, err := s.Llama()
	if err != nil || dir != "" || m.LoRA == (llama.LoRA{}) {
		return dir, release, err
	}
	found, free, err := f.located(ctx, s, m.Base().Layout().Len())
	if found == "" {
		if err != nil {
			f.Say("%v", err)
		}
		return "", release, nil // members may have it
	}
	return found, free, nil
}

// agreed returns a directory with the newest agreed parameters: adapters, if the run trains those.
func (f Fetching) agreed(ctx context.Context, client ledger.Chain, on onchain.Run, t *trainer.Trainer) (dir string, release func(), err error) {
	s := on.Snapshot.State
	root, _ := s.Params()
	if dir, release, ok := f.Held(on.Spec.Name, root); ok {
		return dir, release, nil
	}
	if err := f.room(t.Model.Layout().Len()); err != nil {
		return "", nil, err
	}
	var values []float32
	if root == s.Config().ModelHash {
		f.Say("run %q has not changed its model yet", on.Spec.Name)
		values = t.Initial()
	}
	if values == nil {
		f.Say("fetching the model of run %q at step %d, %s", on.Spec.Name, paramsStep(s), view.Bytes(4*uint64(t.Model.Layout().Len())))
		get := f.fromMembers
		if on.Spec.Buckets() {
			get = f.fromBuckets
		}
		if s, values, err = get(ctx, client, on, t); err != nil {
			return "", nil, fmt.Errorf("%w; if a member uploads its checkpoints, name their address in place of the run, with --hash %s", err, root)
		}
	}
	root, round := s.Params()
	c := checkpoints{trainer: t}
	m := c.model(node.Checkpoint{Epoch: s.Epoch(), Round: round, Step: paramsStep(s) + coordinator.Step(on.Spec.Before()), Hash: root, Params: values})
	if m.Config.LoRA != nil {
		m.Config.LoRA.Location = t.From
	}
	return f.Keep(ctx, m)
}

// paramsStep returns how many steps the agreed parameters have seen.
func paramsStep(s coordinator.State) coordinator.Step {
	_, round := s.Params()
	if r, ok := s.At(round); ok && r.Trains() {
		return r.Step() - min(r.Step(), 1+coordinator.Step(s.Config().Overlap))
	}
	return s.Step()
}

func (f Fetching) fromMembers(ctx context.Context, client ledger.Chain, on onchain.Run, t *trainer.Trainer) (s coordinator.State, values []float32, err error) {
	g, err := Visit(ctx, client, on.Spec.Name, on.Snapshot.State.ID(), nil)
	if err != nil {
		return s, nil, err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	return g.params(ctx, wanted{func(s coordinator.State) wire.Hash {
		root, _ := s.Params()
		return root
	}, t.Model.Layout().Len(), f.Kept, f.Progress})
}

// fromBuckets gets the model as validators do: whole models and slices in members' buckets.
func (f Fetching) fromBuckets(ctx context.Context, client ledger.Chain, on onchain.Run, opened *trainer.Trainer) (s coordinator.State, values []float32, err error) {
	at, err := f.Target.DataOf("", on, f.Endpoints)
	if err != nil {
		return s, nil, err
	}
	at.Kept = f.Kept
	t, err := trainer.New(ctx, on.Spec, at, trainer.Machine{Workers: runtime.GOMAXPROCS(0), From: opened.From}, 0)
	if err != nil {
		return s, nil, err
	}
	defer t.Close()
	guest := VisitBuckets(client, on.Spec.Name, on.Snapshot.State.ID(), t.Engine, t.Initial, f.Kept)
	defer func() { err = errors.Join(err, guest.Close()) }()
	for began := time.Now(); ; {
		var at ledger.Snapshot
		if at, err = onchain.GetSnapshot(ctx, client, on.Spec.Name); err == nil {
			s = at.State
			root, round := s.Params()
			values, err = guest.Params(ctx, s, round, root, 0, nil)
		}
		if err == nil || time.Since(began) > fetchPatience || retry.Wait(ctx, fetchEvery) != nil {
			return s, values, err
		}
	}
}

// keepFrozen writes the frozen model that a trainer fetched into the state directory, where the
// next start and the run's checkpoints find it.
func (p *Participant) keepFrozen(ctx context.Context, state string) error {
	t := p.Trainer
	if t.From == "" {
		t.From = filepath.Join(state, originDir)
		if err := os.RemoveAll(t.From); err != nil {
			return err
		}
		if _, err := model.Write(ctx, t.From, frozenModel(t, t.Run.Base), checkpoint.Options{}); err != nil {
			return err
		}
	}
	return model.RememberBase(state, t.From)
}
