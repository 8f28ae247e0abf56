//go:build !amd64

package vec

// named returns the assembly for a kernel of package exact: there is none.
func named(string) Kernel { return Kernel{} }

func below(int, int, *uint64, *uint64, *uint32, uint, *uint16) {
	panic("vec: no assembly for this processor")
}
