//go:build counted

package costs

import "testing"

// Whoever sends wrong messages must not make replicas work more than whoever sends right ones.
func TestRefusalsAreNotDearerThanAcceptances(t *testing.T) {
	rows, err := Run(10, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		t.Logf("%-22s %5d  accepted %3d %+v  refused %4d %+v", r.Kind, r.Members, r.Accepts, r.Accepted, r.Refusals, r.Refused)
		if r.Accepts == 0 {
			t.Errorf("%s among %d: never accepted", r.Kind, r.Members)
		}
		for _, text := range r.Dear {
			t.Errorf("%s among %d members, accepted for %+v: %s", r.Kind, r.Members, r.Accepted, text)
		}
	}
}
