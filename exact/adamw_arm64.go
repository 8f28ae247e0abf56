package exact

func (kn Kernel) adamw() adamwKernel {
	if kn.name == "neon" {
		return adamwNEON
	}
	return nil
}
