package main

import (
	"strings"
	"testing"
)

func TestGroups(t *testing.T) {
	small := []string{"groups", "--model", "nano", "--machines", "20", "--stages", "5", "--sequences", "8", "--tokens", "128"}
	out := ok(t, append(small, "--link", "50,2000")...)
	for _, want := range []string{"50 Mb/s", "2000 Mb/s", "layers from disk", "captured, 30 %"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	fails(t, append(small, "--link", "0"), "want above 0")
	fails(t, []string{"groups", "--model", "nano", "--stages", "6"}, "want 1 to the 5 layers")
	fails(t, []string{"groups", "--model", "2"}, "unknown model preset")
}
