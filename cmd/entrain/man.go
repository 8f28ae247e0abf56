//go:build man

package main

import (
	"log"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/entrain-network/entrain/participant"
)

// With the build tag man, the program writes the manual pages of the commands to a directory and
// does nothing else. The pages have the date of SOURCE_DATE_EPOCH.
//
//	go run -tags man ./cmd/entrain DIR
func init() {
	if len(os.Args) != 2 {
		log.Fatal("usage: go run -tags man ./cmd/entrain DIR")
	}
	seconds, _ := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64) // 0 if there is none
	date := time.Unix(seconds, 0).UTC()
	root := newRoot(console{
		in: os.Stdin, out: os.Stdout, err: os.Stderr, env: func(string) string { return "" },
		places: participant.Places{Config: "~/.config/entrain", Data: "~/.local/share/entrain", Cache: "~/.cache/entrain"},
	})
	root.DisableAutoGenTag = true
	ofAnyMachine(root)
	if err := doc.GenManTree(root, &doc.GenManHeader{Section: "1", Date: &date, Source: "entrain", Manual: "entrain"}, os.Args[1]); err != nil {
		log.Fatal(err)
	}
	os.Exit(0)
}

// ofAnyMachine removes from a command and those below it what depends on this machine.
func ofAnyMachine(cmd *cobra.Command) {
	if f := cmd.Flags().Lookup("workers"); f != nil {
		f.DefValue = "CORES"
	}
	for _, c := range cmd.Commands() {
		ofAnyMachine(c)
	}
}
