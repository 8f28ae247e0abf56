package bucket

import "sync/atomic"

// Traffic counts objects and their bytes, envelopes included. It is safe for concurrent use.
type Traffic struct{ objects, bytes atomic.Uint64 }

func (t *Traffic) add(bytes int) {
	t.objects.Add(1)
	t.bytes.Add(uint64(bytes))
}

// Objects returns the number of objects transferred.
func (t *Traffic) Objects() uint64 { return t.objects.Load() }

// Bytes returns the number of bytes transferred.
func (t *Traffic) Bytes() uint64 { return t.bytes.Load() }
