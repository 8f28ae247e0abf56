package main

import (
	"fmt"
	"slices"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/lab/adversary"
	"github.com/entrain-network/entrain/ledger"
)

// court is what the demo knows of verification, from the chain itself: who is checked, who is accused, who was convicted of what. It is
// a plain value.
type court struct {
	kind    string       // of cheat; "" if all clients are honest
	cheats  int          // so many of the last clients
	keys    []key.Public // of the clients
	stakes  []uint64
	checks  uint32 // drawn so far
	passed  uint32
	number  uint32 // of disputes so far
	last    map[uint32]coordinator.Dispute
	pending bool // something about an adversary is undecided
	// names are what the operations of a step are called; nil if nobody knows.
	names func(coordinator.Case) ([]string, error)

	convictions []demoConviction
}

// demoConviction is a conviction in the summary.
type demoConviction struct {
	Client    string `json:"client"`
	Adversary string `json:"adversary,omitempty"` // kind of cheat it is; "" if it is honest
	Offence   string `json:"offence"`
	Lesser    bool   `json:"lesser,omitempty"` // it cost a fee: no proof of cheating
	Round     uint32 `json:"round"`            // what it is about
	At        uint32 `json:"at_round"`         // the round in which it was convicted
	By        string `json:"by,omitempty"`     // who showed it
	Slashed   uint64 `json:"slashed"`
	Stake     uint64 `json:"stake_left"`
	Results   uint32 `json:"results"` // of it that were accepted before
	Evidence  string `json:"evidence,omitempty"`
	Proof     string `json:"proof"` // in a line
}

// name is a client's, or the key of somebody else.
func (c *court) name(k key.Public) string {
	if i := slices.Index(c.keys, k); i >= 0 {
		return clientName(i)
	}
	return short(k.String())
}

// kindOf is the kind of cheat that a client is.
func (c *court) kindOf(k key.Public) string {
	if i := slices.Index(c.keys, k); i >= len(c.keys)-c.cheats {
		return c.kind
	}
	return ""
}

// judge takes the newest state of the run and returns what people should be told.
func (c *court) judge(s coordinator.State) (notes []string) {
	c.checks, c.passed = s.ChecksDrawn()
	c.number = s.DisputesTotal()
	c.pending = false
	if c.last == nil {
		c.last = map[uint32]coordinator.Dispute{}
	}
	for _, check := range s.Checks() {
		c.pending = c.pending || c.kindOf(s.Key(check.Member)) != "" || c.kindOf(s.Key(check.Verifier)) != ""
	}
	for _, d := range s.Disputes() {
		before, known := c.last[d.ID]
		c.last[d.ID] = d
		if !known || before.Stage != d.Stage {
			notes = append(notes, c.disputeLine(s, d))
		}
	}
	for _, v := range s.Convictions() {
		if int(v.Number) > len(c.convictions) {
			c.convictions = append(c.convictions, c.convicted(s, v))
			notes = append(notes, c.convictions[len(c.convictions)-1].line())
		}
	}
	c.stakes = make([]uint64, len(c.keys))
	for i, k := range c.keys {
		if at, ok := s.Find(k); ok {
			c.stakes[i] = s.Member(at).Stake
		}
	}
	return notes
}

// disputeLine says where a dispute stands.
func (c *court) disputeLine(s coordinator.State, d coordinator.Dispute) string {
	accused, accuser := c.name(s.Key(d.Accused)), "nobody at the moment"
	if d.Accuser != coordinator.NoMember {
		accuser = c.name(s.Key(d.Accuser))
	}
	if d.Unserved {
		return fmt.Sprintf("dispute %d: %s says that %s does not serve what round %d began from; others try", d.ID, accuser, accused, d.Round)
	}
	switch d.Stage {
	case coordinator.StageTieBreaking:
		return fmt.Sprintf("dispute %d: %s has computed round %d of %s again, and says it is wrong; others compute it too", d.ID, accuser, d.Round, accused)
	case coordinator.StageDefending:
		return fmt.Sprintf("dispute %d: %s is to show how it computed round %d", d.ID, accused, d.Round)
	case coordinator.StageDescending:
		return fmt.Sprintf("dispute %d: %s and %s look for the first of their operations that differ", d.ID, accused, accuser)
	case coordinator.StageEvidence:
		return fmt.Sprintf("dispute %d: they first differ in %s; the chain will compute it", d.ID, c.where(d))
	}
	return fmt.Sprintf("dispute %d: %v", d.ID, d.Stage)
}

// where says at which slice of a step two traces part.
func (c *court) where(d coordinator.Dispute) string {
	text := fmt.Sprintf("operation %d", d.Op)
	if c.names != nil {
		if names, err := c.names(d.Case()); err == nil && int(d.Op) < len(names) {
			text = fmt.Sprintf("operation %d of %d (%s)", d.Op+1, len(names), names[d.Op])
		}
	}
	return fmt.Sprintf("%s, tile %d, slice %d", text, d.Tile, d.Slice)
}

// convicted is a conviction as people read it.
func (c *court) convicted(s coordinator.State, v coordinator.Conviction) demoConviction {
	out := demoConviction{
		Client: c.name(v.Key), Adversary: c.kindOf(v.Key), Offence: v.Offence.String(), Lesser: v.Offence.Lesser(), Round: v.Round, At: s.Round(),
		Slashed: v.Slashed, Results: v.Results, Proof: c.proof(s, v),
	}
	if !v.ByKey.IsZero() {
		out.By = c.name(v.ByKey)
	}
	if !v.Evidence.IsZero() {
		out.Evidence = v.Evidence.String()
	}
	if i, ok := s.Find(v.Key); ok {
		out.Stake = s.Member(i).Stake
	}
	return out
}

// proof says what convinced the chain.
func (c *court) proof(s coordinator.State, v coordinator.Conviction) string {
	switch v.Offence {
	case coordinator.WrongResult, coordinator.FalseAccusation, coordinator.Silence:
		return c.proofOfDispute(s, v)
	case coordinator.Equivocated:
		return "two different commitments to one share, both signed by it"
	case coordinator.FalsePass:
		return "it vouched for a result with the root of a gradient that nobody computed"
	case coordinator.NotServing:
		return "three times in a row neither its verifier nor the tie-breakers were served the state its result began from"
	case coordinator.Absence:
		return "nothing of it was there in time, in one round after the other"
	case coordinator.Contradiction:
		return "in three reports in a row it named other parameters than a quorum of the witnesses"
	}
	return ""
}

// proofOfDispute says how the last dispute that the convicted took part in ended.
func (c *court) proofOfDispute(s coordinator.State, v coordinator.Conviction) string {
	var d coordinator.Dispute
	for _, o := range c.last {
		accuser := o.Accuser != coordinator.NoMember && s.Key(o.Accuser) == v.Key
		if o.ID > d.ID && o.Round == v.Round && (s.Key(o.Accused) == v.Key || accuser) {
			d = o
		}
	}
	switch {
	case d.ID == 0:
		return "what it signed is not about the share it was given"
	case v.Offence == coordinator.Silence:
		return fmt.Sprintf("it did not answer in dispute %d (%v)", d.ID, d.Stage)
	case v.Evidence.IsZero() || d.Stage == coordinator.StageDefending:
		return fmt.Sprintf("it had nothing to show in dispute %d (%v)", d.ID, d.Stage)
	case v.Offence == coordinator.FalseAccusation:
		return fmt.Sprintf("its own trace does not stand up: the two differ in %s", c.where(d))
	}
	return fmt.Sprintf("the two traces first differ in %s, and the chain computed that slice itself", c.where(d))
}

// line is the conviction in one.
func (v demoConviction) line() string {
	who := v.Client
	if v.Adversary != "" {
		who += " (" + v.Adversary + ")"
	}
	by := ""
	if v.By != "" {
		by = ", shown by " + v.By
	}
	return fmt.Sprintf("CONVICTED in round %d: %s of %s in round %d%s; it loses %s tokens of stake, %s are left. Proof: %s",
		v.At, who, v.Offence, v.Round, by, thousands(v.Slashed), thousands(v.Stake), v.Proof)
}

// caught says that an adversary was convicted of what it does.
func (c *court) caught() bool {
	k, _ := adversary.Find(c.kind)
	return slices.ContainsFunc(c.convictions, func(v demoConviction) bool {
		return v.Adversary != "" && slices.ContainsFunc(k.Offences, func(o coordinator.Offence) bool { return o.String() == v.Offence })
	})
}

// wronged says that an honest client was convicted of cheating.
func (c *court) wronged() bool {
	return slices.ContainsFunc(c.convictions, func(v demoConviction) bool { return v.Adversary == "" && !v.Lesser })
}

// line is what the board says of verification, "" if there is none.
func (c *court) line() string {
	if c.checks == 0 && len(c.convictions) == 0 {
		return ""
	}
	return fmt.Sprintf("recomputed: %d results drawn, %d found right   disputes %d   convictions %d", c.checks, c.passed, c.number, len(c.convictions))
}

// watchFor follows the run on the chain. States that come faster than they are read are left out.
func watchFor(states chan ledger.Snapshot) func(ledger.Snapshot) {
	return func(s ledger.Snapshot) {
		select {
		case states <- s:
		default:
		}
	}
}
