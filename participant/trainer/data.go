package trainer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/wire"
)

// OpenData opens a data set in a directory, or at space-separated addresses of hosts and buckets.
func OpenData(ctx context.Context, at data.Place, manifest wire.Hash, o data.Options) (*data.Set, error) {
	if data.IsURL(at.Location) {
		set, err := data.OpenURL(ctx, strings.Fields(at.Location), manifest, data.RemoteOptions{Options: o, Public: at.Public, Kept: at.Kept})
		if errors.Is(err, bucket.ErrForbidden) {
			err = fmt.Errorf("%w; if this address is one that you trust, name it with --data", err)
		}
		return set, err
	}
	set, err := data.Open(ctx, at.Location, manifest, o)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: name the run's data set, a directory or an address, with --data; "+
			"entrain data prepare makes it from the same files", err)
	}
	return set, err
}
