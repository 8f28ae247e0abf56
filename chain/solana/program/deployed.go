//go:build sbf && !replay

package main

import "github.com/entrain-network/entrain/wire"

// test refuses what only the program for tests can do.
func (c *call) test(uint8, *wire.Reader) error { return errData }
