package main

import "runtime"

// defaultWorkers is how many goroutines compute unless told otherwise.
func defaultWorkers() int { return runtime.GOMAXPROCS(0) }
