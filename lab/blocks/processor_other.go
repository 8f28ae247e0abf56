//go:build !unix

package blocks

import "time"

// processorTime is not known.
func processorTime() time.Duration { return 0 }
