package opticks

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"testing"
)

// Figures in docs/ are of these bytes.
func TestTheTextIsWhole(t *testing.T) {
	path, err := Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(b)
	if got := hex.EncodeToString(sum[:]); got != "d4a9ac22462b35e7821a4f2706c211093da678620a8f9997989ee7cf8d507bbd" {
		t.Errorf("SHA-256 %s", got)
	}
}
