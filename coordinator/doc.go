// Package coordinator is a run's replicated state machine. From messages, time and chance it decides who takes part, who
// trains on what, who witnesses, whose results enter the model, which parameters are agreed, and who is paid. It never sees
// a tensor. Hosts (package ledger) apply the same messages in the same order and get the same bytes; clients read them.
//
// # Life of a run
//
//	WaitingForMembers --enough are present, WaitingMs over--> Warmup --all are ready, or WarmupMs over--> RoundTrain
//	RoundTrain --a quorum holds everything, or RoundTrainMs or the round's own limit over--> RoundWitness
//	RoundWitness --all have reported, or RoundWitnessMs over--> RoundTrain of the next round, or Cooldown
//	Cooldown --checkpoint reported, or CooldownMs over--> WaitingForMembers, Paused or Finished
//	Warmup --too few are ready or present--> WaitingForMembers
//	WaitingForMembers, Warmup --Pause--> Paused --Resume--> WaitingForMembers
//
// An epoch is the time from a Warmup to the next WaitingForMembers; its members stay for the next one without joining again.
// Rounds count across the run. One message makes a bounded number of transitions, each of O(members) or less; hosts send a
// Tick in each block, so no phase sticks.
//
// # Life of a round
//
// When round r opens, its seed gives the active members their shares of the batch (committee.Trainers, batch.Split) and
// elects its witnesses. With Overlap 1 the witnesses report about the results of round r-1, so that these travel while r is
// computed; with Overlap 0 about those of r itself. The round they attest is called a below (Round.Attests).
//
//	Overlap 1      round 1    round 2    round 3    drain 4    drain 5
//	trains         batch 1    batch 2    batch 3
//	attests                   1          2          3
//	model holds                          1          1 2        1 2 3     = the parameters at the round's start
//
// A report says whose results of a the witness holds (a bitmap by members' places, exact), which commitments to them (a
// Bloom filter, so that of a member's several commitments all take the same, State.Select), and the hash of the witness's
// parameters at the start of r. While r is in RoundTrain only complete reports are taken. At the end of r:
//
//   - the parameters that a quorum of the elected witnesses named are agreed (State.Params);
//   - a member's result of a is accepted if a quorum holds it, and its sequences are paid, one point each;
//   - the other sequences of a return by way of the redo queue, which the next batches take from first;
//   - a member whose result was not accepted has missed, unless no quorum denies it and the others fared no better (a network
//     cut in two is nobody's fault); a witness that did not report was idle. More than MissedMax misses, or idle elections, in
//     a row and the member is dropped. It may join again.
//
// The quorum is committee.Quorum of the elected, so silence never lowers it. A member with no share, the batch being smaller
// than the number of members, is not expected to give a result. Points and sequences are conserved: every sequence given out
// is accepted once, waiting, in flight, or counted in RedoLost; points of all members and PointsRetired make PointsTotal.
//
// # End of an epoch
//
// When EpochMs are over, TotalSteps are made, a pause is pending, fewer than MinMembers are active, a round had no quorum of
// reports, or two rounds in a row agreed on no parameters, the next Overlap+1 rounds are drain rounds: nothing is trained,
// what is in flight is attested, and in the last one the parameters that hold all of it are agreed. If they are not, that
// round is repeated, three times at most; then the epoch is rolled back: the members go on from State.Params, and what was
// accepted since is lost to the model, though its points stand. If everybody leaves, the epoch ends at once in the same way.
// Up to three members, of those who named the agreed parameters, are then chosen to make the epoch's checkpoint.
//
// # Members
//
// A member keeps its place in the table, and so its index, while it is present. Who leaves or is dropped keeps it with its
// points, until the table is full and a newcomer needs the place: it takes that of the member gone longest, though never
// while a round of the running epoch mentions it, and rounds of ended epochs that do are erased. Who joins during an epoch
// takes part from the next one on.
//
// # The buffer
//
// The state is one flat buffer: it is the canonical encoding. Numbers are little endian, at multiples of their size; bytes
// that nothing covers are zero. Its size is fixed by the limits (Size: 98 KiB for 256 members and 32 witnesses, 3.4 MiB
// for 10,000), and its hash is the Merkle root over its pages of 1 KiB. Each part begins at a page:
//
//	header      1 page
//	members     128 bytes a place
//	redo queue  1 page: 64 spans of U64 start, U32 count, U32 zero
//	ring        4 slots; round r is in slot r mod 4
//
// The header (offset, type, field; config fields as in Config):
//
//	  0 U32 magic "ENTR"       4 U32 version 1         8 U32 limits: members   12 U16 limits: witnesses  16 Hash ID
//	 48 U64 WaitingMs         56 U64 WarmupMs         64 U64 RoundTrainMs      72 U64 RoundWitnessMs     80 U64 CooldownMs
//	 88 U64 EpochMs           96 U64 BatchRampTokens 104 U32 MinMembers       108 U32 StartMembers      112 U32 TotalSteps
//	116 U32 BatchStart       120 U32 BatchEnd        124 U32 SequenceTokens   128 U16 Witnesses         130 U8 Overlap
//	131 U8 MissedMax         132 U8 VerificationPercent  133 U8 Numerics      134 U8 length of name     136 name, 32 bytes
//	168 Hash ModelHash       200 Hash SpecHash       232 Owner, 32 bytes
//	264 U8 phase             265 U8 pause pending    266 U8 drain rounds left 267 U8 repeats of the last drain round
//	268 U8 checkpointers     269 U8 has checkpoint   270 U8 lost warmups         272 U64 phase since      280 U64 epoch since       288 U64 data index
//	296 U64 points           304 U64 points retired  312 U64 redo lost        320 Hash agreed params    352 U32 their round
//	356 U32 places in use    360 U32 epoch           364 U32 round            368 U32 step              372 U32 epoch's first round
//	376 U32 redo spans       380 U32 rollbacks       384 3 U32 checkpointers  400 Hash checkpoint's params
//	432 Hash its manifest    464 key of its maker    496 U32 its epoch        500 U32 pace, ms          504 U64 the round's limit, ms
//
// A place of the table of members:
//
//	 0 key, 32 bytes         32 U64 points           40 U64 joined at         48 U64 left at            56 U64 zero (stake)
//	64 U32 results accepted  68 U32 speed            72 U32 joined in epoch   76 U32 left in round      80 U8 status
//	81 U8 missed             82 U8 idle
//
// A slot of the ring; b is members/8 rounded up to 8 bytes, w the limit of witnesses:
//
//	  0 U32 number             4 U32 epoch             8 U32 step, 0 = drain   12 U32 batch              16 U64 opened at
//	 24 Hash seed             56 Hash agreed params   88 U32 active            92 U32 expected           96 U32 accepted
//	100 U32 attests          104 U32 filter bits     108 U8 filter hashes     109 U8 elected            110 U8 reports
//	111 U8 complete reports  112 U8 final            113 U8 has agreed        114 U8 spans              120 8 spans of 16 bytes
//	248 w U32 elected members, then to a multiple of 8
//	    w reports of 40 bytes: U8 reported, U8 complete, 6 zero, Hash params
//	    b active   b expected   b accepted: bitmaps by members' places, bit i%8 of byte i/8
//	    U8 for each member: reports that hold its result of this round, then to a multiple of 8
//	    filters of the reports, by seats: filter bits / 8 each
//
// # Messages
//
// A message is its kind in a byte, then its fields:
//
//	0 Tick
//	1 Join        U32 speed
//	2 Withdraw
//	3 Ready       U32 epoch, Hash params
//	4 Witness     U32 round, U8 complete, Hash params, U32 length and bitmap of members held, U32 length and filter
//	5 Checkpoint  U32 epoch, Hash params, Hash manifest
//	6 Pause
//	7 Resume
//
// For example a report in round 7 that holds the results of members 0 and 2, with a filter (here of 2 bytes) and parameters
// 99...99, is
//
//	04 07000000 01 99...99 01000000 05 02000000 0102
//
// Commitments, which peers exchange and only their filters reach the coordinator, are laid out in Commitment.
//
// The package is replicated (see package wire). It keeps room for what is not there yet: stake, ejection and verification.
package coordinator
