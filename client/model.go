package client

import (
	"github.com/entrain-network/entrain/client/table"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// healFrom bounds the peers named for a transfer of the agreed parameters.
const healFrom = 256

// model is the parameters that the driver holds.
type model struct {
	started  bool   // Loaded has come
	known    bool   // there are parameters
	behindMs uint64 // since when sets that lead to the agreed ones are waited for, between epochs
	round    coordinator.Round
	hash     wire.Hash
	history  table.History     // of this member's parameters
	changed  bool              // since Retain was asked for
	doubted  coordinator.Round // whose parameters an update made that cannot be checked any more
	sets     []Set             // from before the start
	applying bool
	healing  bool
	healAt   uint64
	heals    uint32 // how often they were asked for
}

func (v *model) loaded(ev Loaded) {
	v.started = true
	if ev.Known && !v.known {
		v.set(ev.Round, ev.Params)
		v.sets = ev.Sets
	}
}

func (v *model) set(round coordinator.Round, hash wire.Hash) {
	v.known, v.round, v.hash, v.changed, v.behindMs = true, round, hash, true, 0
	v.history.Set(round, hash)
}

// at returns the hash that this member's parameters had at the start of a round.
func (v *model) at(round coordinator.Round) (wire.Hash, bool) {
	hash, ok := v.history.At(round)
	return hash, v.known && ok
}

// atAgreed reports whether the held parameters are the ones that the run agreed on last.
func (m *Machine) atAgreed() bool {
	agreed, _ := m.state.Params()
	return m.model.known && m.model.hash == agreed
}

// syncToAgreed brings the parameters to the agreed ones between epochs, when nothing moves.
func (m *Machine) syncToAgreed() {
	if m.model.applying || m.model.healing {
		return
	}
	if m.atAgreed() {
		if m.model.round != m.state.Round() {
			m.model.set(m.state.Round(), m.model.hash)
		}
		return
	}
	// The last sets of the epoch may still be at hand and cheaper than the model. After an epoch that
	// was rolled back they lead on from it. If nobody has them, no round opens that ends the waiting.
	if m.model.behindMs == 0 {
		m.model.behindMs = max(m.now, 1)
	}
	if _, agreed := m.state.Params(); m.model.known && m.model.round < agreed && !m.disagrees() && m.reachable() {
		m.catchUp()
		if m.model.applying || !m.reached(m.model.behindMs+m.run.WarmupMs/2) {
			return
		}
	}
	m.heal()
}

// disagrees reports whether this member's parameters of the agreed round differ from the agreed
// ones.
func (m *Machine) disagrees() bool {
	agreed, round := m.state.Params()
	own, ok := m.model.at(round)
	return ok && own != agreed
}

// kept returns the set that made the parameters of round q from the held ones before the start.
// Round q has one accepted set, so it is that, whatever this member could learn of it today.
func (v *model) kept(q coordinator.Round, step coordinator.Step) (s Set, ok bool) {
	for len(v.sets) > 0 && !ok {
		s, v.sets = v.sets[0], v.sets[1:]
		ok = s.To == q && s.Step == step && s.From == v.hash
	}
	return s, ok
}

// reachable reports whether the state still has every round whose accepted set the held parameters
// lack.
func (m *Machine) reachable() bool {
	for q := m.model.round + 1; q <= m.state.Round(); q++ {
		if _, ok := table.Prior(m.state, q); !ok {
			return false
		}
	}
	return true
}

// catchUp brings the parameters to the start of the current round, one round at a time.
func (m *Machine) catchUp() {
	if m.model.applying || m.model.healing {
		return
	}
	agreed, round := m.state.Params()
	if !m.model.known || m.disagrees() || !m.reachable() {
		// Parameters of a later round than the agreed one that we cannot judge are kept until a
		// round we know is agreed.
		if m.model.known && m.model.hash == agreed && m.model.round != round {
			m.model.set(round, agreed)
			return
		}
		m.heal()
		return
	}
	for m.model.round < m.state.Round() {
		q := m.model.round + 1
		a, _ := table.Prior(m.state, q)
		if a == 0 {
			m.model.set(q, m.model.hash)
			continue
		}
		r, _ := m.state.At(a)
		if s, ok := m.model.kept(q, r.Step()); ok {
			m.model.applying, m.results(a).follow.unchecked = true, s.Followed
			m.do(Apply{To: q, Of: a, Step: s.Step, Kept: true})
			return
		}
		if update, follows := m.update(a); follows {
			if !update.IsZero() {
				f := &m.results(a).follow
				m.model.applying, f.unchecked = true, !f.assembled
				m.do(Apply{To: q, Of: a, Step: r.Step(), Update: update})
			}
			return
		}
		rs := m.results(a)
		if m.follows(rs) {
			m.fetchOpen(rs)
		}
		payloads, complete := m.accepted(a)
		if !complete {
			if m.exchange.outdated(round) {
				m.heal()
			}
			return // commitments or payloads are being fetched
		}
		if len(payloads) == 0 {
			m.model.set(q, m.model.hash)
			continue
		}
		seed, _ := m.exchange.seed(a)
		m.model.applying, rs.follow.unchecked = true, false
		m.do(Apply{To: q, Of: a, Seed: seed, Step: r.Step(), Payloads: payloads, Serve: m.follows(rs)})
		return
	}
}

func (m *Machine) applied(ev Applied) {
	m.model.applying = false
	if !ev.OK {
		m.model.known = false // what the driver holds is unusable; fetch the agreed model
		return
	}
	if ev.To == m.model.round+1 {
		m.model.set(ev.To, ev.Params)
		if a, _ := table.Prior(m.state, ev.To); a != 0 {
			f := &m.results(a).follow
			f.applied, f.used = ev.To, ev.Update
			if !f.unchecked && !f.used.IsZero() {
				m.judgeNamed(f, true) // it was made here
			}
		}
	}
}

// heal asks for the agreed parameters.
func (m *Machine) heal() {
	if m.model.healing || m.work.running != 0 {
		if m.work.running != 0 {
			m.cancelTraining()
		}
		return
	}
	agreed, round := m.state.Params()
	if !m.due(&m.model.healAt, reHealMs) {
		return
	}
	m.model.healing = true
	// Nearly all have the agreed parameters. In a large run others are asked each time.
	salt := round
	if n := m.state.Count(); n > healFrom {
		salt += coordinator.Round(m.model.heals * healFrom % uint32(n))
	}
	m.model.heals++
	m.do(Heal{Round: round, Params: agreed, From: m.peers(salt, healFrom)})
}

func (m *Machine) healed(ev Healed) {
	m.model.healing = false
	if !ev.OK {
		return
	}
	m.model.history, m.model.doubted = table.History{}, 0
	m.model.set(ev.Round, ev.Params)
}

// peers lists other present members, at most as many as given. The first one depends on the member
// and the salt, so that they do not all ask the same one.
func (m *Machine) peers(salt coordinator.Round, most coordinator.Member) []key.Public {
	n := m.state.Count()
	var out []key.Public
	for k := coordinator.Member(0); k < n && coordinator.Member(len(out)) < most; k++ {
		i := (k + coordinator.Member(salt) + m.member.index) % n
		if k := m.state.Key(i); k != m.cfg.Self && m.state.Status(i).Present() {
			out = append(out, k)
		}
	}
	return out
}
