package participant

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTheLogOfScoresTurns(t *testing.T) {
	dir := t.TempDir()
	l, err := openScoreLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	l.size = scoreLogMost + 1
	for range 2 {
		if err := l.add(struct{}{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.close(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{ScoreLogName: "{}\n{}\n", ScoreLogName + ".1": ""} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != want {
			t.Errorf("%s holds %q, %v", name, b, err)
		}
	}
}
