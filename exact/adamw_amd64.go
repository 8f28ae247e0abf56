package exact

func (kn Kernel) adamw() adamwKernel {
	switch kn.name {
	case "avx512":
		return adamwAVX512
	case "avx2":
		return adamwAVX2
	}
	return nil
}
