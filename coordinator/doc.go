// Package coordinator is the replicated state machine of a run. From messages, time and chance it
// decides who takes part, who trains on which data, who witnesses, which results enter the model,
// which parameters are agreed, which results are recomputed, who is convicted of what, and who is
// paid. It never sees a tensor. Hosts apply the same messages in the same order and get the same
// bytes; clients read them.
//
// This comment, that of package score, and schema.txt define the protocol. schema.txt has the
// meaning of each field.
//
// # Life of a run
//
//	WaitingForMembers --enough are present, and WaitingMs are over--> Warmup
//	Warmup --all are ready, or WarmupMs are over--> RoundTrain
//	RoundTrain --a quorum holds everything, or the round's time is over--> RoundWitness
//	RoundTrain --with Buckets: WindowBlocks are over, and nothing else--> RoundWitness
//	RoundWitness --all have reported, or RoundWitnessMs are over--> RoundTrain or Cooldown
//	Cooldown --two name a checkpoint's manifest, or CooldownMs are over-->
//	                                           WaitingForMembers, Paused or Finished
//	Warmup --too few are ready or present--> WaitingForMembers
//	WaitingForMembers, Warmup --Pause--> Paused --Resume--> WaitingForMembers
//	WaitingForMembers, Warmup, Paused --End--> Finished
//
// An epoch lasts from a Warmup to the next WaitingForMembers. Its members stay for the next one
// without joining again. Rounds are numbered from 1 over the whole run. One message makes a bounded
// number of transitions, each in O(members) or less. Hosts send a Tick in each block, so no phase
// gets stuck. A host whose messages may do little bounds the work of each (Env.Work): then Ticks
// work off the rest of the end of a round or warmup, and nothing else is taken until then.
//
// RoundTrain lasts RoundTrainMs at most. If a member failed in the round before, it lasts 4 times
// as long as the last complete RoundTrain, plus a second, if that is less.
//
// A warmup is lost if too few members are ready for an epoch, and fewer than a third of those that
// were present when it began. If lost warmups follow each other, the agreed parameters count as
// lost after three of them with no member ready, or seven others: the run returns to those of the
// last reported checkpoint, or else to the initial ones.
//
// # Life of a round
//
// When round r opens, its seed gives the active members their shares of the batch (see Shares) and
// elects its witnesses. With Overlap 1 the witnesses report about the results of round r-1, so that
// these travel while r is computed; with Overlap 0, about those of r itself. The round that they
// attest is called a below (RoundState.Attests).
//
//	Overlap 1      round 1    round 2    round 3    drain 4    drain 5    drain 6
//	trains         batch 1    batch 2    batch 3
//	attests                   1          2          3
//	model holds                          1          1 2        1 2 3      1 2 3   = its Params
//
// A report has three parts: an exact bitmap of the members whose results of a the witness holds; a
// Bloom filter of the commitments to them, so that of several commitments by one member everyone
// takes the same (State.Select); and the hashes of the witness's parameters at the start of r
// (Params) and of the round before (Prev). A report without them is refused.
// RoundTrain takes complete reports only. At the end of r:
//
//   - If a quorum of the elected witnesses names as Prev what a quorum of those of round r-1 named
//     as Params, these parameters of r-1 are agreed (State.Params). So two draws of witnesses must
//     name the same, and a gang that is a quorum of one by luck decides nothing.
//   - A member's result of a is accepted if a quorum holds it and the member has not been ejected,
//     and if the parameters at a's start are agreed. With Overlap 0 a quorum must have named them.
//   - The accepted results of r-1 earn one point for each sequence, if its parameters are agreed.
//   - All other sequences of a enter the redo queue, which the next batches take from first.
//   - A member whose result was not accepted has missed, if a quorum denies holding it, or if half
//     of the reports do and more than two thirds of the other members' results were accepted.
//     Otherwise the network may have been cut in two, and no member is charged. With Overlap 1
//     nobody misses a round between peers that follows one without agreed parameters, since its
//     results begin from states that were not accepted; reports are complete without them. Nor does
//     a member whose result of the round before was kept out although more than half held it.
//   - A witness that did not report was idle, if at least half of the elected reported. Otherwise
//     the ledger was out of reach, and no witness is charged. A member with more than MissedMax
//     idle elections in a row, or misses, is dropped. Four results accepted in a row make up for
//     one that was missed. A dropped member may join again.
//   - A witness of r-1 whose Params are not the Prev that more than half of r's witnesses name went
//     astray. If these are not a quorum, so did the witnesses of r that name another Prev, or,
//     without such a majority, those whose Prev is not what a quorum of r-1 named. After three such
//     reports in a row a witness is dropped.
//   - The next round opens. If the parameters of r-1 are agreed, its seed draws which of the
//     accepted results of r-1 are checked (see Verification).
//
// The quorum is committee.Quorum of the elected witnesses, so silence never lowers it. If the batch
// has fewer sequences than there are members, those without a share owe no result. Points and
// sequences are conserved. Every sequence given out is accepted once, waiting, in flight, or
// counted in RedoLost. The points of all members and PointsRetired add up to PointsTotal: one for
// each accepted sequence and one for each recomputed sequence (PointsVerified).
//
// # Shares
//
// The seed puts the active members in a line (committee.Trainers), in which the sequences of the
// batch are given out from the beginning. With EqualShares each has the same number, and the first
// ones one more if the batch does not divide evenly (batch.Split).
//
// With SpeedShares a member's share is in proportion to its speed in tokens a second, which it
// states itself in Join and SetSpeed. SetSpeed is allowed once an epoch, and must change the speed.
// A round uses the speeds stated when its epoch's first round opened (Round.Speed). Of a batch of B
// sequences for n members, with B at least n, a member of speed v has
//
//	1 if f*v < 1        M = min(B, ceil(ShareMost*B/n)) if f*v > M        else f*v, rounded
//
// with the one factor f for which the shares add up to B. No member goes without work, and none has
// more than ShareMost times the equal share. A speed of 0 counts as 1. f*v is rounded down; the
// remaining sequences go, one each, to the members that lost most by rounding, the first in the
// line of equal ones (batch.Division). Equal speeds give equal shares. If B is below n the first B
// in the line have one sequence each.
//
// Speeds are not checked, because a wrong one does not pay. A member that overstates its speed gets
// more work than it can finish. Late results are rejected, earn nothing, and eventually get the
// member dropped. A member that understates its speed gets less work and earns less. The cap bounds
// how much of a batch boasters cost. Where work is scored, the speed of a member whose average
// score is not above 0 counts as 1, whether its results were worthless or were never accepted.
//
// A check goes to the first in the line of verifiers whose speed is at least half of the author's,
// or else to the fastest one left. Tie-breakers are also drawn from members of that speed, if there
// are any.
//
// # Windows
//
// With Buckets, results travel through buckets, whose clocks and contents are not trusted, and a
// round is a window of the ledger's height, or of what the host counts in its place (see
// Config.Clock). RoundTrain lasts exactly WindowBlocks blocks, however early the members are done.
// Only an epoch's last drain round, in which nothing is trained or shown, ends with its quorum of
// reports. Overlap is 1: a member trains in window r+1 while its result of r is shown and fetched.
//
//	window r      the member trains its share and puts the ID of its signed commitment on the ledger
//	window r+1    its seed draws the slice of r (Round.SliceSeed); the member reveals the slice;
//	              witnesses fetch it and report whose they hold
//
// The seed is unknown while commitments are taken, so a member must have computed its whole result
// to be accepted. A commitment must be for the current round and name the sender's share. A second
// one is refused, and the two are an Equivocation. A result whose commitment is not on the ledger
// can be neither held nor accepted, and reports are complete without it. Reports have no filters.
//
// # Slots
//
// At most Slots members are present at a time. A newcomer, or a member that was replaced, pays
// RegisterCost to the treasury. When all slots are taken it replaces the member with the lowest
// average score, the latest of equal ones. The average moves by a quarter to each new s; it is 0
// before the first, and s = 0 for a period in which a member had shares and no accepted result.
//
// A member is immune for ImmuneWindows rounds from the first epoch that it takes part in, and
// before that epoch. One member is replaced per window at most. A member that left or was dropped
// returns without paying, and replaces only a member with a lower average than its own. Without
// validators no member is replaced. A replaced member keeps its place in the table, its stake and
// what it is owed, like one that left; Slots should therefore be less than Limits.Members.
//
// # Verification
//
// A trainer signs a Commitment to its result before anyone sees it. When the parameters of round a
// are agreed, round a+2 opens. Its seed, which was unknown while a's results were made, draws
// VerificationPercent of a's accepted results to be checked, and their verifiers: the active
// members in the order of committee.Verifiers, one check each as far as they go, and none of its
// own result. Each result is drawn by itself, with a chance in proportion to its author's doubt, so
// that the percentage is the expected share. A chance above one is one, and the rest is divided
// among the others in proportion. Doubt is 8 for a newcomer, 1 less for each check passed, at least
// 1, and 16 after a failure. Nothing is drawn if fewer than two members are active.
//
// A check names everything needed: round, epoch, step, author, verifier, share and parameters. The
// verifier has VerifyMs to recompute the share and give a verdict:
//
//   - Pass: the result was the same. The verdict opens the commitment's Work by the gradient's
//     root, which only a member that computed the gradient knows. A wrong root convicts the
//     verifier (FalsePass). The verifier earns the share's sequences in points.
//   - Accuse: the result was another. A dispute opens, in which the accuser is bound to the root
//     of its own trace. It names a hash of its key and the root (dispute.Blind), and shows the root
//     by its first Reveal. If the commitment names another epoch, share or parameters than the
//     check, its signer is convicted at once (WrongResult).
//   - Unserved: the author does not serve what is needed. A dispute opens in which only
//     tie-breakers vote. Such disputes take half of the places at most.
//
// With Buckets nobody serves optimizer states. There a share is recomputed up to its gradient,
// which Work binds; of its outcome, payload and state are what the commitment says.
//
// After VerifyMs the check lapses. A silent verifier has skipped a check, which counts like an idle
// election, unless no place is free for an Unserved. A Pass takes one skip off. A check also lapses
// ten rounds after that of the result, if no other place is free for a new one.
//
// # Disputes and convictions
//
// They are the rules of package dispute, which states them.
//
// # Tokens
//
// The host keeps a run's tokens in one account, the escrow; the state says whose they are. Escrow
// is the sum of the treasury and of all stakes, balances and unvested rewards. Env.Value is what is
// attached to a message: Join, Deposit and RegisterValidator add it to a stake, Fund to the
// treasury. Claim pays to the member's payee: the settled and unpaid points at Rate, as far as the
// treasury goes; the balance; and the stake if it is free. If that is nothing it pays what the
// sender earned as a validator.
//
// A stake is free UnbondMs after its member left or was dropped, or after the run finished, if the
// member has no result in flight and no part in an open check or dispute. A payee cannot change
// while anything is owed to it.
//
// Points settle at the end of an epoch, after which no conviction takes them. Those of a member
// with an open check or dispute settle one epoch later, or at its Claim when no epoch is running
// and nothing is open.
//
// # End of an epoch
//
// An epoch drains when EpochMs are over, TotalSteps are made, a pause or end is pending, fewer than
// MinMembers are active, a round had no quorum of reports, or the parameters of three rounds in a
// row were not agreed. The next Overlap+2 rounds are then drain rounds: nothing is trained, the
// results in flight are attested, and the last two agree on the parameters that hold all of them.
// If they do not, the last is repeated, three times at most. Then the epoch is rolled back: members
// return to State.Params, and results accepted since are lost to the model, though their points
// stand. If all members leave, the epoch ends at once in the same way. Up to three members that
// named the agreed parameters are chosen to write the checkpoint. All write the same bytes. The
// checkpoint's manifest is what most of them name. Cooldown ends when two name the same, or when
// all have named one.
//
// # Members
//
// A member keeps its place in the table, and so its index, while it is present. One that leaves or
// is dropped keeps the place and its points until the table is full and a newcomer needs it. A
// newcomer takes the place of the member gone longest, unless a round of the running epoch, a check
// or a dispute mentions that member. Rounds of ended epochs that mention it are erased. Members
// that are owed tokens come last, and only if they can be paid at once (see PlaceMs). An ejected
// member cannot join again; its place is given away only if no other can be. A member that joins
// during an epoch takes part from the next one on. Its stake is Config.Stake at least.
//
// # The buffer
//
// The state is one flat buffer, which is its own canonical encoding. Numbers are little endian, at
// multiples of their size; bytes that no field covers are zero. The limits fix its size (Size: 154
// KiB for 256 members and 32 witnesses, 4.4 MiB for 10,000 members; 162 KiB and 4.8 MiB with
// buckets and 8 or 16 validators). Its hash is the Merkle root over its pages of 1 KiB. Each part
// begins at a page:
//
//	header       1 page
//	members      a Member for each place
//	redo queue   64 Spans
//	ring         4 slots; round r is in slot r mod 4
//	checks       as many places as a quarter of the members, but at least 64
//	disputes     16 places
//	convictions  64 places; number n is in place (n-1) mod 64
//	validators   a Seat for each of the limits; without any this part and those below are empty
//	tallies      3, each a Tally and a Work for each member; period p is in place p mod 3
//	ballots      2, each a Period, a Ballot for each seat, and for each seat a U16 for each member:
//	             the score + 32768, 0 = none; period p is in place p mod 2
//
// A slot is its fixed part (Slot) and then, with b = members/8 rounded up to 8 bytes and w the
// limit of witnesses:
//
//	w Elected, then to a multiple of 8
//	w Report
//	b active   b expected   b accepted: bitmaps by members' places, bit i%8 of byte i/8
//	U8 for each member: reports that hold its result of this round, then to a multiple of 8
//	filters of the reports, by seats, FilterBits/8 bytes each; with buckets a Commit for each member
//	with room for speeds, a Share for each member
//
// The package comment of internal/record lists the fields of all parts with their offsets.
//
// # Messages
//
// A message is its kind in one byte, then its fields. Bytes, Hashes and Scores are a U32 length and
// their elements; a score is U32 member and U16 score, in two's complement. Signed is a commitment
// and its signature (Signed.Append).
//
//	 0 Tick
//	 1 Join               U32 Speed, Key Payee
//	 2 Withdraw
//	 3 Ready              U32 Epoch, Hash Params
//	 4 Witness            U32 Round, Bool Complete, Hash Params, Hash Prev, Bytes Held,
//	                      Bytes Commitments
//	 5 Checkpoint         U32 Epoch, Hash Params, Hash Manifest
//	 6 Pause
//	 7 Resume
//	 8 Pass               U32 Round, U32 Member, Signed Commitment, Hash Gradient
//	 9 Accuse             U32 Round, U32 Member, Signed Commitment, Hash Trace
//	10 Unserved           U32 Round, U32 Member
//	11 TieBreak           U32 Dispute, U8 Vote, Hash Trace
//	12 Defend             U32 Dispute, Hash Trace, Hashes Proof
//	13 Reveal             U32 Dispute, 16 Hash Nodes
//	14 Evidence           U32 Dispute, Bytes Bytes
//	15 Concede            U32 Dispute
//	16 Equivocation       Signed A, Signed B
//	17 Deposit            Key Member
//	18 Claim
//	19 Fund
//	20 Commit             Signed Signed
//	21 RegisterValidator  Key Payee
//	22 RetireValidator
//	23 CommitScores       U32 Period, Hash Hash
//	24 RevealScores       U32 Period, Hash Salt, Scores Scores
//	25 SetSpeed           U32 Speed
//	26 End
//	27 Change             U64 Rate, U64 Emission, U64 WaitingMs, U64 WarmupMs, U64 RoundTrainMs,
//	                      U64 RoundWitnessMs, U64 CooldownMs, U64 EpochMs
//	28 Refund             U64 Amount
//
// # Example
//
// A report in round 7 that holds the results of members 0 and 2, with a filter of 2 bytes and the
// parameters 99...99, and before that 77...77, is
//
//	04 07000000 01 99...99 77...77 01000000 05 02000000 0102
//
// Commitments are laid out in Commitment. Peers exchange them; the coordinator sees the filters of
// all of them, and those that verdicts show.
//
// The package is replicated (see package wire).
package coordinator
