//go:build !linux

package client

import "time"

var began = time.Now()

func cpuTime() time.Duration { return time.Since(began) }
