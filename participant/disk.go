package participant

import (
	"fmt"
	"io/fs"
	"math"
	"path/filepath"

	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/participant/trainer"
	"github.com/entrain-network/entrain/view"
)

// diskRoom returns the bytes that a state directory may take: what its disk has free and what the
// directory takes already; 0 if that is not known.
func diskRoom(state string) uint64 {
	if state == "" {
		return 0
	}
	room := data.Free(state)
	if room == math.MaxUint64 {
		return 0
	}
	_ = filepath.WalkDir(state, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil // what cannot be read does not count
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			room += uint64(info.Size())
		}
		return nil
	})
	return room
}

// cramped returns an obstacle if a member's files do not fit on the disk.
func (a Applicant) cramped(run string, z trainer.Sizes) []Obstacle {
	need := z.Disk(a.checkpoints)
	if a.disk == 0 || need <= a.disk {
		return nil
	}
	return []Obstacle{{Kind: obstacleDisk, Reason: fmt.Sprintf("run %q takes about %s of disk in %s, and %s are free there: remove what you do not need, keep fewer checkpoints (--checkpoints N), or name a directory on another disk with --state DIR",
		run, view.Bytes(need), a.state, view.Bytes(a.disk))}}
}

// room returns an error if a model of n parameters does not fit into memory, or into the cache: as
// it comes, and then as a checkpoint.
func (f Fetching) room(n int) error {
	free := f.free
	if free == nil {
		free = data.Free
	}
	if need, has := 4*uint64(n), MemoryFree(); has > 0 && has < need {
		return fmt.Errorf("the model takes at least %s of memory, and %s are free", view.Bytes(need), view.Bytes(has))
	}
	if need, has := 8*uint64(n), free(f.Cache.Dir); has < need {
		return fmt.Errorf("the model takes about %s of disk in %s, and %s are free there: remove what you do not need, or set XDG_CACHE_HOME to a directory on another disk", view.Bytes(need), f.Cache.Dir, view.Bytes(has))
	}
	return nil
}
