package participant

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// A validator says once that its chain is away, and once that it is back.
func TestAChainThatIsAwayIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*awayEvery+time.Second)
		defer cancel()
		asked := 0
		var told []string
		tellAway(ctx, func(context.Context) error {
			if asked++; asked > 2 && asked < 6 {
				return errors.New("connection refused")
			}
			return nil
		}, func(text string) { told = append(told, text) })
		want := []string{"the chain does not answer: trying until it does", "the chain answers again"}
		if asked != 10 || !slices.Equal(told, want) {
			t.Errorf("asked %d times, told %q, want %q", asked, told, want)
		}
	})
}
