package exact

// A panel holds adjacent columns of a matrix, row after row, as tiles read them: nr columns of B,
// or mr rows of A as if they were columns. The last panel is padded with +0.

// panelLen returns the number of floats from one panel of the given depth and width to the next. It
// is rounded up to a cache line, so no vector crosses one. A further line keeps successive panels
// in different sets of the cache if the depth is a power of two.
func panelLen(depth, wide int) int { return roundUp(depth*wide, 16) + 16 }

// panels returns the number of floats of a packed matrix with the given depth and n columns.
func panels(depth, n, wide int) int { return roundUp(n, wide) / wide * panelLen(depth, wide) }

// packPanelsB copies B (k, n), with element [p,j] at b[p*brs+j*bcs], into panels: element [p,j]
// goes to dst[j/nr*panelLen(k,nr) + p*nr + j%nr].
func (kn Kernel) packPanelsB(dst, b []float32, k, n, brs, bcs int) {
	pack(dst, kn.nr, b, k, n, brs, bcs, kn.packB, kn.packColumns)
}

// packPanelsA copies A (m, k), with element [i,p] at a[i*ars+p*acs], into panels: element [i,p]
// goes to dst[i/mr*panelLen(k,mr) + p*mr + i%mr].
func (kn Kernel) packPanelsA(dst, a []float32, k, m, ars, acs int) {
	pack(dst, kn.mr, a, k, m, acs, ars, kn.packA, kn.packColumns)
}

// pack copies a matrix of depth rows and n columns, with element [p,x] at src[p*ps+x*xs], into
// panels of wide columns. The caller has checked the lengths of src and dst.
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
			if p := depth - 8; depth%8 != 0 { // the last 8 rows; some are copied twice
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

// packPanel defines the packing of one panel with cols columns.
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
