package participant

import "testing"

func TestMemoryIsTheLeastOfWhatIsKnown(t *testing.T) {
	for _, c := range [][3]uint64{{0, 0, 0}, {0, 5, 5}, {7, 0, 7}, {7, 5, 5}, {5, 7, 5}} {
		if got := memoryLimit(c[0], c[1]); got != c[2] {
			t.Errorf("%d or %d: got %d", c[0], c[1], got)
		}
	}
}
