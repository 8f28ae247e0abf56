package participant

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/entrain-network/entrain/exact"
)

// Program identifies the running program.
type Program struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Modified bool   `json:"modified"` // the working tree had changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Kernels  string `json:"kernels"` // of exact, on this processor
}

// ThisProgram returns what the build says. release and commit, unless "", are those of a build that
// comes neither from a module proxy nor from a repository.
func ThisProgram(release, commit string) Program {
	v := Program{Version: "(devel)", Commit: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Kernels: exact.Kernels()[0].Name()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	if release != "" {
		v.Version = release
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	if commit != "" {
		v.Commit = commit
	}
	return v
}

// String describes the program in four lines.
func (p Program) String() string {
	return fmt.Sprintf("entrain %s\ncommit  %s\ngo      %s %s\nkernels %s", p.Version, p.Built(), p.Go, p.Platform, p.Kernels)
}

// Built returns the commit, and whether the tree had changes.
func (p Program) Built() string {
	if p.Modified {
		return p.Commit + " with changes"
	}
	return p.Commit
}
