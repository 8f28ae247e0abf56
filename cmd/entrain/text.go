package main

import "github.com/entrain-network/entrain/view"

// Numbers are shown to people as the windows on a run show them.

func bytesText(n uint64) string { return view.Bytes(n) }
func thousands(n uint64) string { return view.Thousands(n) }
func short(hash string) string  { return view.Short(hash) }
func tokens(n uint64) string    { return view.Tokens(n) }
