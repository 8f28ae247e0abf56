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
