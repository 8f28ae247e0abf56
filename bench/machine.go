package bench

import (
	"os"
	"runtime"
	"strconv"
	"strings"
)

// Machine describes the machine of a Report.
type Machine struct {
	Platform  string `json:"platform"`  // operating system and architecture
	Processor string `json:"processor"` // as the system names it; empty where it does not
	Cores     int    `json:"cores"`
	Memory    uint64 `json:"memory_bytes"` // 0 where it is not known
	Kernel    string `json:"kernel"`       // of package exact
}

func thisMachine(kernel string) Machine {
	return Machine{
		Platform:  runtime.GOOS + "/" + runtime.GOARCH,
		Processor: field("/proc/cpuinfo", "model name"),
		Cores:     runtime.NumCPU(),
		Memory:    kilobytes(field("/proc/meminfo", "MemTotal")),
		Kernel:    kernel,
	}
}

// freeMemory returns the bytes of memory available to programs, or 0 if unknown.
func freeMemory() uint64 { return kilobytes(field("/proc/meminfo", "MemAvailable")) }

// field returns what stands behind "name:" on the first such line of a file of the kind that
// Linux has in /proc, or "".
func field(path, name string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return "" // another system
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// kilobytes reads a value of /proc/meminfo, such as "24620228 kB", as bytes; 0 if it is none.
func kilobytes(value string) uint64 {
	number, ok := strings.CutSuffix(value, " kB")
	n, err := strconv.ParseUint(number, 10, 54)
	if !ok || err != nil {
		return 0
	}
	return n << 10
}
