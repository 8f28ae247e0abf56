package bittensor

import (
	"context"
	"fmt"

	"github.com/entrain-network/entrain/host/clock"
	"github.com/entrain-network/entrain/wire"
)

// Newest asks an endpoint for the newest final blocks of its chain, at most clock.SightMax: those
// above number if that is of the chain with genesis. It returns no hashes if there are none, or if
// the newest is the one of number seen. It needs no description of the chain's runtime.
func Newest(ctx context.Context, url string, genesis wire.Hash, number, seen uint64) (s clock.Sight, err error) {
	c, err := reach(url)
	if err != nil {
		return s, err
	}
	newest, hash, err := c.Block(ctx)
	if err == nil && len(hash) != len(wire.Hash{}) {
		err = fmt.Errorf("%s gives block %d a hash of %d bytes", url, newest, len(hash))
	}
	if err != nil || newest == seen {
		return s, err
	}
	s.Number = newest
	if s.Genesis, err = c.hash32(ctx, 0); err != nil {
		return s, err
	}
	from := newest - min(newest, clock.SightMax) + 1
	if s.Genesis == genesis {
		from = max(from, number+1)
	}
	for n := from; n <= newest; n++ {
		x := wire.Hash(hash)
		if n < newest {
			if x, err = c.hash32(ctx, n); err != nil {
				return s, err
			}
		}
		s.Hashes = append(s.Hashes, x)
	}
	return s, nil
}

func (c *Client) hash32(ctx context.Context, height uint64) (wire.Hash, error) {
	b, err := c.hash(ctx, height)
	if err == nil && len(b) != len(wire.Hash{}) {
		err = fmt.Errorf("%s has no block %d", c.url, height)
	}
	if err != nil {
		return wire.Hash{}, err
	}
	return wire.Hash(b), nil
}
