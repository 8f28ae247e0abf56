// Package coordinator is a run's replicated state machine. From messages, time and chance it decides who takes part, who
// trains on what, who witnesses, whose results enter the model, which parameters are agreed, whose results are recomputed,
// who is convicted of what, and who is paid. It never sees a tensor. Hosts (package ledger) apply the same messages in the
// same order and get the same bytes; clients read them.
//
// # Life of a run
//
//	WaitingForMembers --enough are present, WaitingMs over--> Warmup --all are ready, or WarmupMs over--> RoundTrain
//	RoundTrain --a quorum holds everything, or RoundTrainMs or the round's own limit over--> RoundWitness
//	RoundTrain --with Buckets: WindowBlocks over, and nothing else--> RoundWitness
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
// When round r opens, its seed gives the active members their shares of the batch (see Shares) and elects its witnesses. With Overlap 1 the witnesses report about the results of round r-1, so that these travel while r is
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
//   - a member's result of a is accepted if a quorum holds it and the member was not ejected since, and its sequences are paid,
//     one point each;
//   - the other sequences of a return by way of the redo queue, which the next batches take from first;
//   - a member whose result was not accepted has missed, unless no quorum denies it and the others fared no better (a network
//     cut in two is nobody's fault); a witness that did not report was idle. More than MissedMax misses, or idle elections, in
//     a row and the member is dropped. It may join again;
//   - a witness that named other parameters than the agreed ones went astray; in three reports in a row, and it is dropped;
//   - when the next round opens, its seed draws which of a's accepted results are checked (see Verification).
//
// The quorum is committee.Quorum of the elected, so silence never lowers it. A member with no share, the batch being smaller
// than the number of members, is not expected to give a result. Points and sequences are conserved: every sequence given out
// is accepted once, waiting, in flight, or counted in RedoLost; points of all members and PointsRetired make PointsTotal, which
// is one for each sequence accepted and one for each recomputed (PointsVerified).
//
// # Shares
//
// The seed puts the active members into a line (committee.Trainers), in which the sequences of the batch are given out from its
// begin. With Sharing EqualShares each has as many, the first one more if they do not come out even (batch.Split).
//
// With SpeedShares the share of a member is in proportion to its speed, in tokens a second, which it states itself when it joins and
// by SetSpeed: one SetSpeed an epoch, and none that changes nothing. A round goes by the speeds stated when its epoch's first
// round opened (Round.Speed). Of a batch of B sequences for n members, B at least n, a member of speed v has
//
//	1 if f*v < 1        M = ceil(ShareMost*B/n), B at most, if f*v > M        else f*v, rounded
//
// with the one factor f for which all that makes B: nobody goes without work, and nobody has more than ShareMost times the equal
// share. A speed of 0 counts as 1. f*v is rounded down, and what is left over goes, a sequence each, to those who lost most by
// that, the first in the line of equal ones (batch.Weighted): equal speeds give equal shares. If B is below n the first B in the
// line have a sequence each, whatever the speeds.
//
// Nobody checks a speed, for a wrong one does not pay. Who states too much is given more than it can do in time, and what is late
// is not accepted, earns nothing, and in the end has it dropped. Who states too little is given less, and earns less: points and
// the members' emission are for sequences. The cap bounds how much of a batch those lose to the redo queue who boast; and where work
// is scored, the speed of a member whose moving average of scores is not above 0 counts as 1, be it that its results were worth
// nothing or that none was accepted.
//
// A check of a result goes to the first in the line of verifiers whose speed is at least half of its author's, so that it can be
// done in the time that there is; to the fastest left if there is none. Tie-breakers are drawn from those of that speed too, unless
// there are none.
//
// # Windows
//
// With Exchange Buckets results travel through buckets, whose clocks and contents nobody trusts, and a round is a window of the
// ledger's height. RoundTrain lasts exactly WindowBlocks blocks, however early everybody is done and whatever time it is; only an
// epoch's last drain round, in which nothing is trained or shown, ends with its quorum of reports. Overlap is 1, so that a member
// trains in window r+1 while what it made in r is shown and fetched:
//
//	window r      the member trains its share, and puts the ID of its signed commitment on the ledger (Commit), once
//	window r+1    its seed chooses the slice of r (Round.SliceSeed); the member shows what it committed to on the slice;
//	              witnesses fetch it, and report whose they hold
//
// Nobody knew the seed while commitments were taken, so whoever wants to be accepted must have made all of its result. A
// commitment is for the current round, by a member that has a share in it, and names that share; a second one is refused, and the
// two are an Equivocation. What is not on the ledger cannot be held by any witness nor accepted, and a report is complete
// without it. Since everybody reads the commitments here, reports have no filters, and State.Select takes the one that is here.
//
// # Validators and scores
//
// Where Config.Validators is not 0 the members' work is scored, whichever way it is exchanged. A validator takes a seat with a
// stake (RegisterValidator); when all are taken the lowest stake makes room for a higher one. It leaves by RetireValidator. Both
// pay out at once what the one who goes has in the run: no offence of a validator costs tokens, only trust and reward.
//
// ScoreWindows rounds are a period: period p is the rounds (p-1)*ScoreWindows+1 to p*ScoreWindows. Its scores are spoken about
// while the rounds of period p+1 run, and it is settled when the first of period p+2 opens:
//
//	first half of p+1    CommitScores: ScoresHash of the run, the validator, the period, a salt and the scores
//	second half          RevealScores: exactly these; others cannot be revealed, so nobody can copy what it hears
//
// After the run has finished windows are taken to go on, of WindowBlocks blocks, or with Peers of RoundTrainMs, until all periods
// are settled (State.Window).
//
// A validator's weight is its stake times its trust. About each member with accepted results in the period, the scores of those
// who spoke of it are combined if they have more than half of the weight of all validators, those who said nothing included (but
// not those who came during the period and said nothing). A member that is a validator does not score itself.
//
//	m = the median by weight of the scores          d = the median by weight of |score - m|
//	s = the mean by weight of the scores, each clipped to [m-d, m+d]
//
// So validators with less than half of the weight move s by no more than the others differ among themselves, and not at all where
// these agree. Scores are integers from -ScoreOne to ScoreOne for -1 to 1; s is rounded to the nearest. Then, in this order:
//
//	penalty     s <= 0 takes Penalty percent of Emission/Slots back from what the member was given last, as far as that goes
//	ripening    what is left of that becomes the members' balances
//	emission    Emission tokens, or what the treasury has. Of ValidatorPercent of it each validator gets a part in proportion to
//	            weight times agreement; of the rest each member with s > 0 in proportion to s times the sequences of its accepted
//	            results in the period. Parts are rounded down, and what is left over goes, a token each, to those whose parts lost
//	            most by that. If no member is scored nothing is given; if none is above 0, nothing to members.
//
// What members are given is not theirs before it is ripe: a conviction of the greater kind takes it, and the next penalty. After
// the last period everything is ripe.
//
// A validator's agreement is the mean, over all members that were scored, of 1 - |its score - s| / 0.5, where that is above 0; one
// it said nothing of counts as 0. Its trust, 1 to 255 and 64 at first, goes by the same mean over those it did speak of: half of the
// way down to 1 + 254 * mean, or a sixteenth of the way up. Who committed and did not reveal loses half of its trust, who said
// nothing where there was work to score a quarter; so the silent do not hold up the others for long.
//
// # Slots
//
// At most Slots members are present at a time. A newcomer, and who was replaced, pays RegisterCost to the treasury. When all slots are
// taken it replaces the member whose moving average of scores is the worst (a quarter of each new s; 0 if there was none, and s = 0 for
// a period in which a member had shares and none of its results was accepted), of equal ones the one that came last. That is not
// possible for ImmuneWindows rounds from the begin of the first epoch in which the newcomer takes part, and for one member in each
// window only. Who left or was dropped pays nothing when it comes back, and replaces only who is worse than itself. Where nobody
// scores nobody is replaced. The replaced keeps its place in the table, its stake and what it is owed like one that left: hence
// Slots should be less than Limits.Members.
//
// # Verification
//
// A trainer signs a Commitment to its result before anybody sees it. When round a has become final and a round opens, the
// seed of the latter, which nobody knew while a's results were made, draws VerificationPercent of a's accepted results to be
// checked, and who checks them: the active members in the order of committee.Verifiers, one each as far as there are enough,
// nobody itself. Each result is drawn by itself, with a chance in proportion to its member's doubt, so that the expected
// number is that percentage; a chance that would exceed one is one, and what is left over goes to the others in proportion.
// Doubt is 8 for a newcomer, 1 less for each check passed, down to 1, never 0, and 16 after a failure. Nothing is drawn if
// a's parameters were not agreed, or if fewer than two are active.
//
// A check names all that is needed: round, epoch, step, member, verifier, share, parameters. The verifier recomputes the
// share, and has VerifyMs to say one of three things (a verdict after that is refused; the check lapses, and the silent
// verifier is charged as for a missed election, unless all places for disputes are taken):
//
//	Pass      the same came out. It opens the commitment's Work by the gradient's root, which only who computed it knows; one
//	          that does not open it convicts the verifier (FalsePass). The verifier is paid the share's sequences in points.
//	Accuse    something else came out: a dispute opens, in which the accuser is bound to the root of its own trace. If the
//	          commitment names another epoch, share or parameters than the check, nothing is left to dispute: its signer is
//	          convicted at once (WrongResult).
//	Unserved  the member does not serve what is needed: a dispute opens in which only tie-breakers vote.
//
// # Disputes
//
// The step of a share is a program: operations, each of which makes one value, cut into tiles, each made in slices. A trace
// commits to all of it by three nested trees of package bisect:
//
//	trace                 its leaves are the operations'
//	  operation           root over its tiles; of the last operation the leaf is Outcome(commitment) itself
//	    tile              root over its slices
//	      slice           bisect.Leaf of the words after that slice
//
// A dispute finds the first operation, then the first tile of it, then the first slice, at which two traces differ. All that
// the slice is computed from comes before, so both sides agree on it, and the Referee recomputes that one slice.
//
//	tie-breaking  up to three members, drawn by the chance of the block, recompute too and vote (TieBreak), within VerifyMs
//	defending     the accused shows its trace (Defend) and proves that it ends with what it committed to
//	descending    both Reveal the sixteen children of the node at which they differ; the first that differs is the next node.
//	              Trees of one leaf are passed over. A leaf beyond a tree's is padding, and convicts whose is not zero
//	evidence      the accuser opens the slice (Evidence), the referee judges. Both are convicted if neither is right
//
// Each move has DisputeMs from the one before, both sides' reveals of a node the same; silence loses, and so does conceding
// (Concede, once the votes are counted). Where both are silent the accuser loses. What is refused as malformed, or proves
// nothing, may be tried again until the deadline.
//
// An accuser that loses, falls silent, concedes or is ejected for something else may have meant to. So a tie-breaker that
// voted VoteWrong takes its place, if there is one with a trace that neither the accused shows nor the referee disproved,
// and the descent begins anew; only when there is none is the accused free. One honest party, verifier or tie-breaker,
// suffices to convict a liar; and whoever computes rightly and answers in time is never convicted, whoever accuses it. A
// dispute ends within VerifyMs and four times (2 + the levels of the three trees) moves.
//
// When it is over, the accuser and the tie-breakers that voted as it ended are paid the share's sequences in points.
// Tie-breakers that voted against what was proven come under full doubt. An accused that was proven right has passed a
// check.
//
// About an Unserved result the tie-breakers decide, and since it cannot be proven they must agree: if all that vote, two at
// least where there are so many, were not served either, it is a strike: the member is dropped, loses its points that are not settled, and comes under full doubt; the third in a row,
// without a check passed between them, convicts it (NotServing). Else one that was served, of the VoteWrong ones first,
// makes the check in the verifier's place, with time anew; it cannot say Unserved again, and the verifier has skipped a check.
//
// An Equivocation, two commitments of one member for one round, needs no dispute. Anybody may show it.
//
// # Convictions
//
// Who is convicted is ejected: it loses its whole stake, half of which goes to the balance of who showed the offence (for a
// false accusation, of the accused once it is free; for an equivocation, which any accomplice could show in time to save
// that half, a sixteenth), the rest to the treasury; its points that are not settled are retired;
// its results that are not accepted yet never are; and it is out of all other checks and disputes. Lesser offences cost an
// eighth of the stake and the place among the active: Absence is recorded where there is a stake, when a member is dropped
// for having missed, idled or skipped checks more than MissedMax times in a row; Contradiction is a witness astray three
// times in a row. The last 64 convictions stand in the state, each with the hash of the decisive message and the rounds from
// which the member's results had entered the model.
//
// # Tokens
//
// The host keeps a run's tokens in one account, its escrow; whose they are stands here. Escrow is the sum of the treasury
// and of all stakes, balances and rewards that are not ripe after every message. Env.Value says what is attached to a message; only
// Join, Deposit and RegisterValidator (to a stake) and Fund (to the treasury) take any. Claim pays out (Payout), to the member's
// payee: the points that are settled and not paid yet, at Rate, as far as the treasury goes; the balance; and the stake if it is
// free. If that is nothing it pays what the sender was rewarded with as a validator.
//
// A stake is free UnbondMs after its member left or was dropped, or after the run was finished, if no result of its is in
// flight and it has no part in an open check or dispute. A payee cannot be changed while anything is owed to it. The place
// of a member that is owed tokens is not given away.
//
// Points settle at the end of an epoch: no conviction takes them any more. Those of a member with an open check or dispute
// settle one epoch later, or, when no epoch is running and nothing is open any more, at its Claim.
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
// while a round of the running epoch, a check or a dispute mentions it or tokens are owed to it, and rounds of ended epochs that
// mention it are erased. An ejected member may not join again; its place is given away only if no other can be. Who joins
// during an epoch takes part from the next one on. Joining takes a stake of Config.Stake at least, what was left of an earlier
// one included.
//
// # The buffer
//
// The state is one flat buffer: it is the canonical encoding. Numbers are little endian, at multiples of their size; bytes
// that nothing covers are zero. Its size is fixed by the limits (Size: 150 KiB for 256 members and 32 witnesses, 4.4 MiB
// for 10,000; 158 KiB and 4.8 MiB with buckets and 8 or 16 validators), and its hash is the Merkle root over its pages of 1 KiB. Each part begins at a page:
//
//	header      1 page
//	members     200 bytes a place
//	redo queue  1 page: 64 spans of U64 start, U32 count, U32 zero
//	ring        4 slots; round r is in slot r mod 4
//	checks      104 bytes a place; as many as a quarter of the members, but at least 64
//	disputes    16 places of 1152 bytes
//	convictions 64 places of 144 bytes; number n is in place (n-1) mod 64
//	validators  104 bytes a seat of the limits; at none this part and those behind are empty
//	tallies     3 of the size of 8 bytes and 24 a member; period p is in place p mod 3
//	scores      2 of the size of 8 bytes, 88 a seat, and 2 a member and seat; period p is in place p mod 2
//
// The room that the limits leave is bit 1 for buckets and bit 2 for speeds. What is of variable size:
// a slot of the ring continues behind its fixed part, with b = members/8 rounded up to 8 bytes and w
// the limit of witnesses, by
//
//	w U32 elected members, then to a multiple of 8
//	w Report
//	b active   b expected   b accepted: bitmaps by members' places, bit i%8 of byte i/8
//	U8 for each member: reports that hold its result of this round, then to a multiple of 8
//	filters of the reports, by seats: filter bits / 8 each; with buckets none, but of each member the Hash ID of its commitment
//	with room for speeds, for each member a Share
//
// A tally is its head, then a Work for each place of the table of members. A period's scores are their
// head, a Ballot for each seat, and for each seat, for each place of the table of members, U16 score +
// 32768, 0 = none.
//
// # Offsets
//
// The header, 1024 bytes (Header):
//
//	 48 U64      WaitingMs            56 U64      WarmupMs             64 U64      RoundTrainMs
//	 72 U64      RoundWitnessMs       80 U64      CooldownMs           88 U64      EpochMs
//	 96 U64      BatchRampTokens     104 U32      MinMembers          108 U32      StartMembers
//	112 U32      TotalSteps          116 U32      BatchStart          120 U32      BatchEnd
//	124 U32      SequenceTokens      128 U16      Witnesses           130 U8       Overlap
//	131 U8       MissedMax           132 U8       VerificationPercent 133 U8       Numerics
//	136 Text     Name                168 Hash     ModelHash           200 Hash     SpecHash
//	232 Key      Owner               512 U64      VerifyMs            520 U64      DisputeMs
//	528 U64      Stake               536 U64      UnbondMs            544 U64      Rate
//	552 Hash     StateHash           665 U8       Exchange            666 U8       ValidatorPercent
//	667 U8       Penalty             668 U16      Validators          672 U64      Emission
//	680 U64      RegisterCost        688 U32      WindowBlocks        692 U32      ScoreWindows
//	696 U32      Slots               700 U32      ImmuneWindows       740 U8       Sharing
//
//	  0 U32   Magic              "ENTR"
//	  4 U32   Version            3
//	  8 U32   LimitMembers       Limits.Members
//	 12 U16   LimitWitnesses     Limits.Witnesses
//	 14 U16   LimitValidators    Limits.Validators
//	 16 Hash  ID                 the run's identity
//	134 U8    NameBytes          length of the name
//	264 U8    Phase              the phase
//	265 Bool  PausePending       the run pauses when this epoch is over
//	266 U8    Drain              drain rounds left, this one included
//	267 U8    Repeats            repeats of the last drain round so far
//	268 U8    CheckpointersLen   number of checkpointers
//	269 Bool  HasCheckpoint      a checkpoint was reported
//	270 U8    LostWarmups        warmups in a row that ended with no member ready
//	272 U64   PhaseSince         when the phase began, in ms
//	280 U64   EpochSince         when the epoch's first round opened, in ms
//	288 U64   DataIndex          first sequence that was never given out
//	296 U64   PointsTotal        points ever given
//	304 U64   PointsRetired      points of members that were forgotten, and points that were forfeited
//	312 U64   RedoLost           sequences lost to a full redo queue
//	320 Hash  Params             the parameters agreed last
//	352 U32   ParamsRound        the round at whose start they were held
//	356 U32   Count              places of the table of members in use
//	360 U32   Epoch              current or last epoch
//	364 U32   Round              current or last round
//	368 U32   Step               rounds with training so far
//	372 U32   EpochRound         the epoch's first round
//	376 U32   RedoLen            spans in the redo queue
//	380 U32   Rollbacks          returns to older parameters
//	384 3 U32 Checkpointer       members chosen to write the checkpoint
//	400 Hash  CheckpointParams   the last checkpoint: its parameters
//	432 Hash  CheckpointManifest its manifest
//	464 Key   CheckpointKey      its author
//	496 U32   CheckpointEpoch    its epoch
//	500 U32   PaceMs             how long the last complete RoundTrain took
//	504 U64   TrainLimitMs       longest RoundTrain of the current round
//	584 U64   Treasury           tokens of the treasury
//	592 U64   Escrow             tokens that the host holds for the run
//	600 U64   Payout             tokens that the last message paid out
//	608 Key   PayoutTo           the key they went to
//	640 U64   PointsVerified     points given for verifying
//	648 U32   Convictions        convictions so far
//	652 U32   Disputes           disputes so far
//	656 U32   ChecksDrawn        checks drawn so far
//	660 U32   ChecksPassed       checks passed so far
//	664 U8    Room               bit 1: Limits.Buckets; bit 2: Limits.Speeds
//	704 U64   PhaseHeight        height at which the phase began
//	712 U64   Emitted            tokens ever given for scores
//	720 U64   Penalties          tokens ever taken back by penalties
//	728 U32   PeriodSettled      last period whose scores were settled
//	732 U32   Tail               windows since the run's end
//	736 U32   Replaced           1 + the window of the last replacement
//
// A place in the table of members, 200 bytes (Member):
//
//	  0 Key   Key                the member's key
//	 32 U64   Points             points earned
//	 40 U64   JoinedMs           when it joined last
//	 48 U64   LeftMs             when it left last
//	 56 U64   Stake              tokens at stake
//	 64 U32   Results            accepted results
//	 68 U32   Speed              tokens a second, as stated last
//	 72 U32   JoinedEpoch        epoch in which it joined last
//	 76 U32   LeftRound          round in which it left last
//	 80 U8    Status             its status
//	 81 U8    Missed             results missed in a row
//	 82 U8    Idle               elections in a row without a report
//	 83 U8    Doubt              weight in the draw of checks
//	 84 U8    Strikes            failures to serve in a row
//	 85 U8    Skipped            checks skipped in a row
//	 86 U8    Astray             reports in a row with other parameters than the agreed ones
//	 88 U64   Balance            tokens rewarded and not claimed
//	 96 U64   Settled            points that no conviction takes
//	104 U64   Claimed            points that were paid
//	112 U64   ReleaseMs          when its stake is free
//	120 U32   Passed             checks of its results that passed
//	124 U32   FirstRound         round of its first accepted result
//	128 U32   LastRound          round of its last accepted result
//	136 Key   Payee              the key its claims are paid to
//	168 U64   EpochPoints        points at the end of the last epoch
//	176 U64   Unvested           reward of the last period, which a penalty or conviction may still take
//	184 U64   Earned             tokens ever given for its scores
//	192 U32   Since              window in which it came as a newcomer
//	196 U16   Score              moving average of its scores + 32768; 0 = none
//	198 Bool  SpeedSet           it has stated a speed since the epoch began
//
// A slot of the ring of rounds: its fixed part, 248 bytes (Slot):
//
//	  0 U32      Number                4 U32      Epoch                 8 U32      Step
//	 12 U32      Batch                16 U64      OpenedMs             24 Hash     Seed
//	 56 Hash     Agreed               88 U32      ActiveLen            92 U32      ExpectedLen
//	 96 U32      AcceptedLen         100 U32      Attests             104 U32      FilterBits
//	108 U8       FilterHashes        109 U8       ElectedLen          110 U8       Reports
//	111 U8       Completes           112 Bool     Final               113 Bool     HasAgreed
//	114 U8       SpansLen            120 8 Span   Span
//
// A witness's report in a slot, 40 bytes (Report): 0 Bool Reported, 1 Bool Complete, 8 Hash
// Params.
//
// An elected witness in a slot, 4 bytes (Elected): 0 U32 Member.
//
// A member's commitment in a slot, in a run that exchanges by buckets, 32 bytes (Commit): 0
// Hash ID.
//
// A member's share in a slot, in a run whose shares go by speed, 12 bytes (Share): 0 U32
// Speed, 4 U32 From, 8 U32 Count.
//
// A span of sequences, 16 bytes (Span): 0 U64 Start, 8 U32 Count.
//
// A place in the table of checks; it is free if Round is 0, 104 bytes (Check):
//
//	 0 U32      Round                 4 U32      Epoch                 8 U32      Step
//	12 U32      Member               16 U32      Verifier             20 U32      Sequences
//	24 U64      DeadlineMs           32 Hash     Share                64 Hash     Params
//	96 Bool     Disputed             97 Bool     Reassigned
//
// A place in the table of disputes; it is free if its check is, 1152 bytes (Dispute):
//
//	  0 Check    Check               104 U32      ID                  108 U32      Accuser
//	112 U64      DeadlineMs          120 U8       Stage               121 Bool     Unserved
//	122 Bool     Defended            123 U8       Level               124 U8       Depth
//	125 2 Bool   Revealed            127 U8       TiesLen             128 U32      Op
//	132 U32      Tile                136 U32      Slice               140 U32      Index
//	144 2 Hash   Trace               208 2 Hash   Node                272 16 Hash  Child
//	784 3 Tie    Tie                 904 244 Byte Commitment
//
// A tie-breaker, 40 bytes (Tie): 0 U32 Member, 4 U8 Vote, 8 Hash Trace.
//
// A place in the ring of convictions, 144 bytes (Conviction):
//
//	  0 U32      Number                4 U32      Round                 8 U32      Member
//	 12 U32      By                   16 Key      Key                  48 Key      ByKey
//	 80 Hash     Evidence            112 U64      Slashed             120 U64      AtMs
//	128 U32      FirstRound          132 U32      LastRound           136 U32      Results
//	140 U8       Offence
//
// A seat in the table of validators; it is free if Trust is 0, 104 bytes (Seat):
//
//	 0 Key      Key                  32 Key      Payee                64 U64      Stake
//	72 U64      Balance              80 U64      Earned               88 U64      SinceMs
//	96 U32      Since               100 U8       Trust
//
// The head of a period's tally, 8 bytes (Tally): 0 U32 Period.
//
// A member's part of a tally, 24 bytes (Work):
//
//	 0 U32      Sequences             4 U32      Weight                8 U64      Amount
//	16 U16      Score                18 Bool     Missed
//
// The head of a period's scores, 8 bytes (Period): 0 U32 Period.
//
// What one validator says of a period, 88 bytes (Ballot):
//
//	 0 Key      Key                  32 Hash     Hash                 64 U64      Stake
//	72 U64      Reward               80 U16      Agreement            82 U8       Trust
//	83 Bool     Revealed
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
//	 4 Witness            U32 Round, Bool Complete, Hash Params, Bytes Held, Bytes Commitments
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
//
// # Example
//
// For example a report in round 7 that holds the results of members 0 and 2, with a filter (here of 2 bytes) and parameters
// 99...99, is
//
//	04 07000000 01 99...99 01000000 05 02000000 0102
//
// Commitments are laid out in Commitment. Peers exchange them; the coordinator sees the filters of all, and those that verdicts
// show.
//
// The package is replicated (see package wire).
package coordinator
