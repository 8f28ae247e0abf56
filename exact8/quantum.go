//go:build !sbf

package exact8

// quanta sets q to the elements of a block, rounded to integers, ties to even.
func quanta(q []int8, x []float32, e uint32) {
	for i, v := range x {
		q[i] = int8(quantum(v, factor(e)))
	}
}
