package comet

// semaphore bounds how many hold it at once: its capacity.
type semaphore chan struct{}

// take takes a place, if one is free.
func (s semaphore) take() bool {
	select {
	case s <- struct{}{}:
		return true
	default:
		return false
	}
}

func (s semaphore) give() { <-s }

// connsOf returns how many connections of clients a process takes, given its limit on descriptors:
// half of it, or all but ownMax. The others are for blocks, state and replicas.
func connsOf(descriptors uint64) int {
	return int(min(max(descriptors/2, descriptors-min(descriptors, ownMax)), connsMax))
}

// streamsOf returns how many of these connections may be open streams.
func streamsOf(conns int) int { return conns / 4 * 3 }
