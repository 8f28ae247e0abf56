package coordinator

import (
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// Apply changes s by one message. If it refuses the message it returns an Error and leaves the
// bytes unchanged. It costs O(members) or less, however much time has passed. If the host bounds
// its work, it may leave a closing, which Ticks continue.
func (s State) Apply(env Env, m Message) error {
	if env.Value > 0 && !takesValue(m) {
		return ErrValue
	}
	if m == nil {
		return ErrMessage
	}
	_, tick := m.(Tick)
	closing := s.Closing()
	if closing && !tick {
		return ErrClosing
	}
	if e := m.apply(s, env); e != OK {
		return e
	}
	if !paysOut(m) {
		s.h().SetPayment(key.Public{}, 0)
	}
	if !closing {
		s.cases().ExpireChecks(env.dispute(nil))
		s.cases().ExpireDisputes(env.dispute(nil))
	}
	// A message makes at most transitionsMax transitions. The next message makes the rest.
	w := env.work()
	for n := 0; n < transitionsMax && s.advance(env, w); n++ {
	}
	if !s.Closing() && s.book().Advance(env.score()) {
		s.begin(env, settling)
	}
	if s.h().Closing() == settling && s.book().Settle(w) {
		s.end()
	}
	return nil
}

// transitionsMax bounds the transitions of one message: the end of RoundTrain and of RoundWitness,
// twice.
const transitionsMax = 4

func (Tick) apply(State, Env) Error { return OK }

// presentMember returns the place of the member known by pub, if it is present.
func (s State) presentMember(pub key.Public) (Member, Error) {
	i, ok := s.Find(pub)
	if !ok || !s.status(i).Present() {
		return 0, ErrNotMember
	}
	return i, OK
}

func (Withdraw) apply(s State, env Env) Error {
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

func (m Ready) apply(s State, env Env) Error {
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

func (m Checkpoint) apply(s State, env Env) Error {
	i, e := s.presentMember(env.Sender)
	if e != OK {
		return e
	}
	params, _ := s.Params()
	at, chosen := s.checkpointerAt(i)
	switch {
	case s.Phase() != Cooldown:
		return ErrPhase
	case m.Epoch != s.Epoch():
		return ErrEpoch
	case !chosen:
		return ErrNotCheckpointer
	case m.Params != params, m.Manifest.IsZero():
		return ErrParams
	case !s.h().CheckpointNamed(at).IsZero():
		return ErrDuplicate
	}
	s.h().SetCheckpointNamed(at, m.Manifest)
	words := s.wordsFor(m.Manifest)
	switch saved := s.h().HasCheckpoint() && s.h().CheckpointEpoch() == m.Epoch; {
	case saved && words <= s.h().CheckpointWords():
		return OK // another one has as many words, and came first
	case !saved || s.h().CheckpointManifest() != m.Manifest:
		s.h().SetHasCheckpoint(true)
		s.h().SetCheckpointEpoch(m.Epoch)
		s.h().SetCheckpointParams(m.Params)
		s.h().SetCheckpointManifest(m.Manifest)
		s.h().SetCheckpointKey(env.Sender)
	}
	s.h().SetCheckpointWords(words)
	return OK
}

// wordsFor returns how many of the places for checkpointers name this manifest; places that
// name none yet hold zero.
func (s State) wordsFor(manifest wire.Hash) uint8 {
	words := uint8(0)
	for p := range uint32(checkpointersMax) {
		if s.h().CheckpointNamed(p) == manifest {
			words++
		}
	}
	return words
}

// checkpointed reports whether nothing more is to be said of the epoch's checkpoint: two of those
// chosen to make it named the same manifest, or all of them named one.
func (s State) checkpointed() bool {
	if !s.h().HasCheckpoint() || s.h().CheckpointEpoch() != s.Epoch() {
		return false
	}
	named := checkpointersMax - s.wordsFor(wire.Hash{})
	return s.h().CheckpointWords() >= checkpointWords || int(named) >= len(s.Checkpointers())
}
