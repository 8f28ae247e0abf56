package bucket_test

import (
	"strings"
	"testing"

	"github.com/entrain-network/entrain/bucket"
)

func TestProbeFindsWhatIsWrongWithABucket(t *testing.T) {
	everyProvider(t, func(t *testing.T, p provider) {
		own, public := p.make(t, "probed")
		faults := func(own, public bucket.Location) (faults []string) {
			for _, f := range bucket.Probe(t.Context(), p.store(t, own), p.store(t, public)) {
				if f.Err != nil {
					faults = append(faults, f.What)
				}
			}
			return faults
		}
		if got := faults(own, public); len(got) > 0 {
			t.Errorf("a good bucket has the faults %q", got)
		}
		if got, want := strings.Join(faults(own, own), ", "), "the published credentials cannot write, the published credentials cannot replace, the published credentials cannot remove"; got != want {
			t.Errorf("when the owner's credentials are published: %s", got)
		}
		if got := strings.Join(faults(public, public), ", "); got != "the owner can write" {
			t.Errorf("when the owner cannot write: %s", got)
		}
		none := public
		none.Bucket = "not-probed"
		if got := faults(own, none); len(got) < 3 {
			t.Errorf("when another bucket is published: %q", got)
		}
		left, err := p.store(t, own).List(t.Context(), "", "", 10)
		if err != nil || len(left) > 0 {
			t.Errorf("left are %v, %v", left, err)
		}
	})
}
