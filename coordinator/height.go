package coordinator

// CountsBlocks tells whether the run waits for the ledger's height rather than its time, so that a ledger which makes blocks
// only when something happens must make them for this run: in the windows of a run that exchanges by buckets, and after its
// end for as long as scores are due.
func (s State) CountsBlocks() bool {
	return s.exchange() == Buckets && (s.Phase() == RoundTrain || s.Phase() == Finished && s.book().Due())
}
