package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/entrain-network/entrain/model"
	"github.com/entrain-network/entrain/view"
)

// cacheBytes is the default limit of the cache: a model of five billion parameters, or many small
// ones.
const cacheBytes = 20_000_000_000

// cacheVariable is the environment's word on it.
const cacheVariable = "ENTRAIN_CACHE_MAX"

// cache is the user's.
func (c console) cache() (model.Cache, error) {
	if c.places.Cache == "" {
		return model.Cache{}, errors.New("this system names no directory for what is fetched: set XDG_CACHE_HOME, or fetch the checkpoint's files yourself")
	}
	most := uint64(cacheBytes)
	if text := c.env(cacheVariable); text != "" {
		var err error
		if most, err = view.ParseBytes(text); err != nil {
			return model.Cache{}, fmt.Errorf("%s: %w", cacheVariable, err)
		}
	}
	return model.Cache{Dir: filepath.Join(c.places.Cache, "checkpoints"), Most: most}, nil
}
