package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/participant"
)

// sweepFor bounds how long a demo takes to remove what it wrote to a store that is not its own, sweepPage how much of it at a time.
const (
	sweepFor  = 30 * time.Second
	sweepPage = 1000
)

// sweep removes what the clients of a demo that is not kept wrote to somebody else's S3 server.
func (d *demoDir) sweep() error {
	if d.kept || d.set.Exchange != exchangeBucket || d.set.S3 != "" {
		return nil
	}
	client := bucket.NewClient(bucket.S3Options{})
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), sweepFor) // the demo's own has ended, maybe by Ctrl-C
	defer cancel()
	var errs []error
	for i := range d.set.Clients {
		text, err := atomicfile.ReadBounded(d.file(clientName(i), bucketWrite), participant.LocationBytesMax)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the demo came no further
		}
		if err == nil {
			err = empty(ctx, client, strings.TrimSpace(string(text)))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("objects of %s stay in the bucket of --s3: %w", clientName(i), err))
		}
	}
	return errors.Join(errs...)
}

// empty deletes all objects at a location.
func empty(ctx context.Context, client *bucket.Client, location string) error {
	at, err := bucket.ParseLocation(location)
	if err != nil {
		return err
	}
	store, err := client.Open(at)
	if err != nil {
		return err
	}
	for after := ""; ; {
		list, err := store.List(ctx, "", after, sweepPage)
		if err != nil || len(list) == 0 {
			return err
		}
		keys := make([]string, len(list))
		for k, o := range list {
			keys[k] = o.Key
		}
		if err := store.Delete(ctx, keys...); err != nil {
			return err
		}
		after = keys[len(keys)-1]
	}
}
