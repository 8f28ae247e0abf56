package exact

func (kn Kernel) peakLoop() peakLoop {
	if kn.name == "neon" {
		return peakLoop{peakNEON, 24, 4}
	}
	return peakLoop{peakPlain, peakVectorsPlain, 1}
}
