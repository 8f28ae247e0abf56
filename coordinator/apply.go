package coordinator

import "github.com/entrain-network/entrain/key"

// Apply changes s by one message. It returns an Error if the message is refused, and then the bytes are unchanged. It costs
// O(members) or less, however much time has passed.
func (s State) Apply(env Env, m Message) error {
	if env.Value > 0 && !takesValue(m) {
		return ErrValue
	}
	if e := s.take(env, m); e != OK {
		return e
	}
	if _, ok := m.(Claim); !ok {
		s.clearPayout()
	}
	s.expireChecks(env)
	s.expireDisputes(env)
	// A message makes at most transitionsMax transitions; what is left to do is done at the next.
	for n := 0; n < transitionsMax && s.advance(env); n++ {
	}
	return nil
}

// takesValue tells whether tokens may be attached to a message.
func takesValue(m Message) bool {
	switch m.(type) {
	case Join, Deposit, Fund:
		return true
	}
	return false
}

// transitionsMax bounds the transitions of one message: the end of RoundTrain and of RoundWitness, twice.
const transitionsMax = 4

// take does what m asks for by itself, before the phases move.
func (s State) take(env Env, m Message) Error {
	switch m := m.(type) {
	case Tick:
		return OK
	case Join:
		return s.join(env, m)
	case Withdraw:
		return s.withdraw(env)
	case Ready:
		return s.ready(env, m)
	case Witness:
		return s.witness(env, m)
	case Checkpoint:
		return s.checkpoint(env, m)
	case Pause:
		return s.pause(env)
	case Resume:
		return s.resume(env)
	}
	return s.takeMove(env, m)
}

// takeMove does what a message about checks, disputes or tokens asks for.
func (s State) takeMove(env Env, m Message) Error {
	switch m := m.(type) {
	case Pass:
		return s.pass(env, m)
	case Accuse:
		return s.accuse(env, m)
	case Unserved:
		return s.reportUnserved(env, m)
	case TieBreak:
		return s.tieBreak(env, m)
	case Defend:
		return s.defend(env, m)
	case Reveal:
		return s.reveal(env, m)
	case Evidence:
		return s.evidence(env, m)
	case Concede:
		return s.concede(env, m)
	case Equivocation:
		return s.equivocation(env, m)
	case Deposit:
		return s.deposit(env, m)
	case Claim:
		return s.claim(env)
	case Fund:
		return s.fund(env)
	}
	return ErrMessage
}

// presentMember returns the place of the member known by pub, if it is present.
func (s State) presentMember(pub key.Public) (uint32, Error) {
	i, ok := s.Find(pub)
	if !ok || !s.status(i).Present() {
		return 0, ErrNotMember
	}
	return i, OK
}

func (s State) join(env Env, m Join) Error {
	if env.Sender.IsZero() {
		return ErrSender
	}
	if s.Phase() == Finished {
		return ErrPhase
	}
	i, ok := s.Find(env.Sender)
	stake := env.Value
	if ok {
		switch st := s.status(i); {
		case st.Present():
			return ErrAlreadyMember
		case st == StatusEjected:
			return ErrEjected
		}
		b := s.place(i)
		stake += getU64(b, mStake)
		if s.owed(i) {
			payee := key.Public(get32(b, mPayee))
			if !m.Payee.IsZero() && m.Payee != payee {
				return ErrPayee
			}
			m.Payee = payee
		}
	}
	switch {
	case !s.holds(env.Value):
		return ErrValue
	case stake < getU64(s.b, hStake):
		return ErrStake
	}
	if !ok {
		if i, ok = s.vacancy(); !ok {
			return ErrFull
		}
	}
	if m.Payee.IsZero() {
		m.Payee = env.Sender
	}
	s.admit(i, env, m)
	return OK
}

// vacancy returns a place for a newcomer: an unused one, else that of the member gone longest which no round of the running
// epoch, no check and no dispute mentions and which nothing is owed to. Places of the ejected are the last to be given away,
// so that they cannot return as long as there are others.
func (s State) vacancy() (uint32, bool) {
	if n := s.Count(); n < s.l.members {
		return n, true
	}
	best, bestMs, found, ejected := uint32(0), uint64(0), false, false
	for i, pending := range s.allPending() {
		i := uint32(i)
		b := s.place(i)
		st := Status(getU8(b, mStatus))
		left := getU64(b, mLeftMs)
		if st.Present() || pending || found && !ejected && st == StatusEjected {
			continue
		}
		better := !found || ejected && st != StatusEjected || left < bestMs
		if !better || s.owed(i) || s.mentioned(i) {
			continue
		}
		best, bestMs, found, ejected = i, left, true, st == StatusEjected
	}
	return best, found
}

// mentioned tells whether a round of the running epoch mentions member i.
func (s State) mentioned(i uint32) bool {
	switch s.Phase() {
	case RoundTrain, RoundWitness, Cooldown:
	default:
		return false
	}
	for k := range uint32(ringRounds) {
		if r := s.slot(k); r.Number() != 0 && r.Epoch() == s.Epoch() && r.Active(i) {
			return true
		}
	}
	return false
}

// admit puts the sender into place i, which is unused, its own from before, or that of a member to be forgotten.
func (s State) admit(i uint32, env Env, m Join) {
	b := s.place(i)
	if i == s.Count() {
		putU32(s.b, hCount, i+1)
	} else if get32(b, mKey) != env.Sender {
		putU64(s.b, hRetired, s.PointsRetired()+getU64(b, mPoints))
		s.forget(i)
		clear(b)
	}
	if get32(b, mKey) != env.Sender {
		putU8(b, mDoubt, doubtNew)
	}
	put32(b, mKey, env.Sender)
	put32(b, mPayee, m.Payee)
	putU64(b, mReleaseMs, 0)
	putU8(b, mSkipped, 0)
	putU8(b, mAstray, 0)
	s.addStake(i, env.Value)
	putStatus(b, StatusWaiting)
	putU8(b, mMissed, 0)
	putU8(b, mIdle, 0)
	putU32(b, mSpeed, m.Speed)
	putU64(b, mJoinedMs, env.NowMs)
	putU32(b, mJoinedEpoch, s.Epoch())
}

// forget erases the rounds of epochs that are over which mention member i, so that nobody takes the newcomer in its place
// for it.
func (s State) forget(i uint32) {
	for k := range uint32(ringRounds) {
		if r := s.slot(k); r.Active(i) {
			clear(r.bytes(0, s.l.slot))
		}
	}
}

func (s State) withdraw(env Env) Error {
	i, e := s.presentMember(env.Sender)
	if e != OK {
		return e
	}
	if s.Phase() == Finished {
		return ErrPhase
	}
	s.leave(i, StatusWithdrawn, env)
	return OK
}

func (s State) ready(env Env, m Ready) Error {
	i, e := s.presentMember(env.Sender)
	if e != OK {
		return e
	}
	params, _ := s.Params()
	switch {
	case s.Phase() != Warmup:
		return ErrPhase
	case m.Epoch != s.Epoch():
		return ErrEpoch
	case m.Params != params:
		return ErrParams
	case s.status(i) == StatusReady:
		return ErrDuplicate
	}
	putStatus(s.place(i), StatusReady)
	return OK
}

func (s State) checkpoint(env Env, m Checkpoint) Error {
	i, e := s.presentMember(env.Sender)
	if e != OK {
		return e
	}
	params, _ := s.Params()
	switch {
	case s.Phase() != Cooldown:
		return ErrPhase
	case m.Epoch != s.Epoch():
		return ErrEpoch
	case !s.Checkpointer(i):
		return ErrNotCheckpointer
	case m.Params != params:
		return ErrParams
	}
	putU8(s.b, hHasCheckpoint, 1)
	putU32(s.b, hCheckEpoch, m.Epoch)
	put32(s.b, hCheckParams, m.Params)
	put32(s.b, hCheckManifest, m.Manifest)
	put32(s.b, hCheckKey, env.Sender)
	return OK
}

func (s State) pause(env Env) Error {
	if env.Sender != get32(s.b, hOwner) {
		return ErrNotOwner
	}
	switch s.Phase() {
	case Finished:
		return ErrPhase
	case Paused:
		return ErrPaused
	case WaitingForMembers, Warmup:
		s.standDown()
		s.enter(Paused, env.NowMs)
		return OK
	}
	if s.PausePending() {
		return ErrPaused
	}
	putU8(s.b, hPausePending, 1)
	return OK
}

func (s State) resume(env Env) Error {
	if env.Sender != get32(s.b, hOwner) {
		return ErrNotOwner
	}
	if s.Phase() != Paused {
		return ErrNotPaused
	}
	s.enter(WaitingForMembers, env.NowMs)
	return OK
}
