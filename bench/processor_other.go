//go:build !unix

package bench

func processorSeconds() float64 { return 0 }
