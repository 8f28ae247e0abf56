// Package freeport finds ports for tests whose servers must be told theirs before they start.
package freeport

import (
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"testing"
)

// next is where the next call begins to search. It starts at a place that depends on the process,
// so that tests that run at the same time rarely meet.
var next atomic.Int64

func init() { next.Store(int64(os.Getpid()) * 64) }

// First returns the first of n consecutive TCP ports of 127.0.0.1 at which nothing listens. They
// are below the ports that a system gives to servers that ask for any one, so that no such server
// takes them first.
func First(t testing.TB, n int) int {
	t.Helper()
search:
	for range 1000 {
		first := 10_000 + int((next.Add(int64(n))-int64(n))%20_000)
		for i := range n {
			l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", first+i))
			if err != nil {
				continue search
			}
			l.Close()
		}
		return first
	}
	t.Fatal("no free ports between 10000 and 30000")
	return 0
}
