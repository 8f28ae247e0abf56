package participant

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"

	"github.com/entrain-network/entrain/atomicfile/dirlock"
	"github.com/entrain-network/entrain/key"
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

// LockState locks the state directory of a participant, by its kind: the one asked for, or the
// default one of the run and the key.
func (p Places) LockState(kind, run, asked string, k key.Public) (dir string, unlock func(), err error) {
	if dir = asked; dir == "" {
		if p.Data == "" {
			return "", nil, errors.New("this system names no directory for data; name one with --state DIR")
		}
		dir = filepath.Join(p.Data, kind, run+"-"+k.String()[:8])
	}
	unlock, err = dirlock.Lock(dir, "state directory")
	return dir, unlock, err
}

// OnlyState returns the state directory of this user's only membership in a run, "" if there is
// none or several.
func (p Places) OnlyState(run string) string {
	if p.Data == "" {
		return ""
	}
	found, _ := filepath.Glob(filepath.Join(p.Data, MemberState, run+"-????????"))
	hosted, _ := filepath.Glob(filepath.Join(p.Data, "hosted", run, "member")) // package founding
	if found = append(found, hosted...); len(found) != 1 {
		return ""
	}
	return found[0]
}
