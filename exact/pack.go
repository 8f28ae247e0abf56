package exact

// packB copies B (k, n), element [p,j] at b[p*brs+j*bcs], into panels of nr columns, each panel row after row: element [p,j] goes to
// dst[j/nr*nr*k + p*nr + j%nr]. Columns beyond n in the last panel become +0.
func (kn Kernel) packB(dst, b []float32, k, n, brs, bcs int) { kn.pack(dst, kn.nr, b, k, n, brs, bcs) }

// packA copies A (m, k), element [i,p] at a[i*ars+p*acs], into panels of mr rows, each panel column after column: element [i,p] goes to
// dst[i/mr*mr*k + p*mr + i%mr]. Rows beyond m in the last panel become +0.
func (kn Kernel) packA(dst, a []float32, k, m, ars, acs int) { kn.pack(dst, kn.mr, a, k, m, acs, ars) }

// packDepth is how many k are packed for all panels before the next: rows so few that what one panel leaves of a cache line is still there for the
// next.
const packDepth = 32

// pack copies a matrix of depth rows and n columns, element [p,x] at src[p*ps+x*xs], into panels of wide columns.
func (kn Kernel) pack(dst []float32, wide int, src []float32, depth, n, ps, xs int) {
	if n%wide != 0 {
		clear(dst[n/wide*wide*depth : (n/wide+1)*wide*depth])
	}
	step := depth
	if xs == 1 {
		step = packDepth
	}
	for p := 0; p < depth; p += step {
		rows := min(step, depth-p)
		for x := 0; x < n; x += wide {
			kn.gather(dst[x*depth+p*wide:], wide, src[p*ps+x*xs:], rows, min(wide, n-x), ps, xs)
		}
	}
}

// gather copies a matrix of depth rows and cols columns, element [p,x] at src[p*ps+x*xs], to rows that are wide floats apart:
// dst[p*wide+x] = src[p*ps+x*xs].
func (kn Kernel) gather(dst []float32, wide int, src []float32, depth, cols, ps, xs int) {
	switch {
	case xs == 1:
		if kn.copyRows != nil && cols%8 == 0 {
			// Whoever calls has checked that src holds depth rows, and made dst long enough for them.
			kn.copyRows(depth, cols, &dst[0], uintptr(4*wide), &src[0], uintptr(4*ps))
			return
		}
		for p := range depth {
			copy(dst[p*wide:p*wide+cols], src[p*ps:])
		}
	case ps == 1:
		done := 0
		if kn.transpose != nil && depth >= kn.square {
			// Squares in registers; what is left on the right is done below, what is left beneath overlaps the last square.
			for ; done+kn.square <= cols; done += kn.square {
				s := src[done*xs:]
				for p := 0; p < depth; p += kn.square {
					p := min(p, depth-kn.square)
					kn.transpose(&dst[p*wide+done], uintptr(4*wide), &s[p], uintptr(4*xs))
				}
			}
		}
		for x := done; x < cols; x++ {
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
