package exact

import (
	"bytes"
	"os"
	"os/exec"
	"testing"
)

func TestGeneratedFilesAreWhatTheGeneratorWrites(t *testing.T) {
	for name, file := range map[string]string{"amd64": "kernels_amd64.s", "amd64.go": "kernels_amd64.go", "arm64": "kernels_arm64.s", "arm64.go": "kernels_arm64.go"} {
		want, err := exec.Command("go", "run", "./internal/gen", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what the generator writes: run go generate", file)
		}
	}
}
