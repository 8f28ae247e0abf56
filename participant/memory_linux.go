package participant

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// MemoryFree returns how many bytes this process can still take: what the system calls available,
// or what its control group leaves if that is less; 0 if neither is known.
func MemoryFree() uint64 {
	free := uint64(0)
	if b, err := os.ReadFile("/proc/meminfo"); err == nil {
		free = memAvailable(string(b))
	}
	if b, err := os.ReadFile("/proc/self/cgroup"); err == nil {
		for dir := cgroupDir(string(b)); strings.HasPrefix(dir, "/sys/fs/cgroup"); dir = filepath.Dir(dir) {
			most, used := fileNumber(filepath.Join(dir, "memory.max")), fileNumber(filepath.Join(dir, "memory.current"))
			if most > 0 && (free == 0 || most-min(used, most) < free) {
				free = most - min(used, most)
			}
		}
	}
	return free
}

// memAvailable reads /proc/meminfo.
func memAvailable(text string) uint64 {
	for _, line := range strings.Split(text, "\n") {
		if rest, ok := strings.CutPrefix(line, "MemAvailable:"); ok {
			kb, err := strconv.ParseUint(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 50)
			if err != nil {
				return 0
			}
			return kb << 10
		}
	}
	return 0
}

// cgroupDir returns the directory of the version 2 control group in /proc/self/cgroup, or "".
func cgroupDir(text string) string {
	for _, line := range strings.Split(text, "\n") {
		if path, ok := strings.CutPrefix(line, "0::"); ok {
			return filepath.Join("/sys/fs/cgroup", path)
		}
	}
	return ""
}

// fileNumber returns the number in a file; 0 if there is none, as in "max".
func fileNumber(path string) uint64 {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 63)
	if err != nil {
		return 0
	}
	return n
}
