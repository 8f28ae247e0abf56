package main

import (
	"time"

	"github.com/entrain-network/entrain/view"
)

// Numbers are shown to people as the windows on a run show them.

func bytesText(n uint64) string      { return view.Bytes(n) }
func thousands(n uint64) string      { return view.Thousands(n) }
func minutes(d time.Duration) string { return view.Minutes(d) }
func short(hash string) string       { return view.Short(hash) }
func orDash(s string) string         { return view.OrDash(s) }
func percent(part, of uint64) uint64 { return view.Percent(part, of) }
