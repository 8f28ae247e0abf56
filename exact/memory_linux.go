//go:build !sbf

package exact

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// largePage is the size of a large page on most processors. Where it is another, the system rounds.
const largePage = 2 << 20

// largePages asks for large pages where s has whole ones, so that it takes no more memory than
// before.
func largePages[T any](s []T) {
	var t T
	size := cap(s) * int(unsafe.Sizeof(t))
	if size < largePage {
		return
	}
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), size)
	skip := -int(uintptr(unsafe.Pointer(&bytes[0]))) & (largePage - 1)
	if whole := (size - skip) &^ (largePage - 1); skip < size && whole > 0 {
		_ = unix.Madvise(bytes[skip:skip+whole], unix.MADV_HUGEPAGE) // a hint
	}
}
