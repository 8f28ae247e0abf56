//go:build !amd64 && !arm64

package exact

func (kn Kernel) adamw() adamwKernel { return nil }
