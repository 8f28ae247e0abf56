package main

import (
	"errors"
	"path/filepath"

	"github.com/entrain-network/entrain/atomicfile/dirlock"
	"github.com/entrain-network/entrain/key"
)

// ownState returns the locked directory for the state of a key in a run: the given one, or one
// below the user's directory for data.
func (c console) ownState(kind, run, asked string, k key.Private) (dir string, unlock func(), err error) {
	if dir = asked; dir == "" {
		if c.places.data == "" {
			return "", nil, errors.New("this system names no directory for data; say where state shall be kept with --state DIR")
		}
		dir = filepath.Join(c.places.data, kind, run+"-"+k.Public().String()[:8])
	}
	unlock, err = dirlock.Lock(dir, "state directory")
	return dir, unlock, err
}
