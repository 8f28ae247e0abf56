// Grafana reads a dashboard by Grafana's own types and fails if it has a field that these do not
// have, or lacks one that they require:
//
//	go run . ../../../packaging/grafana.json
//
// It is a module of its own, so that the program does not depend on Grafana's.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

func main() {
	if err := check(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func check(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	plugins.RegisterDefaultPlugins()
	var board dashboard.Dashboard
	// The error may be an empty list; then there are no panels yet.
	if err := board.UnmarshalJSONStrict(b); err != nil && err.Error() != "" {
		return err
	}
	board = dashboard.Dashboard{}
	if err := json.Unmarshal(b, &board); err != nil {
		return err
	}
	if err := board.Validate(); err != nil {
		return err
	}
	queries := 0
	for i, p := range board.Panels {
		if p.Panel == nil {
			continue // a row
		}
		// Options of a panel that is not known are not looked at.
		if _, ok := p.Panel.Options.(map[string]any); ok {
			return fmt.Errorf("panel %d: Grafana has no type %q", i, p.Panel.Type)
		}
		queries += len(p.Panel.Targets)
	}
	fmt.Println(len(board.Panels), "panels and rows,", queries, "queries")
	return nil
}
