package record

// Meter bounds what a message does of a closing.
type Meter struct {
	Left    uint64 // compute units
	Started bool
}

// Takes reports whether the message does something more that takes these units. It always does one
// thing.
func (w *Meter) Takes(units uint64) bool {
	if w.Left < units && w.Started {
		return false
	}
	w.Started = true
	w.Spends(units)
	return true
}

// Spends counts units that the message has taken besides.
func (w *Meter) Spends(units uint64) { w.Left -= min(w.Left, units) }

// Chunk returns up to where below n the message visits numbers from p on, at these units each. It
// returns p if there is no more work to do.
func (w *Meter) Chunk(p, n uint32, units uint64) uint32 {
	some := uint32(max(1, min(uint64(n-min(p, n)), chunkMost, w.Left/units)))
	if p >= n || !w.Takes(uint64(some)*units) {
		return p
	}
	return p + some
}

// chunkMost bounds a chunk. To look whether there is work left takes time, too.
const chunkMost = 64

// Each calls visit for the numbers below n that are left of a closing's stage, as far as the work
// goes, and reports whether the stage is done.
func (b Buffer) Each(w *Meter, n uint32, units uint64, visit func(p uint32)) bool {
	p := b.Header().Cursor()
	for to := w.Chunk(p, n, units); p < to; to = w.Chunk(p, n, units) {
		for ; p < to; p++ {
			visit(p)
		}
	}
	b.Header().SetCursor(p)
	return p >= n
}
