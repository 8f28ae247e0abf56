package demo

import (
	"fmt"
	"slices"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/view"
	"github.com/entrain-network/entrain/wire"
)

// progress is what a demo knows of its run: the newest state on the chain, and what the clients
// reported. It starts and stops nothing.
type progress struct {
	set     Settings
	clients []client
	state   coordinator.State
	seen    bool  // a state was
	payload total // bytes of the clients' results

	convictions []Conviction
	disputes    map[uint32]coordinator.Dispute // as they were seen last
	// operations returns the names of the operations of a step. It may be nil.
	operations func(coordinator.Case) ([]string, error)
}

// client is what a demo knows of one client.
type client struct {
	name     string
	key      key.Public
	cheats   bool
	params   wire.Hash // of the parameters it holds
	finished bool      // it has reported the final parameters
	sent     total     // bytes that it wrote to its bucket, by window
}

type total struct{ sum, count uint64 }

func (t *total) add(n uint64) { t.sum, t.count = t.sum+n, t.count+1 }

func (t total) mean() uint64 { return t.sum / max(1, t.count) }

// client returns the client with a name, or nil.
func (p *progress) client(name string) *client {
	if i := slices.IndexFunc(p.clients, func(c client) bool { return c.name == name }); i >= 0 {
		return &p.clients[i]
	}
	return nil
}

// clientOf returns the client with a key, or nil.
func (p *progress) clientOf(k key.Public) *client {
	if i := slices.IndexFunc(p.clients, func(c client) bool { return c.key == k }); i >= 0 {
		return &p.clients[i]
	}
	return nil
}

// name names a client by its key, or writes the key of another participant.
func (p *progress) name(k key.Public) string {
	if c := p.clientOf(k); c != nil {
		return c.name
	}
	return view.Short(k.String())
}

// cheats reports whether a key is that of a client that cheats.
func (p *progress) cheats(k key.Public) bool {
	c := p.clientOf(k)
	return c != nil && c.cheats
}

// event takes what a client reports.
func (p *progress) event(c *client, ev event.Event) {
	switch ev := ev.(type) {
	case event.Loaded:
		c.params = ev.Params
	case event.Applied:
		c.params = ev.Params
	case event.Healed:
		c.params = ev.Params
	case event.Finished:
		c.params, c.finished = ev.Params, true
	case event.Trained:
		p.payload.add(ev.Bytes)
	case event.Traffic:
		c.sent.add(ev.Bytes)
	}
}

// observe takes the newest state of the run.
func (p *progress) observe(s coordinator.State) {
	p.state, p.seen = s, true
	if p.disputes == nil {
		p.disputes = map[uint32]coordinator.Dispute{}
	}
	for _, d := range s.Disputes() {
		p.disputes[d.ID] = d
	}
	for _, v := range s.Convictions() {
		if int(v.Number) > len(p.convictions) {
			p.convictions = append(p.convictions, p.convicted(v))
		}
	}
}

// cheatsJoined reports whether all clients that cheat are members.
func (p *progress) cheatsJoined() bool {
	return !slices.ContainsFunc(p.clients, func(c client) bool {
		if !c.cheats {
			return false
		}
		_, member := p.state.Find(c.key)
		return !member
	})
}

// over reports whether the run has finished.
func (p *progress) over() bool { return p.seen && p.state.Phase() == coordinator.Finished }

// agreed returns the hash of the parameters that the run agreed on last.
func (p *progress) agreed() wire.Hash {
	if !p.seen {
		return wire.Hash{}
	}
	hash, _ := p.state.Params()
	return hash
}

// equal reports whether the run has finished and all honest clients hold its final parameters.
func (p *progress) equal() bool {
	agreed := p.agreed()
	return p.over() && !slices.ContainsFunc(p.clients, func(c client) bool { return !c.cheats && (!c.finished || c.params != agreed) })
}

// undecided reports whether a check of a cheat, or by one, is open.
func (p *progress) undecided() bool {
	return slices.ContainsFunc(p.state.Checks(), func(c coordinator.Check) bool {
		return p.cheats(p.state.Key(c.Member)) || p.cheats(p.state.Key(c.Verifier))
	})
}

// scoring reports whether a period of the finished run is still to be scored.
func (p *progress) scoring() bool { return p.over() && p.state.DeadlineHeight() != 0 }

// Conviction is a conviction in the summary.
type Conviction struct {
	Client    string `json:"client"`
	Adversary string `json:"adversary,omitempty"` // the kind of cheat that it is; "" if it is honest
	Offence   string `json:"offence"`
	Lesser    bool   `json:"lesser,omitempty"` // it cost a fee: no proof of cheating
	Round     uint32 `json:"round"`            // what it is about
	At        uint32 `json:"at_round"`         // in which it was convicted
	By        string `json:"by,omitempty"`     // who showed it
	Slashed   uint64 `json:"slashed"`
	Stake     uint64 `json:"stake_left"`
	Results   uint32 `json:"results"` // of it that were accepted before
	Evidence  string `json:"evidence,omitempty"`
	Proof     string `json:"proof"` // in a line
}

func (p *progress) convicted(v coordinator.Conviction) Conviction {
	out := Conviction{
		Client: p.name(v.Key), Offence: v.Offence.String(), Lesser: v.Offence.Lesser(), Round: v.Round, At: p.state.Round(),
		Slashed: v.Slashed, Results: v.Results, Proof: p.proof(v),
	}
	if p.cheats(v.Key) {
		out.Adversary = p.set.Adversary
	}
	if !v.ByKey.IsZero() {
		out.By = p.name(v.ByKey)
	}
	if !v.Evidence.IsZero() {
		out.Evidence = v.Evidence.String()
	}
	if i, ok := p.state.Find(v.Key); ok {
		out.Stake = p.state.Member(i).Stake
	}
	return out
}

// proof describes what convinced the chain.
func (p *progress) proof(v coordinator.Conviction) string {
	switch v.Offence {
	case coordinator.WrongResult, coordinator.FalseAccusation, coordinator.Silence:
		return p.proofOfDispute(v)
	case coordinator.Equivocated:
		return "two different commitments to one share, both with its signature"
	case coordinator.FalsePass:
		return "it vouched for a result with the root of a gradient that nobody computed"
	case coordinator.NotServing:
		return "three times in a row it served the state that its result began from neither to its verifier nor to the tie-breakers"
	case coordinator.Absence:
		return "none of its results came in time, round after round"
	case coordinator.Contradiction:
		return "in three reports in a row it named other parameters than a quorum of the witnesses"
	}
	return ""
}

// proofOfDispute describes how the last dispute of the convicted client ended.
func (p *progress) proofOfDispute(v coordinator.Conviction) string {
	var d coordinator.Dispute
	for _, o := range p.disputes {
		accuser := o.Accuser != coordinator.NoMember && p.state.Key(o.Accuser) == v.Key
		if o.ID > d.ID && o.Round == v.Round && (p.state.Key(o.Accused) == v.Key || accuser) {
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
		return fmt.Sprintf("its own trace is wrong: the two differ in %s", p.where(d))
	}
	return fmt.Sprintf("the two traces first differ in %s, and the chain computed that slice itself", p.where(d))
}

// where names the slice of a step at which two traces part.
func (p *progress) where(d coordinator.Dispute) string {
	text := fmt.Sprintf("operation %d", d.Op)
	if p.operations != nil {
		if names, err := p.operations(d.Case()); err == nil && int(d.Op) < len(names) {
			text = fmt.Sprintf("operation %d of %d (%s)", d.Op+1, len(names), names[d.Op])
		}
	}
	return fmt.Sprintf("%s, tile %d, slice %d", text, d.Tile, d.Slice)
}

// caught reports whether a cheat was convicted of what its kind does.
func (p *progress) caught() bool {
	k, _ := p.set.kind()
	return slices.ContainsFunc(p.convictions, func(v Conviction) bool {
		return v.Adversary != "" && slices.ContainsFunc(k.Offences, func(o coordinator.Offence) bool { return o.String() == v.Offence })
	})
}

// wronged reports whether an honest client was convicted of cheating.
func (p *progress) wronged() bool {
	return slices.ContainsFunc(p.convictions, func(v Conviction) bool { return v.Adversary == "" && !v.Lesser })
}

// Reward is what one client has earned for its scores.
type Reward struct {
	Client  string  `json:"client"`
	Cheats  bool    `json:"adversary,omitempty"`
	Score   float64 `json:"score"`  // moving average, -1 to 1
	Earned  uint64  `json:"earned"` // tokens
	Share   float64 `json:"share"`  // of what all clients earned
	Results uint32  `json:"results"`
	// Sent is the bytes that it wrote to its bucket in a window, in the mean.
	Sent uint64 `json:"bytes_per_window"`
}

// rewards returns what each client has earned, and the share that the cheats have of it.
func (p *progress) rewards() (rows []Reward, cheats float64) {
	all := uint64(0)
	for _, c := range p.clients {
		row := Reward{Client: c.name, Cheats: c.cheats, Sent: c.sent.mean()}
		if at, ok := p.state.Find(c.key); ok {
			v := p.state.Member(at)
			row.Earned, row.Results = v.Earned, v.Results
			row.Score = float64(v.Score) / float64(coordinator.ScoreOne)
			all += v.Earned
		}
		rows = append(rows, row)
	}
	for i := range rows {
		rows[i].Share = float64(rows[i].Earned) / float64(max(1, all))
		if rows[i].Cheats {
			cheats += rows[i].Share
		}
	}
	return rows, cheats
}

// sent returns the bytes that a client wrote to its bucket in a window, the mean of all.
func (p *progress) sent() uint64 {
	var t total
	for _, c := range p.clients {
		t.sum, t.count = t.sum+c.sent.sum, t.count+c.sent.count
	}
	return t.mean()
}
