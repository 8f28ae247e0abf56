package llama

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// The golden hash is reached on arm64 too, by NEON and by plain Go as its compiler makes it, here in an emulator.
func TestTheGoldenHashIsReachedOnARM64(t *testing.T) {
	if runtime.GOARCH == "arm64" {
		t.Skip("this is arm64: the other tests have shown it")
	}
	emulator, err := exec.LookPath("qemu-aarch64")
	if err != nil {
		t.Skip("qemu-aarch64 is not installed (Debian's package qemu-user has it)")
	}
	binary := filepath.Join(t.TempDir(), "llama.test")
	build := exec.Command("go", "test", "-c", "-o", binary, ".")
	build.Env = append(os.Environ(), "GOARCH=arm64", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building for arm64: %v\n%s", err, out)
	}
	for _, which := range []string{"tied/neon/2", "small/neon/4", "small/plain/1", "small/plain/2"} {
		const test = "TestTwentyStepsReachTheGoldenHash"
		pattern := "^" + test + "$/^" + strings.ReplaceAll(which, "/", "$/^") + "$"
		out, err := exec.Command(emulator, binary, "-test.v", "-test.run", pattern).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS: "+test+"/"+which) {
			t.Errorf("%s on arm64: %v\n%s", which, err, out)
		}
	}
}
