package coordinator

import (
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/coordinator/score"
	"github.com/entrain-network/entrain/key"
)

// Status is a member's status in the run.
type Status uint8

// The statuses. Waiting, ready and active members are present.
const (
	StatusWaiting   Status = 1 // takes part from the next epoch on
	StatusReady     Status = 2 // holds the agreed parameters, in Warmup
	StatusActive    Status = 3 // takes part in the epoch
	StatusDropped   Status = 4 // missed too often; may join again
	StatusWithdrawn Status = 5 // left; may join again
	StatusEjected   Status = 6 // convicted; may not join again
	StatusReplaced  Status = 7 // lost its slot to another; may join again as a newcomer
)

// String returns a one-word name.
func (s Status) String() string {
	names := [...]string{"none", "waiting", "ready", "active", "dropped", "withdrawn", "ejected", "replaced"}
	if int(s) < len(names) {
		return names[s]
	}
	return "none"
}

// Present reports whether a member with this status counts towards the members that a run needs.
func (s Status) Present() bool { return s == StatusWaiting || s == StatusReady || s == StatusActive }

// Member is a copy of a place in the table of members. A member keeps its place, and so its index,
// while it is present and while a round of the running epoch mentions it.
type MemberState struct {
	Key         key.Public
	Status      Status
	Points      uint64 // sequences of accepted results, one point each
	Results     uint32 // results accepted
	Missed      uint8  // results and warmups missed and not made up for
	Idle        uint8  // elections as a witness in a row without a report
	Speed       uint32 // tokens a second, as last stated
	SpeedSet    bool   // a SetSpeed was accepted in this epoch; another is refused
	JoinedMs    uint64 // when it last joined
	JoinedEpoch Epoch  // State.Epoch then
	LeftMs      uint64 // when it last left or was dropped
	LeftRound   Round  // State.Round then

	Stake   uint64     // tokens it loses when it is convicted
	Balance uint64     // rewards not yet claimed, in tokens
	Settled uint64     // Points that no conviction can take
	Claimed uint64     // Settled points that were paid
	Payee   key.Public // the key that its claims are paid to

	Doubt      uint8  // weight of its results in the draw of checks, 1 to 16
	Strikes    uint8  // times in a row it failed to serve a check
	Skipped    uint8  // checks in a row that it failed to make
	Astray     uint8  // reports in a row that named wrong parameters
	Passed     uint32 // checks of its results that passed
	FirstRound Round  // round of its first accepted result; 0 = none
	LastRound  Round  // round of its last accepted result
	ReleaseMs  uint64 // when its stake is free; 0 while it is a member of a running run

	Since    Round // State.Window at its first epoch, or, before that, at its registration
	Score    int16 // moving average of its scores, in units of 1/ScoreOne; 0 if Scored is false
	Scored   bool
	Unvested uint64 // tokens for its last scores; they vest to Balance with the next scores
	Earned   uint64 // all tokens that its scores ever earned
}

// Count returns the number of places of the table of members in use. Members are numbered 0 to
// Count-1.
func (s State) Count() Member { return s.h().Count() }

// Member returns the member in place i. It panics when i is not below Count.
func (s State) Member(i Member) MemberState {
	b := s.member(i)
	return MemberState{
		Key:         b.Key(),
		Status:      Status(b.Status()),
		Points:      b.Points(),
		Results:     b.Results(),
		Missed:      b.Missed(),
		Idle:        b.Idle(),
		Speed:       b.Speed(),
		SpeedSet:    b.SpeedSet(),
		JoinedMs:    b.JoinedMs(),
		JoinedEpoch: b.JoinedEpoch(),
		LeftMs:      b.LeftMs(),
		LeftRound:   b.LeftRound(),
		Stake:       b.Stake(),
		Balance:     b.Balance(),
		Settled:     b.Settled(),
		Claimed:     b.Claimed(),
		Payee:       b.Payee(),
		Doubt:       b.Doubt(),
		Strikes:     b.Strikes(),
		Skipped:     b.Skipped(),
		Astray:      b.Astray(),
		Passed:      b.Passed(),
		FirstRound:  b.FirstRound(),
		LastRound:   b.LastRound(),
		ReleaseMs:   s.releaseMs(i),
		Since:       b.Since(),
		Score:       score.Fixed(b.Score()),
		Scored:      b.Score() != 0,
		Unvested:    b.Unvested(),
		Earned:      b.Earned(),
	}
}

// member returns the bytes of place i, which is in use.
func (s State) member(i Member) record.Place {
	if i >= s.Count() {
		panic("coordinator: no such member")
	}
	return s.place(i)
}

// place returns the bytes of place i, in use or not.
func (s State) place(i Member) record.Place { return s.buffer().Place(i) }

// Key returns the key of the member in place i. It panics when i is not below Count.
func (s State) Key(i Member) key.Public { return s.member(i).Key() }

// Status returns the status of the member in place i. It panics when i is not below Count.
func (s State) Status(i Member) Status { return s.status(i) }

func (s State) status(i Member) Status { return Status(s.member(i).Status()) }

// Find returns the place of the member with the key pub, whatever its status.
func (s State) Find(pub key.Public) (i Member, ok bool) { return s.buffer().Find(pub) }

// Present returns how many members are present.
func (s State) Present() uint32 { return s.buffer().Present() }

// tally counts members by status.
type tally struct {
	present, ready, active uint32
	unready                uint32 // waiting since before the phase began
}

func (s State) tally() tally {
	var t tally
	since, places := s.PhaseSince(), s.buffer().Places()
	for i := range s.Count() {
		b := places.At(i)
		switch Status(b.Status()) {
		case StatusWaiting:
			t.present++
			if b.JoinedMs() <= since {
				t.unready++
			}
		case StatusReady:
			t.present++
			t.ready++
		case StatusActive:
			t.present++
			t.active++
		}
	}
	return t
}

func putStatus(b record.Place, st Status) { b.SetStatus(uint8(st)) }

// leave removes member i with the status st.
func (s State) leave(i Member, st Status, env Env) {
	b := s.place(i)
	putStatus(b, st)
	b.SetLeftMs(env.NowMs)
	b.SetLeftRound(s.Round())
	b.SetReleaseMs(env.NowMs + s.h().UnbondMs())
}

// miss counts a result or a warmup that member i missed, and drops the member if there are too many
// in a row.
func (s State) miss(i Member, env dispute.Env) {
	b := s.place(i)
	b.SetSteady(0)
	if n := b.Missed(); n < s.h().MissedMax() {
		b.SetMissed(n + 1) // as Fault, which is dear, counts
		return
	}
	b.SetMissed(s.cases().Fault(env, i, b.Missed()))
}

// steadyMax is how many results in a row must be accepted to make up for one that was missed. If
// one made up for all, a member could hold up three rounds of four for nothing.
const steadyMax = 4

// makeUp counts an accepted result of a member that missed one, and takes a miss off after
// steadyMax in a row.
func makeUp(b record.Place) {
	if n := b.Steady() + 1; n < steadyMax {
		b.SetSteady(n)
		return
	}
	b.SetSteady(0)
	b.SetMissed(b.Missed() - 1)
}

// idle counts an election for which member i did not report, and drops the member if there are too
// many in a row.
func (s State) idle(i Member, env Env) {
	b := s.place(i)
	b.SetIdle(s.cases().Fault(env.dispute(nil), i, b.Idle()))
}

// standDown makes every present member wait, at the end of an epoch or a warmup.
func (s State) standDown() {
	for i := range s.Count() {
		b := s.place(i)
		if st := Status(b.Status()); st == StatusReady || st == StatusActive {
			putStatus(b, StatusWaiting)
		}
	}
}
