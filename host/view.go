package host

import (
	"slices"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// View is a run as of the last commit. It stays the same as the host continues, and may be read
// from any goroutine.
type View struct {
	Name    string
	Changed uint64            // the height of the block that changed the state last
	Hash    wire.Hash         // the state's
	State   coordinator.State // must not be written to
}

// Runs returns the names of all committed runs, in order.
func (h *Host) Runs() []string {
	var names []string
	for _, r := range h.runs {
		if r.frozen != nil {
			names = append(names, r.name)
		}
	}
	return names
}

// View returns a run as of the last commit; false if there is no such run.
func (h *Host) View(name string) (View, bool) {
	r, ok := h.committed(name)
	if !ok {
		return View{}, false
	}
	return View{Name: name, Changed: r.height, Hash: r.hash, State: r.view}, true
}

// Spec returns a copy of the run's spec; false if there is no such run.
func (h *Host) Spec(name string) ([]byte, bool) {
	r, ok := h.committed(name)
	if !ok {
		return nil, false
	}
	return slices.Clone(r.spec), true
}

// Peers returns the addresses announced for the run, in order of keys; false if there is no such
// run. The caller must not change them; as long as they are the same it gets the same list.
func (h *Host) Peers(name string) ([]Peer, bool) {
	r, ok := h.committed(name)
	if !ok {
		return nil, false
	}
	return r.peers.show(), true
}

func (p *peers) show() []Peer {
	if p.shown == nil {
		p.shown = make([]Peer, len(p.list))
		for i, e := range p.list {
			p.shown[i] = e.Peer
		}
	}
	return p.shown
}

// Seed returns the seed of the newest block.
func (h *Host) Seed() wire.Hash { return h.seed }

// Supply returns the number of tokens in existence.
func (h *Host) Supply() uint64 { return h.bank.supply }

// Balance returns the tokens in the purse of k, which are those it can pay with.
func (h *Host) Balance(k key.Public) uint64 { return h.bank.tokens(k) }

// Purses returns a hash of what all keys have.
func (h *Host) Purses() wire.Hash {
	purses, _ := h.bank.sums()
	return purses
}

// Pool describes a pool.
type Pool struct {
	Name     string     `json:"name"`
	Address  key.Public `json:"address"` // where runs pay it
	Operator key.Public `json:"operator"`
	// Keys that may stake from it besides the operator.
	Workers      []key.Public `json:"workers"`
	Runs         []string     `json:"runs"`          // runs that it may stake in
	CommissionBP uint16       `json:"commission_bp"` // on income beyond what was lent
	// Least share of the loans that is the operator's own.
	OwnBP uint16 `json:"own_bp"`
	Least uint64 `json:"least"` // least first loan of a lender
	// The operator's, for the pool's place in the table.
	Deposit    uint64   `json:"deposit"`
	Stage      string   `json:"stage"` // lending, working or closed
	Lent       uint64   `json:"lent"`
	Idle       uint64   `json:"idle"`       // part of lent that can still be staked
	Back       uint64   `json:"back"`       // income that replaced what was lent
	Held       uint64   `json:"held"`       // income that waits for the first stake
	Commission uint64   `json:"commission"` // the operator's, not collected
	Unpaid     uint64   `json:"unpaid"`     // the lenders', not collected
	Lenders    []Lender `json:"lenders"`    // in order of keys
}

// Lender is a lender of a pool.
type Lender struct {
	Key  key.Public `json:"key"`
	Lent uint64     `json:"lent"`
	Due  uint64     `json:"due"` // of its share, what it can collect
}

// Pool describes a pool; false if there is none of that name.
func (h *Host) Pool(name string) (Pool, bool) {
	i, ok := h.bank.findPool(name)
	if !ok {
		return Pool{}, false
	}
	return h.bank.pools[i].show(), true
}

func (p *pool) show() Pool {
	v := Pool{
		Name: p.name, Address: p.address, Operator: p.opener, Workers: append([]key.Public{}, p.terms.Workers...),
		Runs:         slices.Clone(p.terms.Runs),
		CommissionBP: p.terms.CommissionBP, OwnBP: p.terms.OwnBP, Least: p.terms.Least, Deposit: p.deposit, Stage: p.stage.String(),
		Lent: p.lent, Idle: p.idle, Back: p.back, Held: p.held, Commission: p.fee, Unpaid: p.unpaid, Lenders: []Lender{},
	}
	for _, l := range p.lenders {
		due := l.lent
		if p.stage != poolLends {
			due = p.share(l)
		}
		v.Lenders = append(v.Lenders, Lender{Key: l.key, Lent: l.lent, Due: due})
	}
	return v
}

// Pools returns the names of all pools, in order.
func (h *Host) Pools() []string {
	names := []string{}
	for _, p := range h.bank.pools {
		names = append(names, p.name)
	}
	return names
}

func (h *Host) committed(name string) (*run, bool) {
	i, ok := h.find(name)
	if !ok || h.runs[i].frozen == nil {
		return nil, false
	}
	return h.runs[i], true
}
