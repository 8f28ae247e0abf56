package client

import (
	"github.com/entrain-network/entrain/client/docket"
	"github.com/entrain-network/entrain/client/share"
	"github.com/entrain-network/entrain/client/table"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/wire"
)

// Common answers questions about a state to which all members get the same answer. A process with
// many members, as a simulation is, computes each answer once.
type Common interface {
	// Select is coordinator.State.Select.
	Select(s coordinator.State, a coordinator.Round, member coordinator.Member, candidates []wire.Hash) (i int, ok bool)
	// Shares returns the shares of a round.
	Shares(r coordinator.RoundState) *Shares
	// Roster returns the members of a state. before is that of an earlier state of the run, or nil.
	Roster(s coordinator.State, before *Roster) *Roster
	// Docket returns the open checks and disputes of a state.
	Docket(s coordinator.State) *Docket
}

// Shares are a round's shares.
type Shares = share.Shares

// What a state says of checks and disputes, and of members.
type (
	Docket   = docket.Docket
	Position = docket.Position
	Roster   = table.Roster
)

// Alone is the Common of a process with one member.
type Alone struct{}

// Select implements Common.
func (Alone) Select(s coordinator.State, a coordinator.Round, member coordinator.Member, candidates []wire.Hash) (int, bool) {
	return s.Select(a, member, candidates)
}

// Shares implements Common.
func (Alone) Shares(r coordinator.RoundState) *Shares { return share.All(r) }

// Docket implements Common.
func (Alone) Docket(s coordinator.State) *Docket { return docket.New(s) }

// Roster implements Common. It returns before if that is like it.
func (Alone) Roster(s coordinator.State, before *Roster) *Roster { return table.RosterOf(s, before) }
