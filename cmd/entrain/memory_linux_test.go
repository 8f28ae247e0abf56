package main

import (
	"flag"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/entrain-network/entrain/founding"
)

var (
	memoryPreset  = flag.String("preset", "", "model of TestMemoryOfAMember; it takes 40 bytes a parameter")
	memoryOverlap = flag.Int("overlap", 1, "its overlap")
	memorySteps   = flag.Int("steps", 6, "its steps")
	memoryBatch   = flag.Int("batch", 24, "sequences of 32 tokens in its batch")
	memoryMembers = flag.Int("members", 2, "its members; one has nobody who checks its results")
	memoryChecks  = flag.Int("checks", 100, "percentage of its results that are checked")
)

// measuredRun is a run of two members, who check each other's results. Its steps are short, so that
// hardly any memory is of activations.
const measuredRun = `
name = "measured"
steps = %[1]d
[model]
%[2]s
[data]
location = %[3]q
sequence = 32
[optimizer]
codec = "distro"
[batch]
start = %[4]d
[learning_rate]
warmup = 2
[members]
min = %[5]d
start = %[5]d
overlap = %[6]d
[times]
waiting = "0s"
warmup = "10m"
round_train = "10m"
round_witness = "5s"
cooldown = "1m"
epoch = "1h"
[trust]
verification_percent = %[7]d
`

// wideModel has 19 million parameters, so that versions are kept in files.
const wideModel = `
hidden = 1024
layers = 2
heads = 8
kv_heads = 4
head_dim = 128
ffn = 2048
context = 64`

// TestMemoryOfAMember measures the most memory that a member takes, in a process of its own.
func TestMemoryOfAMember(t *testing.T) {
	if *memoryPreset == "" {
		t.Skip("it is a measurement: name a model with -preset wide, 50m, 124m or 350m")
	}
	s := newShell(t)
	s.console.env = startReplica(t)
	dir := t.TempDir()
	model := wideModel
	if *memoryPreset != "wide" {
		model = fmt.Sprintf("preset = %q", *memoryPreset)
	}
	file := writeFile(t, filepath.Join(dir, "run.toml"), fmt.Sprintf(measuredRun, *memorySteps, model, s.data(), *memoryBatch, *memoryMembers, *memoryOverlap, *memoryChecks))
	needs := object[founding.Preview](s, "run", "create", "--dry-run", "--few-witnesses", "-f", file, "--json").Needs
	s.ok("run", "create", "--few-witnesses", "-f", file)
	t.Setenv("GOGC", "100") // as in the product
	var members []*process
	for i := range *memoryMembers {
		name := filepath.Join(dir, fmt.Sprint("member", i))
		members = append(members, startMember(t, s.console.env("ENTRAIN_CHAIN"), "measured", "--key", name+".key", "--state", name))
	}
	passed := make(chan int, len(members))
	for _, m := range members {
		go func() {
			n := 0
			defer func() { passed <- n }() // even if it ended too early
			for m.until("finished", 0); len(m.events) > 0; m.events = m.events[1:] {
				if ev := m.events[0]; ev.Kind == "verdict" && ev.Status == "passed" {
					n++
				}
			}
		}()
	}
	for range members {
		t.Logf("a member has computed %d results again, of %d", <-passed, *memorySteps)
	}
	for i, m := range members {
		if err := m.wait(); err != nil {
			t.Error(err)
		}
		most, parameters := float64(m.cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss<<10), float64(needs.Parameters)
		t.Logf("member %d: %.1f million parameters, %.1f MB in memory at most, %.2f bytes a parameter; estimated %.1f MB, %.2f bytes a parameter",
			i, parameters/1e6, most/1e6, most/parameters, float64(needs.Memory)/1e6, float64(needs.Memory)/parameters)
		// How many checks are under way at once is the machine's speed. The program takes some itself.
		if *memoryChecks == 0 && most > 1.1*float64(needs.Memory)+100e6 {
			t.Errorf("member %d takes more than was estimated", i)
		}
	}
}
