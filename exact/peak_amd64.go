package exact

func (kn Kernel) peakLoop() peakLoop {
	switch kn.name {
	case "avx512":
		return peakLoop{peakAVX512, 24, 16}
	case "avx2":
		return peakLoop{peakAVX2, 12, 8}
	}
	return peakLoop{peakPlain, peakVectorsPlain, 1}
}
