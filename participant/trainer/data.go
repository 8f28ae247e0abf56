package trainer

import (
	"context"
	"strings"

	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/wire"
)

// OpenData opens a data set in a directory, or at space-separated addresses of hosts and buckets.
func OpenData(ctx context.Context, location string, manifest wire.Hash, o data.Options) (*data.Set, error) {
	if data.IsURL(location) {
		return data.OpenURL(ctx, strings.Fields(location), manifest, data.RemoteOptions{Options: o})
	}
	return data.Open(ctx, location, manifest, o)
}
