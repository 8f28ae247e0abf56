package participant

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/model"
	"github.com/entrain-network/entrain/participant/trainer"
)

func TestAFullDiskIsRefusedFirst(t *testing.T) {
	z := trainer.Sizes{Parameters: 1_000_000, State: 8_000_000}
	a := Applicant{state: "/state", disk: 32_000_000, checkpoints: 3}
	if list := a.cramped("r", z); len(list) != 0 {
		t.Errorf("got %v", list)
	}
	a.disk--
	list := a.cramped("r", z)
	if len(list) != 1 || list[0].Kind != obstacleDisk || list[0].passes {
		t.Fatalf("got %v", list)
	}
	for _, want := range []string{"32.0 MB of disk in /state", "32.0 MB are free", "--state DIR"} {
		if !strings.Contains(list[0].Reason, want) {
			t.Errorf("%q does not say %q", list[0].Reason, want)
		}
	}
	if a.disk = 0; len(a.cramped("r", z)) != 0 {
		t.Error("a disk that nothing is known of is refused")
	}
	f := Fetching{Fetcher: model.Fetcher{Cache: model.Cache{Dir: "/cache"}}, free: func(string) uint64 { return 7_999_999 }}
	if err := f.room(1_000_000); err == nil || !strings.Contains(err.Error(), "8.0 MB of disk in /cache") || !strings.Contains(err.Error(), "XDG_CACHE_HOME") {
		t.Errorf("got %v", err)
	}
	if err := f.room(999_999); err != nil {
		t.Error(err)
	}
	f.free = func(string) uint64 { return 1 << 62 }
	if err := f.room(1 << 50); MemoryFree() > 0 && (err == nil || !strings.Contains(err.Error(), "of memory")) {
		t.Errorf("a model of 4 PB: %v", err)
	}
}

// What a member has on the disk already is not needed a second time.
func TestTheOwnFilesCountAsRoom(t *testing.T) {
	dir := t.TempDir()
	empty := diskRoom(dir)
	if empty == 0 {
		t.Skip("this system does not tell how much is free")
	}
	const own = 1 << 40 // sparse
	if err := os.MkdirAll(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "sub", "state")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, own); err != nil {
		t.Skip(err)
	}
	if with := diskRoom(dir); with < own {
		t.Errorf("%d bytes with the own files, %d without", with, empty)
	}
	if diskRoom(filepath.Join(dir, "not", "yet")) == 0 || diskRoom("") != 0 {
		t.Error("a directory that is not there yet has its parent's disk")
	}
}
