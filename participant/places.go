package participant

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/entrain-network/entrain/atomicfile/dirlock"
	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/checkpoint/depot"
	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/model"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/participant/trainer"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/view"
	"github.com/entrain-network/entrain/wire"
)

// Places are the directories for this user's files; "" where the system names none.
type Places struct {
	Config string // keys
	Data   string // state of chains and participants
	Cache  string // checkpoints and data that were fetched
}

// FindPlaces returns the directories that the system and the environment name.
func FindPlaces(getenv func(string) string) Places {
	var p Places
	if dir, err := os.UserConfigDir(); err == nil {
		p.Config = filepath.Join(dir, "entrain")
		p.Data = p.Config
	}
	if dir, err := os.UserCacheDir(); err == nil {
		p.Cache = filepath.Join(dir, "entrain")
	}
	switch runtime.GOOS {
	case "darwin", "ios":
	case "windows":
		if dir, err := os.UserCacheDir(); err == nil { // %LocalAppData%: not copied between machines
			p.Data = filepath.Join(dir, "entrain")
		}
	default:
		if dir := getenv("XDG_DATA_HOME"); dir != "" {
			p.Data = filepath.Join(dir, "entrain")
		} else if home, err := os.UserHomeDir(); err == nil {
			p.Data = filepath.Join(home, ".local", "share", "entrain")
		}
	}
	return p
}

// The kinds of state directories.
const (
	MemberState    = "runs"
	ValidatorState = "validators"
)

// hostedMember is the member's state directory below the home of a hosted run, as package founding
// has it.
const hostedMember = "member"

// StateDir returns the directory that LockState locks, "" if there can be none.
func (p Places) StateDir(kind, run, asked string, k key.Public) string {
	if asked != "" || p.Data == "" {
		return asked
	}
	return filepath.Join(p.Data, kind, run+"-"+k.String()[:8])
}

// LockState locks the state directory of a participant, by its kind: the one asked for, or the
// default one of the run and the key.
func (p Places) LockState(kind, run, asked string, k key.Public) (dir string, unlock func(), err error) {
	if asked == "" && p.Data == "" {
		return "", nil, errors.New("this system names no directory for data; name one with --state DIR")
	}
	dir = p.StateDir(kind, run, asked, k)
	unlock, err = dirlock.Lock(dir, "state directory")
	return dir, unlock, err
}

// apart returns the directory for the state of the run with an ID: State, or if that is the default
// one and has the state of another run of this name, one beside it, which apart locks. A run that
// continues what is in State shares it.
func (p Options) apart(id wire.Hash, s spec.Spec) (dir string, unlock func(), err error) {
	other, ok := p.stateOf()
	if from, continues := s.From(); continues && ok {
		if path, _ := trainer.OriginIn(p.State, from); path != "" || s.Resume != nil {
			ok = false
		}
	}
	switch {
	case !ok || other == id:
		return p.State, func() {}, nil
	case !p.DefaultState:
		return "", nil, fmt.Errorf("state directory %q is that of another run, %s: give another directory, or remove this one if that state is not needed any more", p.State, other)
	}
	dir = p.State + "-" + id.String()[:8]
	unlock, err = dirlock.Lock(dir, "state directory")
	return dir, unlock, err
}

// stateOf returns the run whose state is in State, false if there is none that can be read.
func (p Options) stateOf() (run wire.Hash, ok bool) {
	f, err := os.Open(filepath.Join(p.State, stateFile))
	if err != nil {
		return run, false
	}
	defer f.Close()
	h, err := checkpoint.ReadStateHeader(f)
	return h.Run, err == nil
}

// stateFile is the name of the state file in a state directory.
const stateFile = "state"

// OnlyState returns the state directory of this user's only membership in a run, "" if there is
// none or several.
func (p Places) OnlyState(run string) string {
	if p.Data == "" {
		return ""
	}
	found, _ := filepath.Glob(filepath.Join(p.Data, MemberState, run+"-????????"))
	apart, _ := filepath.Glob(filepath.Join(p.Data, MemberState, run+"-????????-????????"))
	hosted, _ := filepath.Glob(filepath.Join(p.Data, "hosted", run, hostedMember))
	if found = slices.Concat(found, apart, hosted); len(found) != 1 {
		return ""
	}
	return found[0]
}

// cacheBytes is the default limit of each cache: a model of five billion parameters, or many small
// ones; ten billion tokens. That of data makes room for a larger model that is being fetched. The
// variable of the environment says another.
const (
	cacheBytes    = 20_000_000_000
	cacheVariable = "ENTRAIN_CACHE_MAX"
)

// cacheMost returns the limit of each cache.
func cacheMost(getenv func(string) string) (uint64, error) {
	text := getenv(cacheVariable)
	if text == "" {
		return cacheBytes, nil
	}
	most, err := view.ParseBytes(text)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", cacheVariable, err)
	}
	return most, nil
}

// Checkpoints returns the cache of checkpoints.
func (p Places) Checkpoints(getenv func(string) string) (model.Cache, error) {
	if p.Cache == "" {
		return model.Cache{}, errors.New("this system names no directory for what is fetched: set XDG_CACHE_HOME, or fetch the checkpoint's files yourself")
	}
	most, err := cacheMost(getenv)
	return model.Cache{Dir: filepath.Join(p.Cache, "checkpoints"), Most: most}, err
}

// Chunks returns the cache of data; nil where the system names no place for one. Tell is told why
// something cannot be kept.
func (p Places) Chunks(getenv func(string) string, tell func(text string)) (*data.Chunks, error) {
	most, err := cacheMost(getenv)
	if err != nil || p.Cache == "" {
		return nil, err
	}
	c := data.NewChunks(filepath.Join(p.Cache, "data"), most, func(err error) {
		tell(fmt.Sprintf("what is fetched of the data is not kept: %v", err))
	})
	c.Fixed = getenv(cacheVariable) != ""
	return c, nil
}

// Chains returns the directory that keeps headers of chains, "" if there is none.
func (p Places) Chains() string {
	if p.Data == "" {
		return ""
	}
	return filepath.Join(p.Data, "chains")
}

// Local returns a directory with the checkpoint that a user names: a directory, which may be the
// home of a hosted run, an address, a run in which the user takes part on this machine, or another
// run, as RUN, RUN@HOST, a ticket or a file with one, for the parameters that it agreed on last.
// They, or the manifest, must have the hash want, unless it is zero. The directory stays until
// release is called. F needs no cache.
func (p Places) Local(ctx context.Context, f model.Fetcher, name string, want wire.Hash) (dir string, release func(), err error) {
	var endpoints []string
	if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
		file := filepath.Dir(name) + "/" + filepath.Base(name) // cannot be a run's name
		to, err := onchain.ParseTarget(file, &endpoints)
		if err != nil {
			return "", nil, fmt.Errorf("%q is a file, neither a checkpoint's directory nor a ticket: %w", name, err)
		}
		return p.runModel(ctx, Fetching{Fetcher: f, Target: to, Endpoints: endpoints}, want)
	}
	_, _, here := model.OpenCheckpoint(name)
	if errors.Is(here, fs.ErrNotExist) && !depot.IsAddress(name) {
		for _, own := range []string{p.OnlyState(name), filepath.Join(name, hostedMember)} {
			if _, _, err := model.OpenCheckpoint(own); own != "" && err == nil {
				return f.Local(ctx, own, want)
			}
		}
		if to, err := onchain.ParseTarget(name, &endpoints); err == nil {
			return p.runModel(ctx, Fetching{Fetcher: f, Target: to, Endpoints: endpoints}, want)
		}
	}
	if depot.IsAddress(name) {
		if f.Cache, err = p.Checkpoints(f.Getenv); err != nil {
			return "", nil, err
		}
	}
	return f.Local(ctx, name, want)
}

// runModel returns a directory with the newest agreed parameters of a run.
func (p Places) runModel(ctx context.Context, f Fetching, want wire.Hash) (dir string, release func(), err error) {
	f.Remember = p.Chains()
	f.Endpoints = onchain.Endpoints(f.Endpoints, f.Getenv("ENTRAIN_CHAIN"), f.Remember)
	if f.Cache, err = p.Checkpoints(f.Getenv); err != nil {
		return "", nil, err
	}
	if f.Kept, err = p.Chunks(f.Getenv, func(text string) { f.Say("%s", text) }); err != nil {
		return "", nil, err
	}
	if dir, release, err = f.Model(ctx); err != nil {
		return "", nil, fmt.Errorf("no directory %q with a checkpoint's manifest.json is here, and the run of this name cannot be fetched: %w", f.Target.Run, err)
	}
	if _, _, err := f.Local(ctx, dir, want); err != nil {
		release()
		return "", nil, err
	}
	return dir, release, nil
}
