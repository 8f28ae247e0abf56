package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

// Genesis is what the replicas of a chain agree on before its first block.
type Genesis struct {
	Chain    string       `json:"chain"`
	TimeMs   uint64       `json:"time_ms"`            // the ledger's time before the first block, in milliseconds since 1970
	Creators []key.Public `json:"creators"`           // who may create runs, in order; none means anyone
	Accounts []Allocation `json:"accounts,omitempty"` // who has the chain's tokens, in order of keys; there are never more
	Replicas []Founder    `json:"replicas,omitempty"` // who keeps the chain, in order of keys
}

// Founder is a replica that has a seat before the first block.
type Founder struct {
	Key      key.Public `json:"key"`      // of its votes on blocks
	Chance   key.Public `json:"chance"`   // of its random values, see package chance
	Operator key.Public `json:"operator"` // who acts for it; zero if nobody
	Stake    uint64     `json:"stake"`    // tokens that it loses if it votes twice; besides those of accounts
}

// Allocation is what a key has of the chain's tokens before the first block.
type Allocation struct {
	Key    key.Public `json:"key"`
	Amount uint64     `json:"amount"`
}

// Check says what is wrong with g.
func (g Genesis) Check() error {
	if !ChainIDValid(g.Chain) {
		return fmt.Errorf("chain id %q: want 1 to %d of a-z, 0-9 and inner '-'", g.Chain, ChainIDBytesMax)
	}
	if len(g.Creators) > CreatorsMax {
		return fmt.Errorf("%d creators of runs, at most %d", len(g.Creators), CreatorsMax)
	}
	for i := 1; i < len(g.Creators); i++ {
		if g.Creators[i-1].Compare(g.Creators[i]) >= 0 {
			return fmt.Errorf("creators of runs are not in strictly increasing order at %v", g.Creators[i])
		}
	}
	return g.checkAccounts()
}

func (g Genesis) checkAccounts() error {
	if len(g.Accounts) > AllocationsMax {
		return fmt.Errorf("tokens for %d accounts, at most %d", len(g.Accounts), AllocationsMax)
	}
	supply := uint64(0)
	for i, a := range g.Accounts {
		switch {
		case i > 0 && g.Accounts[i-1].Key.Compare(a.Key) >= 0:
			return fmt.Errorf("accounts are not in strictly increasing order at %v", a.Key)
		case a.Key.IsZero():
			return errors.New("tokens for the zero key, which is nobody's")
		case a.Amount == 0:
			return fmt.Errorf("no tokens for account %v: leave it out", a.Key)
		case a.Amount > SupplyMax-supply:
			return fmt.Errorf("more than %d tokens in all", uint64(SupplyMax))
		}
		supply += a.Amount
	}
	return g.checkReplicas(supply)
}

// supply is how many tokens there are.
func (g Genesis) supply() uint64 {
	n := uint64(0)
	for _, a := range g.Accounts {
		n += a.Amount
	}
	for _, r := range g.Replicas {
		n += r.Stake
	}
	return n
}

// Referees makes the referee of a run's disputes from its spec, or says why there can be none. It is a part of the chain's
// rules: the same on all replicas.
type Referees func(spec []byte) (coordinator.Referee, error)

// Block is what a Host is told about a block before its transactions.
type Block struct {
	Height uint64
	TimeMs uint64    // in milliseconds since 1970; a time before the last block's counts as the last block's
	Seed   wire.Hash // what nobody knew before the block

	Guilty []key.Public // replicas that were shown to have voted twice
}

// Host is the deterministic state machine behind every ledger: the coordinators of all runs, their specs, the addresses of
// their participants, who has which tokens, and the nonces of keys. Its life is Begin, Deliver..., Commit for block after block. It is not safe
// for concurrent use.
type Host struct {
	genesis  Genesis
	referees Referees // nil: there are none
	height   uint64
	timeMs   uint64
	seed     wire.Hash // of the block begun last
	accounts accounts
	bank     bank
	replicas replicas
	runs     []*run // in order of names
	mark     mark
	rest     wire.Hash // of all but the mark, as of the last commit
}

type run struct {
	name  string
	spec  []byte
	state coordinator.State // a view of live
	live  []byte            // what Apply writes to
	peers peers
	// referee judges the run's disputes; nil if it has no verification.
	referee coordinator.Referee
	escrow  uint64 // tokens that came in with messages and were not paid out; what state.Escrow says
	height  uint64 // of the block that changed the state last
	// admission is who may take part.
	admission admission
	// frozen is a copy of live as of the last commit, never written to again: what the outside reads. The state's hash
	// belongs to it.
	frozen  []byte
	view    coordinator.State // on frozen
	hash    wire.Hash
	history merkle.Tree // over each state there was: see Change
	scratch []byte      // a copy of live that Due makes trials on
	trial   coordinator.State
}

// NewHost returns the state before the first block. Without referees, no run with verification can be created.
func NewHost(g Genesis, referees Referees) (*Host, error) {
	if err := g.Check(); err != nil {
		return nil, fmt.Errorf("genesis: %w", err)
	}
	h := &Host{
		genesis: g, referees: referees, timeMs: g.TimeMs,
		accounts: accounts{dirty: true}, bank: newBank(g), replicas: newReplicas(g), mark: mark{timeMs: g.TimeMs},
		seed: wire.Sum("entrain/ledger/seed/first", appendGenesis(nil, g)),
	}
	h.rest, _ = h.roots()
	return h, nil
}

// Chain returns the chain's id.
func (h *Host) Chain() string { return h.genesis.Chain }

// Height returns the height of the block begun last, 0 before the first.
func (h *Host) Height() uint64 { return h.height }

// TimeMs returns the ledger's time, in milliseconds since 1970.
func (h *Host) TimeMs() uint64 { return h.timeMs }

// Admit tells whether a transaction that was verified would be taken in a block of the given time, or of the ledger's if
// that is later. It changes nothing. The error is a *TxError.
func (h *Host) Admit(t Tx, nowMs uint64) error { return h.accounts.admit(&t, max(h.timeMs, nowMs)) }

// Outcome tells what became of a transaction in an earlier block, for as long as its key's last NoncesKept reach back.
func (h *Host) Outcome(t Tx) (Code, bool) { return h.accounts.outcome(&t) }

// Begin opens a block: its time becomes the ledger's, and every run is ticked.
func (h *Host) Begin(b Block) {
	h.height = b.Height
	h.timeMs = max(h.timeMs, b.TimeMs)
	h.seed = b.Seed
	h.accounts.prune(h.timeMs)
	for _, k := range b.Guilty {
		h.punish(k)
	}
	for _, r := range h.runs {
		// A tick that finds nothing to do is not an error, and one that the state refuses (a paused run, say) leaves it be.
		_ = r.state.Apply(h.env(r, key.Public{}), coordinator.Tick{})
		h.expire(r)
	}
	h.balanced("the block's beginning")
}

// Deliver executes one transaction of the open block. A transaction that is malformed, not verified or not admitted
// changes nothing; of any other the nonce is used up, whether or not it is accepted. The error is a *TxError.
func (h *Host) Deliver(b []byte) error {
	t, err := ParseTx(b)
	if err != nil {
		return err
	}
	if err := t.Verify(h.genesis.Chain); err != nil {
		return err
	}
	if err := h.Admit(t, h.timeMs); err != nil {
		return err
	}
	err = h.execute(t)
	h.accounts.take(&t, CodeOf(err))
	h.balanced("transaction " + t.ID.String())
	return err
}

func (h *Host) execute(t Tx) error {
	switch body := t.Body.(type) {
	case CreateRun:
		return h.create(t.Sender, body)
	case Announce:
		r, err := h.open(body.Run)
		if err != nil {
			return err
		}
		if r.peers.announce(t.Sender, body.Addrs, h.height, r.state) {
			r.peers.kept = false
		}
		return nil
	case RunMessage:
		r, err := h.open(body.Run)
		if err != nil {
			return err
		}
		return h.message(r, t.Sender, body)
	default:
		if err, ok := h.executeReplica(t.Sender, body); ok {
			return err
		}
		return h.executeAdmission(t.Sender, body)
	}
}

func (h *Host) executeBank(sender key.Public, body Body) error {
	switch body := body.(type) {
	case Transfer:
		return h.transfer(sender, body)
	case CreatePool:
		return h.createPool(sender, body)
	case Lend:
		return h.lend(sender, body)
	case Collect:
		return h.collect(sender, body)
	case ClosePool:
		return h.closePool(sender, body)
	case ClaimFor:
		return h.claimFor(sender, body)
	}
	panic(fmt.Sprintf("ledger: transaction with a body of type %T", body))
}

func (h *Host) create(sender key.Public, c CreateRun) error {
	name := c.Config.Name
	i, exists := h.find(name)
	switch {
	case len(h.genesis.Creators) > 0 && !slices.Contains(h.genesis.Creators, sender):
		return &TxError{Code: CodeNotCreator}
	case !RunNameValid(name):
		return refuse(CodeBadName, "%q: want 1 to %d of a-z, 0-9 and inner '-'", name, RunNameBytesMax)
	case exists:
		return refuse(CodeRunExists, "%q", name)
	case c.Config.Owner != sender:
		return refuse(CodeNotOwner, "owner %v, sender %v", c.Config.Owner, sender)
	case c.Config.SpecHash != SpecHash(c.Spec):
		return refuse(CodeBadSpec, "spec has %v, the configuration says %v", SpecHash(c.Spec), c.Config.SpecHash)
	}
	if faults := c.Config.Check(c.Limits); len(faults) > 0 {
		return refuse(CodeBadConfig, "%s", faultText(faults))
	}
	if size := h.stateBytes() + coordinator.Size(c.Limits); len(h.runs) >= RunsMax || size > StateBytesMax {
		return refuse(CodeRunsFull, "%d runs of %d; states of %d bytes of %d with this one", len(h.runs), RunsMax, size, StateBytesMax)
	}
	r := &run{name: name, spec: bytes.Clone(c.Spec)}
	if err := r.appoint(c.Config, h.referees); err != nil {
		return refuse(CodeNoReferee, "%v", err)
	}
	var err error
	if r.state, err = coordinator.New(c.Limits, c.Config, h.env(r, sender)); err != nil {
		return refuse(CodeBadConfig, "%v", err)
	}
	r.live = r.state.Bytes()
	h.runs = slices.Insert(h.runs, i, r)
	return nil
}

// appoint gives the run its referee, if it wants one.
func (r *run) appoint(c coordinator.Config, referees Referees) (err error) {
	if c.VerificationPercent == 0 {
		return nil
	}
	if referees == nil {
		return errors.New("this ledger was set up without referees")
	}
	r.referee, err = referees(r.spec)
	return err
}

func faultText(faults []coordinator.Fault) string {
	texts := make([]string, len(faults))
	for i, f := range faults {
		texts[i] = f.Error()
	}
	return strings.Join(texts, "; ")
}

func (h *Host) stateBytes() int {
	n := 0
	for _, r := range h.runs {
		n += len(r.live)
	}
	return n
}

// env is what a coordinator learns about the block. The seed differs for every run and block; all it can be drawn from is
// what the host was given as the block's seed.
func (h *Host) env(r *run, sender key.Public) coordinator.Env {
	seed := wire.Sum("entrain/ledger/seed", h.seed[:], wire.AppendU64(nil, h.height), []byte(r.name))
	return coordinator.Env{NowMs: h.timeMs, Height: h.height, Seed: seed, Sender: sender, Referee: r.referee}
}

func (h *Host) find(name string) (int, bool) {
	return slices.BinarySearchFunc(h.runs, name, func(r *run, name string) int { return strings.Compare(r.name, name) })
}

func (h *Host) open(name string) (*run, error) {
	if i, ok := h.find(name); ok {
		return h.runs[i], nil
	}
	return nil, refuse(CodeUnknownRun, "%q", name)
}
