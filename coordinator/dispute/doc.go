// Package dispute is the part of a run's rules about verification: checks and their verdicts,
// disputes, convictions, and the tokens and points that these cost and earn. It works on its own
// parts of the run's buffer, the tables of checks, disputes and convictions, and on the trust,
// stakes and points of members. The coordinator draws the checks; its section on verification says
// which.
//
// # Disputes
//
// The step of a share is a program: operations, each of which makes one value, cut into tiles, each
// made in slices. A trace commits to all of it by three nested trees of package bisect:
//
//	trace                 its leaves are the operations'
//	  operation           root over its tiles; the last operation is Outcome(commitment) itself
//	    tile              root over its slices
//	      slice           bisect.Leaf of the words after that slice
//
// A dispute finds the first operation, then its first tile, then the first slice, at which two
// traces differ. Both sides agree on everything before, from which the slice is computed, and the
// Referee recomputes that one slice.
//
//	tie-breaking  up to three members, drawn by the block's chance, vote (TieBreak) within VerifyMs
//	defending     the accused shows its trace and proves that it ends with the commitment (Defend)
//	descending    both Reveal the sixteen children of the node at which they differ; the first that
//	              differs is the next node. Trees of one leaf are skipped. A leaf behind the end of
//	              a tree is padding, and convicts the side for which it is not zero
//	evidence      the accuser opens the slice (Evidence), and the referee judges; if neither side
//	              is right both are convicted
//
// Each move has DisputeMs after the one before; both reveals of a node have the same deadline.
// Silence loses, and so does Concede, which is allowed once the votes are counted. If both sides
// are silent the accuser loses. An accused that is silent gets a strike instead, if at least two
// tie-breakers voted and none VoteWrong. A move that is refused may be repeated until the deadline.
//
// An accuser that loses, falls silent, concedes, or is ejected for another offence may have done so
// on purpose. A tie-breaker that voted VoteWrong then takes its place, if it has a trace other than
// the accused's and the disproved one, and the descent starts over. Only if there is none is the
// accused free. One honest verifier or tie-breaker is therefore enough to convict a liar that
// answers, and a member that computes correctly and answers in time is never convicted. A dispute
// ends within VerifyMs and four times (2 + the levels of the three trees) moves.
//
// At the end the accuser and the tie-breakers that voted for the outcome earn the share's sequences
// in points. A tie-breaker must have named the trace of the side that won, blind too, so that it
// has computed it: what others name cannot be copied. If the accused gives up before the accuser
// has shown its trace no vote can be compared, and none is paid. Tie-breakers that voted against
// what was proven get a doubt of 16. An accused that was proven right has passed a check.
//
// A failure to serve cannot be proven, so the tie-breakers must agree. If all that vote, and at
// least two where that many were drawn, were not served either, the author gets a strike: it is
// dropped, pays the fee of an Absence, loses its unsettled points, and has a doubt of 16. The third
// strike convicts it (NotServing). Strikes are forgiven when four checks have passed since the last
// one, so that its doubt is 12. Otherwise a tie-breaker that was served, first of all one
// that voted VoteWrong, makes the check instead, with new time; it cannot vote Unserved again, and
// the verifier has skipped a check.
//
// An Equivocation, two commitments by one member for one round, needs no dispute. Any key may send
// it.
//
// # Convictions
//
// A convicted member is ejected and forfeits its stake and its unsettled points. Half of the stake
// goes to the member that proved the offence (for a false accusation the accused, once it is free),
// and the rest to the treasury. For an equivocation it is a sixteenth, since an accomplice could
// send the proof. But if the member stands accused, the oldest dispute decides who gets half,
// whatever the member is convicted of: it could choose the offence, and the dispute that it loses,
// to reward an accomplice. Only for NotServing, which nobody proves, is there no reward. Members
// that recomputed a share for a dispute that ends because its accused is ejected are paid as if the
// accuser had won. The member's pending results are never accepted, and it leaves all checks and
// disputes.
//
// A lesser offence costs an eighth of the stake and the place among the active. Absence is recorded
// when a member with a stake is dropped for missed results, idle elections or skipped checks.
// Contradiction is a witness astray three times in a row. The state keeps the last 64 convictions,
// each with the hash of the decisive message and the rounds in which the member's results entered
// the model.
//
// The package is replicated (see package wire).
package dispute
