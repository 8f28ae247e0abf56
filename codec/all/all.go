// Package all lists the codecs that the specification of a run can name.
package all

import (
	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/codec/distro"
	"github.com/entrain-network/entrain/codec/slice"
	"github.com/entrain-network/entrain/codec/sparseloco"
)

// Kinds returns the table of codecs. The first is the default; the first sliceable one is the
// default for runs that exchange by buckets.
func Kinds() []codec.Kind {
	return []codec.Kind{distro.Config{}.Kind(), slice.Config{}.Kind(), sparseloco.Options{}.Kind()}
}
