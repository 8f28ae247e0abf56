//go:build !amd64 && !arm64

package exact

func (kn Kernel) peakLoop() peakLoop { return peakLoop{peakPlain, peakVectorsPlain, 1} }
