package coordinator

import (
	"github.com/entrain-network/entrain/key"
)

// Apply changes s by one message. It returns an Error if the message is refused, and then the bytes are unchanged. It costs
// O(members) or less, however much time has passed.
func (s State) Apply(env Env, m Message) error {
	if env.Value > 0 && !takesValue(m) {
		return ErrValue
	}
	if e := s.take(env, m); e != OK {
		return e
	}
	if !paysOut(m) {
		s.clearPayout()
	}
	s.expireChecks(env)
	s.expireDisputes(env)
	// A message makes at most transitionsMax transitions; what is left to do is done at the next.
	for n := 0; n < transitionsMax && s.advance(env); n++ {
	}
	s.advanceScores(env)
	return nil
}

// takesValue tells whether tokens may be attached to a message.
func takesValue(m Message) bool {
	switch m.(type) {
	case Join, Deposit, Fund, RegisterValidator:
		return true
	}
	return false
}

// paysOut tells whether a message may pay tokens out of the escrow.
func paysOut(m Message) bool {
	switch m.(type) {
	case Claim, RegisterValidator, RetireValidator:
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
	return s.takeScores(env, m)
}

// takeScores does what a message about commitments and scores asks for.
func (s State) takeScores(env Env, m Message) Error {
	switch m := m.(type) {
	case Commit:
		return s.commit(env, m)
	case RegisterValidator:
		return s.registerValidator(env, m)
	case RetireValidator:
		return s.retireValidator(env)
	case CommitScores:
		return s.commitScores(env, m)
	case RevealScores:
		return s.revealScores(env, m)
	case SetSpeed:
		return s.setSpeed(env, m)
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
	s.h().SetHasCheckpoint(true)
	s.h().SetCheckpointEpoch(m.Epoch)
	s.h().SetCheckpointParams(m.Params)
	s.h().SetCheckpointManifest(m.Manifest)
	s.h().SetCheckpointKey(env.Sender)
	return OK
}

func (s State) pause(env Env) Error {
	if env.Sender != s.h().Owner() {
		return ErrNotOwner
	}
	switch s.Phase() {
	case Finished:
		return ErrPhase
	case Paused:
		return ErrPaused
	case WaitingForMembers, Warmup:
		s.standDown()
		s.enter(Paused, env)
		return OK
	}
	if s.PausePending() {
		return ErrPaused
	}
	s.h().SetPausePending(true)
	return OK
}

func (s State) resume(env Env) Error {
	if env.Sender != s.h().Owner() {
		return ErrNotOwner
	}
	if s.Phase() != Paused {
		return ErrNotPaused
	}
	s.enter(WaitingForMembers, env)
	return OK
}
