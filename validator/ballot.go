package validator

import (
	"slices"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/score"
	"github.com/entrain-network/entrain/wire"
)

// Ballot is what a validator tells the chain about a period: kept from before it commits to it
// until after it has revealed it.
type Ballot struct {
	Period uint32 // 0: none
	Salt   wire.Hash
	Scores []score.Score
}

// reveal is the message that shows a ballot.
func (b Ballot) reveal() coordinator.RevealScores {
	return coordinator.RevealScores{Period: b.Period, Salt: b.Salt, Scores: b.Scores}
}

// decideBallot commits to scores and reveals them. What the chain has of them it looks up there,
// not in its memory.
func (m *Machine) decideBallot() {
	period, stage := m.state.Scoring()
	if stage == score.StageNone || !m.state.MayScore(m.cfg.Self, period) {
		return
	}
	_, last := m.state.PeriodWindows(period)
	committed, revealed := m.told(period)
	switch {
	case stage == score.StageCommit && !committed:
		if m.ballot.Period != period {
			if !m.complete(last) && !m.hurries() {
				return
			}
			m.fill(period)
		}
		if m.saved && m.due(&m.askedMs, resubmitMs) {
			m.do(Submit{coordinator.CommitScores{Period: period, Hash: coordinator.ScoresHash(m.state.ID(), m.cfg.Self, m.ballot.reveal())}})
		}
	case stage == score.StageReveal && committed && !revealed && m.ballot.Period == period:
		if m.due(&m.askedMs, resubmitMs) {
			m.do(Submit{m.ballot.reveal()})
		}
	case committed && stage == score.StageCommit, revealed:
		m.askedMs = 0 // the next message is not to wait for the last one's sake
	}
}

// told says what of our own scores of a period is on the chain.
func (m *Machine) told(period uint32) (committed, revealed bool) {
	scores, ok := m.state.Scores(period)
	if !ok {
		return false, false
	}
	for _, v := range scores.Validators {
		if v.Key == m.cfg.Self {
			return v.Committed, v.Revealed
		}
	}
	return false, false
}

// complete reports whether all windows up to one were evaluated.
func (m *Machine) complete(last coordinator.Round) bool { return m.model.known && m.model.round > last }

// hurries reports whether the next window may be too late to commit.
func (m *Machine) hurries() bool {
	n := m.run.ScoreWindows
	return n == 0 || (m.state.Window()-1)%coordinator.Round(n)+1 >= coordinator.Round(n/2)
}

// fill makes the ballot of a period: of each member that did something in it, its average, unless
// it was never evaluated.
func (m *Machine) fill(period uint32) {
	b := Ballot{Period: period, Salt: wire.Sum("entrain/salt", m.cfg.Secret[:], wire.AppendU32(nil, period))}
	scores, _ := m.state.Scores(period)
	for _, did := range scores.Members {
		if a, ok := m.book.Find(m.state.Key(did.Member)); ok {
			b.Scores = append(b.Scores, score.Score{Member: did.Member, Value: a.Value()})
		}
	}
	if m.cfg.Say != nil {
		b.Scores = m.cfg.Say(m.state, period, slices.Clone(b.Scores))
	}
	m.ballot, m.saved, m.unsaved, m.askedMs = b, false, true, 0
	m.do(Balloted{Period: period, Scores: b.Scores})
}
