package vulkan

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/engine/vulkan/kernel"
	"github.com/entrain-network/entrain/llama"
)

// A proof is found again for the same device, driver and shaders, and a damaged one is not.
func TestProofsAreKept(t *testing.T) {
	first := device(t)
	mode, cache := first.Proof.Mode, t.TempDir()
	if first.remembered(cache).cached {
		t.Error("a proof that nobody has kept is remembered")
	}
	if err := first.remember(cache); err != nil {
		t.Fatal(err)
	}
	second, err := Open(0, cache)
	if err != nil {
		t.Fatal(err)
	}
	if !second.Proof.cached || second.Proof.Mode != mode || !second.Proof.Right {
		t.Errorf("%+v", second.Proof)
	}
	second.Close()
	if err := os.WriteFile(first.path(cache), []byte(`{"mode": 77}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if first.remembered(cache).cached { // Open makes it again, as it made the first
		t.Error("a damaged proof is taken")
	}
	files, err := filepath.Glob(filepath.Join(cache, "devices", "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if err := os.WriteFile(files[0], []byte(`{"mode": 0, "right": false, "reason": "it adds like an abacus"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Choose("vulkan:0", cache, llama.Exact, func(string) {}); err == nil || !strings.Contains(err.Error(), "abacus") {
		t.Errorf("a device that is known to be wrong: %v", err)
	}
}

func TestChoices(t *testing.T) {
	for _, choice := range []string{"", CPU, Auto, "vulkan:0", "vulkan:12", "vulkan:0,vulkan:1"} {
		if err := Check(choice); err != nil {
			t.Error(err)
		}
	}
	for _, choice := range []string{"gpu", "vulkan", "vulkan:", "vulkan:-1", "vulkan:300", "cuda:0", "list", "vulkan:0,", "vulkan:0,cpu"} {
		if Check(choice) == nil {
			t.Errorf("%q is a device", choice)
		}
	}
	if d, err := Choose(CPU, "", llama.Exact, nil); d != nil || err != nil {
		t.Error(d, err)
	}
	if _, err := Choose("vulkan:200", "", llama.Exact, nil); err == nil || !strings.Contains(err.Error(), "--device vulkan:200") {
		t.Errorf("device 200: %v", err)
	}
	// The only devices of a machine without a GPU are its processors, which auto does not take twice.
	var told []string
	d, err := Choose(Auto, t.TempDir(), llama.Exact8, func(text string) { told = append(told, text) })
	if err != nil || d == nil && len(told) == 0 {
		t.Error(d, told, err)
	}
	d.Close()
}

// Every mode has a name of its own.
func TestModesHaveNames(t *testing.T) {
	names := map[string]bool{}
	for _, m := range kernel.Modes() {
		names[m.String()] = true
	}
	if len(names) != 4 {
		t.Error(names)
	}
}
