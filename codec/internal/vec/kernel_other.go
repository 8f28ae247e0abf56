//go:build !amd64

package vec

// named returns the zero Kernel: there is no assembly.
func named(string) Kernel { return Kernel{} }

func below(int, int, *uint64, *uint64, *uint32, uint, *uint16) {
	panic("vec: no assembly for this processor")
}
