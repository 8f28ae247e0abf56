package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/entrain-network/entrain/exact"
)

// versionInfo is what the program knows about itself.
type versionInfo struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Modified bool   `json:"modified"` // the working tree had changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Kernels  string `json:"kernels"`
}

// String shows what this program is, and which kernels it computes with on this processor.
func (v versionInfo) String() string {
	return fmt.Sprintf("entrain %s\ncommit  %s\ngo      %s %s\nkernels %s", v.Version, v.commit(), v.Go, v.Platform, v.Kernels)
}

// commit is the commit, and whether the tree had changes.
func (v versionInfo) commit() string {
	if v.Modified {
		return v.Commit + " with changes"
	}
	return v.Commit
}

// release is the version of builds that do not come from a module proxy or a tagged commit, set by
// go build -ldflags "-X main.release=v1.2.0".
var release string

func version() versionInfo {
	v := versionInfo{Version: "(devel)", Commit: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Kernels: exact.Kernels()[0].Name()}
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
	return v
}
