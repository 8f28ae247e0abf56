package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/exact"
)

func versionCommand(c console) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show what this program is, and which kernels it computes with",
		Long: `Shows the module's version, the commit and the Go version it was built from, and the kernels chosen for
this processor. All kernels give the same bits; they differ in speed.`,
		Example: "  entrain version\n  entrain version --json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := version()
			if asJSON {
				return c.object(v)
			}
			commit := v.Commit
			if v.Modified {
				commit += " with changes"
			}
			_, err := fmt.Fprintf(c.out, "entrain %s\ncommit  %s\ngo      %s %s\nkernels %s\n", v.Version, commit, v.Go, v.Platform, v.Kernels)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

// versionInfo is what the program knows about itself.
type versionInfo struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Modified bool   `json:"modified"` // the working tree had changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Kernels  string `json:"kernels"`
}

// release is the version of a build that does not come from a module proxy or a tagged commit: go build -ldflags "-X main.release=v1.2.0".
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
