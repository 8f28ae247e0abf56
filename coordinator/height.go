package coordinator

// CountsBlocks reports whether the run waits for the ledger's height rather than its time. A ledger
// that makes blocks only when something happens must then make them for this run. That is so in the
// windows of a run with Buckets, and after the end of a run while scores are due.
func (s State) CountsBlocks() bool {
	return s.exchange() == Buckets && (s.Phase() == RoundTrain || s.Phase() == Finished && s.book().Due())
}
