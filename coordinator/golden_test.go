package coordinator

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// goldenFile lists, for each scenario, the SHA-256 of every message that was sent and of the whole
// state after every command. It pins each byte of the buffer and of the encodings.
const goldenFile = "testdata/bytes.sha256"

// compareGolden checks the hashes of all scenarios against goldenFile.
func compareGolden(t *testing.T, hashes map[string]string) {
	t.Helper()
	var lines []string
	for name, hash := range hashes {
		lines = append(lines, hash+"  "+name+"\n")
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[64:], b[64:]) })
	got := strings.Join(lines, "")
	want, err := os.ReadFile(goldenFile)
	if *update && os.IsNotExist(err) {
		if err := os.WriteFile(goldenFile, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(want)) {
		hash, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if hashes[name] != hash {
			t.Errorf("%s: messages and states hash to %s, not to %s", name, hashes[name], hash)
		}
	}
	if got != string(want) && !t.Failed() {
		t.Errorf("%s does not list the scenarios that there are; it should be\n%s", goldenFile, got)
	}
}
