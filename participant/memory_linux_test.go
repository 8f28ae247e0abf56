package participant

import "testing"

func TestFreeMemory(t *testing.T) {
	for text, want := range map[string]uint64{
		"MemTotal:  8 kB\nMemAvailable:      12 kB\nX: 1 kB\n": 12 << 10,
		"MemTotal:  8 kB\n":    0,
		"MemAvailable: a kB\n": 0,
	} {
		if got := memAvailable(text); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
	for text, want := range map[string]string{"0::/user.slice/a.service\n": "/sys/fs/cgroup/user.slice/a.service", "1:cpu:/\n0::/\n": "/sys/fs/cgroup", "1:cpu:/\n": ""} {
		if got := cgroupDir(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if free := MemoryFree(); free < 1<<20 {
		t.Errorf("%d bytes are free", free)
	}
}
