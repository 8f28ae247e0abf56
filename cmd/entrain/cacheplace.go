package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/model"
	"github.com/entrain-network/entrain/view"
)

// cacheBytes is the default limit of each cache: a model of five billion parameters, or many small
// ones; ten billion tokens.
const cacheBytes = 20_000_000_000

// cacheVariable is the environment's word on it.
const cacheVariable = "ENTRAIN_CACHE_MAX"

// cacheMost returns the limit of each cache.
func (c console) cacheMost() (uint64, error) {
	text := c.env(cacheVariable)
	if text == "" {
		return cacheBytes, nil
	}
	most, err := view.ParseBytes(text)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", cacheVariable, err)
	}
	return most, nil
}

// cache is the user's, of checkpoints.
func (c console) cache() (model.Cache, error) {
	if c.places.Cache == "" {
		return model.Cache{}, errors.New("this system names no directory for what is fetched: set XDG_CACHE_HOME, or fetch the checkpoint's files yourself")
	}
	most, err := c.cacheMost()
	return model.Cache{Dir: filepath.Join(c.places.Cache, "checkpoints"), Most: most}, err
}

// chunks is the user's cache of data; nil where the system names no place for one. say is told why
// something cannot be kept.
func (c console) chunks(say func(text string)) (*data.Chunks, error) {
	most, err := c.cacheMost()
	if err != nil || c.places.Cache == "" {
		return nil, err
	}
	dir := filepath.Join(c.places.Cache, "data")
	return data.NewChunks(dir, most, func(err error) {
		say(fmt.Sprintf("what is fetched of the data is not kept: %v", err))
	}), nil
}
