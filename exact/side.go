package exact

// A sideCopy packs a block of A while tiles multiply the previous block. Its source is scattered in
// memory and would stall the processor if it were copied at once. A tile instead copies a piece, mr
// floats of a row, every few k. Pieces are copied row by row, each to its panel.
//
// The assembly of a tile updates the fields before src, in bytes; see sideFields in internal/gen.
type sideCopy struct {
	//lint:ignore U1000 the assembly uses them
	source, target         int // offsets of the next piece
	ahead                  int // from source to what is prefetched
	panel                  int // from one panel to the next
	left, panels           int // remaining pieces of this row, and pieces of a row
	nextSource, nextTarget int // from the end of a row to the start of the next
	rows                   int // remaining rows, including this one

	src, dst []float32
}

// sideAhead is the number of rows by which a sideCopy prefetches.
const sideAhead = 4

// begin prepares to pack A (m, k) as Kernel.packPanelsA does. Kernels whose tile does not copy
// leave all of it to end.
func (s *sideCopy) begin(kn Kernel, dst, a []float32, k, m, ars, acs int) {
	*s = sideCopy{src: a, dst: dst}
	if full := m / kn.mr; kn.sideCopies && ars == 1 && full > 0 {
		s.panel, s.panels, s.left, s.rows = 4*panelLen(k, kn.mr), full, full, k
		s.ahead = 4 * sideAhead * acs
		s.nextSource, s.nextTarget = 4*(acs-full*kn.mr), 4*kn.mr-full*s.panel
	}
}

// end packs the rest.
func (s *sideCopy) end(kn Kernel, k, m, ars, acs int) {
	full := s.panels * kn.mr // rows of A in full panels
	if from := k - s.rows; s.rows > 0 && full > 0 {
		kn.packA(s.rows, s.panels, &s.dst[from*kn.mr], uintptr(s.panel), &s.src[from*acs], uintptr(4*acs))
	}
	if full < m {
		kn.packPanelsA(s.dst[s.panels*panelLen(k, kn.mr):], s.src[full*ars:], k, m-full, ars, acs)
	}
	s.src, s.dst = nil, nil // releases the caller's memory
}
