package exact

// A sideCopy packs a block of A while tiles multiply the block before it. What it reads lies far
// apart in memory, and would be waited for; a tile has time to copy a piece, mr floats of a row,
// now and then. It goes along the rows, piece by piece, each to its panel.
//
// The tile is in assembly and works on the fields before src, which are in bytes: see sideFields of
// internal/gen.
type sideCopy struct {
	//lint:ignore U1000 the assembly uses them
	source, target         int // where the next piece is, and where it goes
	ahead                  int // so far behind it lies what will be copied some rows later, which is asked for
	panel                  int // from one panel to the next
	left, panels           int // pieces of this row that are left, and of any row
	nextSource, nextTarget int // from the end of a row to the beginning of the next
	rows                   int // that are left, this one too

	src, dst []float32
}

// sideAhead is how many rows in advance a sideCopy asks for what it will read.
const sideAhead = 4

// begin sets out to pack A (m, k), as Kernel.packPanelsA does. Only kernels whose tile copies on
// the side do any of it before end.
func (s *sideCopy) begin(kn Kernel, dst, a []float32, k, m, ars, acs int) {
	*s = sideCopy{src: a, dst: dst}
	if full := m / kn.mr; kn.sideCopies && ars == 1 && full > 0 {
		s.panel, s.panels, s.left, s.rows = 4*panelLen(k, kn.mr), full, full, k
		s.ahead = 4 * sideAhead * acs
		s.nextSource, s.nextTarget = 4*(acs-full*kn.mr), 4*kn.mr-full*s.panel
	}
}

// end packs what is left.
func (s *sideCopy) end(kn Kernel, k, m, ars, acs int) {
	full := s.panels * kn.mr // rows of A, as columns, that were copied as far as
	if from := k - s.rows; s.rows > 0 && full > 0 {
		kn.packA(s.rows, s.panels, &s.dst[from*kn.mr], uintptr(s.panel), &s.src[from*acs], uintptr(4*acs))
	}
	if full < m {
		kn.packPanelsA(s.dst[s.panels*panelLen(k, kn.mr):], s.src[full*ars:], k, m-full, ars, acs)
	}
	s.src, s.dst = nil, nil // keeps no caller's memory alive
}
