package demo

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

// sweepFor bounds how long a demo takes to remove what it wrote to an S3 server elsewhere;
// sweepPage is the number of objects that it removes at a time.
const (
	sweepFor  = 30 * time.Second
	sweepPage = 1000
)

// sweep removes what the clients wrote to an S3 server elsewhere, unless the demo is kept.
func (d *directory) sweep() error {
	if d.kept || !d.set.buckets() || d.set.S3 != "" {
		return nil
	}
	client := bucket.NewClient(bucket.S3Options{})
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), sweepFor) // the demo's own may have ended
	defer cancel()
	var errs []error
	for i := range d.set.Clients {
		text, err := atomicfile.ReadBounded(d.file(clientName(i), bucketWrite), participant.LocationBytesMax)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the set-up ended before
		}
		if err == nil {
			err = empty(ctx, client, strings.TrimSpace(string(text)))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("objects of %s stay in the bucket: %w", clientName(i), err))
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
