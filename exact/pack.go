package exact

// A panel is so many columns of a matrix side by side, row after row, as a tile reads them: nr
// columns of B, or mr rows of A, whose columns take the place of rows. What is wanting in the last
// panel is +0.

// panelLen is how many floats lie from panel to panel of that depth and width. Whole cache lines
// keep vectors within one; one line more keeps the panels off each other's places in the cache,
// where a depth that is a power of two would put them.
func panelLen(depth, wide int) int { return roundUp(depth*wide, 16) + 16 }

// panels is how many floats a matrix of that depth and n columns takes.
func panels(depth, n, wide int) int { return roundUp(n, wide) / wide * panelLen(depth, wide) }

// packPanelsB copies B (k, n), element [p,j] at b[p*brs+j*bcs], into panels: element [p,j] goes to
// dst[j/nr*panelLen(k,nr) + p*nr + j%nr].
func (kn Kernel) packPanelsB(dst, b []float32, k, n, brs, bcs int) {
	pack(dst, kn.nr, b, k, n, brs, bcs, kn.packB, kn.packColumns)
}

// packPanelsA copies A (m, k), element [i,p] at a[i*ars+p*acs], into panels: element [i,p] goes to
// dst[i/mr*panelLen(k,mr) + p*mr + i%mr].
func (kn Kernel) packPanelsA(dst, a []float32, k, m, ars, acs int) {
	pack(dst, kn.mr, a, k, m, acs, ars, kn.packA, kn.packColumns)
}

// pack copies a matrix of depth rows and n columns, element [p,x] at src[p*ps+x*xs], into panels of
// wide columns. Whoever calls has checked that src holds the matrix and dst the panels.
func pack(dst []float32, wide int, src []float32, depth, n, ps, xs int,
	rows func(rows, panels int, dst *float32, panel uintptr, src *float32, stride uintptr),
	columns func(depth, squares int, dst *float32, wide uintptr, src *float32, stride uintptr)) {
	panel := panelLen(depth, wide)
	full := n / wide
	switch {
	case full == 0:
	case xs == 1 && rows != nil:
		rows(depth, full, &dst[0], uintptr(4*panel), &src[0], uintptr(4*ps))
	case ps == 1 && columns != nil && wide%8 == 0 && depth >= 8:
		for x := range full {
			s, d := src[x*wide*xs:], dst[x*panel:]
			columns(depth&^7, wide/8, &d[0], uintptr(4*wide), &s[0], uintptr(4*xs))
			if p := depth - 8; depth%8 != 0 { // again some of the last rows
				columns(8, wide/8, &d[p*wide], uintptr(4*wide), &s[p], uintptr(4*xs))
			}
		}
	default:
		full = 0
	}
	for x := full * wide; x < n; x += wide {
		packPanel(dst[x/wide*panel:], wide, src[x*xs:], depth, min(wide, n-x), ps, xs)
	}
}

// packPanel packs one panel, of cols columns.
func packPanel(dst []float32, wide int, src []float32, depth, cols, ps, xs int) {
	if cols < wide {
		clear(dst[:depth*wide])
	}
	switch {
	case xs == 1:
		for p := range depth {
			copy(dst[p*wide:p*wide+cols], src[p*ps:])
		}
	case ps == 1:
		for x := range cols {
			for p, v := range src[x*xs : x*xs+depth] {
				dst[p*wide+x] = v
			}
		}
	default:
		for p := range depth {
			for x := range cols {
				dst[p*wide+x] = src[p*ps+x*xs]
			}
		}
	}
}
