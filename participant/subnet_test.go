package participant

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// A subnet takes weights at once, then wants them hidden: the next period's wait until they are shown, and Close until the last are.
func TestWeightsAreSetOrHiddenAndShown(t *testing.T) {
	var did []string
	w := &Weigher{netuid: 7, settled: make(chan uint32, 1), Tell: func(text string) { did = append(did, text) }}
	sets, shows := 0, 0
	w.Settled(1)
	w.Settled(2) // only the newest counts
	w.follow(t.Context(), time.Millisecond, func() (string, bool, error) {
		sets++
		if sets < 4 {
			w.Settled(uint32(sets) + 2)
		} else if sets == 5 {
			w.Close()
		}
		return fmt.Sprint("set ", sets), sets > 2, []error{nil, errors.New("no endpoint"), nil, nil, nil}[sets-1]
	}, func() (bool, error) {
		shows++
		switch {
		case shows < 3, shows == 5:
			return false, errors.New("too early")
		case shows == 4:
			w.Settled(6)
			return true, errors.New("too late")
		}
		return true, nil
	})
	want := []string{"period 2: set 1", "period 3: .*not set: no endpoint", "period 4: set 3", "period 4: .*shown and count", "period 5: set 4",
		"period 5: .*not shown in time.*too late", "period 6: set 5", "period 6: stays until", "period 6: .*shown and count"}
	for i := range want {
		parts := strings.Split(want[i], ".*")
		if i >= len(did) || !strings.HasPrefix(did[i], parts[0]) || slices.ContainsFunc(parts, func(s string) bool { return !strings.Contains(did[i], s) }) {
			t.Fatalf("%q, want %q", did, want)
		}
	}
	if len(did) != len(want) || shows != 6 {
		t.Errorf("%q, want %q; %d tries to show", did, want, shows)
	}
}

// Three periods encrypt weights for one epoch, of which the last count, and a fourth those for the next, which the chain drops.
func TestTimelockedWeightsThatAreNotShownAreMissed(t *testing.T) {
	minute := func(n int) time.Time { return time.Unix(int64(60*n), 0) }
	rows := []map[uint16]uint16{{0: 65535}, {1: 65535}, {2: 65535}, {3: 65535}, {4: 65535}}
	w := &Weigher{}
	for i, due := range []int{60, 60, 60, 120} {
		w.locked = append(w.locked, lockedRow{rows[i], minute(due)})
	}
	for _, c := range []struct {
		now   int
		shown int
		want  bool
		left  int
	}{{30, 4, false, 4}, {59, 1, false, 2}, {61, 2, false, 1}, {110, 2, false, 1}, {121, 2, true, 0}, {130, 2, false, 0}} {
		if got := w.dropped(rows[c.shown], minute(c.now)); got != c.want || len(w.locked) != c.left {
			t.Errorf("after %d minutes with row %d: dropped is %v, %d are left", c.now, c.shown, got, len(w.locked))
		}
	}
}
