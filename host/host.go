package host

import (
	"cmp"
	"slices"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

// Referees makes the referee of a run's disputes from its spec, or returns why there can be none.
type Referees func(spec []byte) (dispute.Referee, error)

// Rules are the parts of a chain's rules that this package takes from outside. They must be the
// same on all replicas.
type Rules struct {
	// Referees judge disputes. If nil, no run with verification can be created.
	Referees Referees
	// ChanceKey reports whether a key can be that of a replica's random values: each message must
	// have one value at most; see package chance. If nil, no key can.
	ChanceKey func(key.Public) bool
}

// Check returns what is wrong with g.
func (x Rules) Check(g Genesis) error {
	if err := g.check(); err != nil {
		return err
	}
	for _, r := range g.Replicas {
		if !x.chanceKey(r.Chance) {
			return failed("replica ", r.Key, ": ", r.Chance, " cannot be a key of random values")
		}
	}
	return nil
}

func (x Rules) chanceKey(k key.Public) bool { return x.ChanceKey != nil && x.ChanceKey(k) }

// Block is what a Host needs to know of a block before its transactions.
type Block struct {
	Height uint64
	// In milliseconds since 1970; a time before the last block's counts as the last block's.
	TimeMs uint64
	Seed   wire.Hash // unpredictable before the block

	Guilty []key.Public // replicas that were shown to have voted twice
}

// Host is a chain's state machine: the coordinators of all runs, their specs, the addresses of
// their participants, the tokens and nonces of keys, and the replicas. For each block, call
// Begin, then Deliver for each transaction, then Commit. It is not safe for concurrent use.
type Host struct {
	genesis     Genesis
	genesisLeaf wire.Hash // zero until it is wanted
	rules       Rules
	height      uint64
	timeMs      uint64
	seed        wire.Hash // of the newest block
	accounts    accounts
	names       names
	bank        bank
	replicas    replicas
	runs        []*run // in order of names
	archive     archive
	mark        mark
	rest        wire.Hash // hash of all but the mark, as of the last commit
	tried       int       // referees that the open block has made, or tried to
	// refuted are the keys whose evidence the open block has refused. It judges no more of theirs,
	// since to judge takes milliseconds and a refusal costs its sender nothing.
	refuted []key.Public
}

type run struct {
	name  string
	spec  []byte
	state coordinator.State // a view of live
	live  []byte            // what Apply writes to
	peers peers
	// referee judges the run's disputes; nil if the run has no verification.
	referee   dispute.Referee
	clocked   bool   // counts the blocks of another chain: see clock
	escrow    uint64 // tokens that came with messages and were not paid out; equals state.Escrow
	height    uint64 // of the block that changed the state last
	changedMs uint64 // that block's time
	admission admission
	// frozen is a copy of live as of the last commit, which never changes: readers get it. The
	// state's hash belongs to it.
	frozen  []byte
	pages   []merkle.Hash     // leaves of its hash
	view    coordinator.State // on frozen
	hash    wire.Hash
	history merkle.Tree // over all states so far: see Change
	scratch []byte      // a copy of live on which Due tries a tick
	trial   coordinator.State
}

// NewHost returns the state before the first block.
func NewHost(g Genesis, rules Rules) (*Host, error) {
	if err := rules.Check(g); err != nil {
		return nil, failed("genesis: ", err)
	}
	h := &Host{
		genesis: g, rules: rules, timeMs: g.TimeMs,
		accounts: accounts{dirty: true}, bank: newBank(g), replicas: newReplicas(g), mark: mark{timeMs: g.TimeMs},
		seed: wire.Sum("entrain/ledger/seed/first", appendGenesis(nil, g)),
	}
	h.rest, _ = h.roots()
	return h, nil
}

// Chain returns the chain's id.
func (h *Host) Chain() string { return h.genesis.Chain }

// Height returns the height of the newest block, 0 before the first.
func (h *Host) Height() uint64 { return h.height }

// TimeMs returns the chain's time, in milliseconds since 1970.
func (h *Host) TimeMs() uint64 { return h.timeMs }

// Admit returns nil if a verified transaction would be taken in a block of the given time, or of
// the chain's if that is later. Otherwise it returns a *TxError.
func (h *Host) Admit(t Tx, nowMs uint64) error {
	return h.accounts.admit(&t, max(h.timeMs, nowMs), func() bool { return h.known(t.Sender, t.Body) })
}

// known reports whether a key has more on the chain than transactions: tokens, a replica, or a part
// in the run that its transaction names. Keys cost nothing, so strangers could otherwise fill the
// table of accounts and keep members out of the chain, whose silence then costs them their stake.
func (h *Host) known(k key.Public, b Body) bool {
	if _, ok := h.bank.find(k); ok || h.replicas.seats(k) || h.Seated(k) {
		return true
	}
	i, ok := h.find(runOf(b))
	return ok && h.runs[i].knows(k)
}

// knownAnywhere reports whether a key has tokens, a replica, or a part in any run.
func (h *Host) knownAnywhere(k key.Public) bool {
	if _, ok := h.bank.find(k); ok || h.replicas.seats(k) {
		return true
	}
	return slices.ContainsFunc(h.runs, func(r *run) bool { return r.knows(k) })
}

// knows reports whether a key has a part in the run, or may have one.
func (r *run) knows(k key.Public) bool {
	if _, ok := r.state.Find(k); ok || k == r.state.Config().Owner {
		return true
	}
	_, validates := r.state.Validator(k)
	_, delegated := findDelegation(r.admission.delegations, k)
	_, listed := slices.BinarySearchFunc(r.admission.allowed, k, key.Public.Compare)
	return validates || delegated || listed
}

// runOf returns the name of the run that a body is about, "" if it is about none.
func runOf(b Body) string {
	switch b := b.(type) {
	case Announce:
		return b.Run
	case RunMessage:
		return b.Run
	case ClaimFor:
		return b.Run
	case Admit:
		return b.Run
	case Delegate:
		return b.Run
	case Revoke:
		return b.Run
	case Require:
		return b.Run
	case CloseRun:
		return b.Run
	case SetName:
		return b.Run
	}
	return ""
}

// Outcome returns the outcome of a transaction in an earlier block, as far back as the key's last
// NoncesKept transactions.
func (h *Host) Outcome(t Tx) (Code, bool) { return h.accounts.outcome(&t) }

// Begin opens a block: its time becomes the chain's, and every run is ticked.
func (h *Host) Begin(b Block) {
	h.height = b.Height
	h.timeMs = max(h.timeMs, b.TimeMs)
	h.seed = b.Seed
	h.tried, h.refuted = 0, nil
	h.accounts.prune(h.timeMs)
	for _, k := range b.Guilty {
		h.punish(k)
	}
	for _, r := range h.runs {
		// A tick may find nothing to do, and a paused run, for example, refuses it.
		_ = r.state.Apply(h.env(r, key.Public{}), coordinator.Tick{})
		h.expire(r)
	}
	h.closeIdle()
	h.forgetName()
	h.balanced("the block's beginning")
}

// Deliver executes one transaction of the open block. A transaction that is malformed, not
// verified or not admitted changes nothing. Any other uses up its nonce, whether or not it is
// accepted. The error is a *TxError.
func (h *Host) Deliver(b []byte) error {
	t, err := ParseTx(b)
	if err != nil {
		return err
	}
	if err := t.Verify(h.genesis.Chain); err != nil {
		return err
	}
	return h.DeliverVerified(t)
}

// DeliverVerified is Deliver for a transaction that Tx.Verify has found good.
func (h *Host) DeliverVerified(t Tx) error {
	if err := h.Admit(t, h.timeMs); err != nil {
		return err
	}
	err := h.execute(t.Sender, t.Body)
	h.accounts.take(&t, CodeOf(err))
	h.balanced("transaction " + t.ID.String())
	return err
}

func (h *Host) execute(sender key.Public, body Body) error {
	switch body := body.(type) {
	case CreateRun:
		return h.create(sender, body)
	case Announce:
		return h.announce(sender, body)
	case RunMessage:
		return h.carry(sender, body)
	case Admit:
		return h.admitKeys(sender, body)
	case Delegate:
		return h.delegate(sender, body)
	case Revoke:
		return h.revoke(sender, body)
	case Require:
		return h.require(sender, body)
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
	case Stake:
		return h.stake(sender, body)
	case Vote:
		return h.vote(sender, body)
	case Leave:
		return h.leave(sender, body)
	case CloseRun:
		return h.closeRun(sender, body)
	case SetName:
		return h.setName(sender, body)
	case Sight:
		return h.sight(sender, body)
	}
	panic(text("host: no rule for a body of kind ", body.kind()))
}

func (h *Host) announce(sender key.Public, a Announce) error {
	r, err := h.open(a.Run)
	if err != nil {
		return err
	}
	if r.peers.announce(sender, a.Addrs, h.height, r.state) {
		r.peers.changed()
	}
	return nil
}

func (h *Host) carry(sender key.Public, m RunMessage) error {
	r, err := h.open(m.Run)
	if err != nil {
		return err
	}
	return h.message(r, sender, m)
}

func (h *Host) create(sender key.Public, c CreateRun) error {
	name := c.Config.Name
	i, exists := h.find(name)
	switch {
	case len(h.genesis.Creators) > 0 && !slices.Contains(h.genesis.Creators, sender):
		return &TxError{Code: CodeNotCreator}
	case !RunNameValid(name):
		return refuse(CodeBadName, quote(name), ": want 1 to ", RunNameBytesMax, " of a-z, 0-9 and inner '-'")
	case exists || h.archive.find(name) >= 0 || h.bank.named(name):
		return refuse(CodeRunExists, quote(name))
	case c.Config.Owner != sender:
		return refuse(CodeNotOwner, "owner ", c.Config.Owner, ", sender ", sender)
	case c.Config.SpecHash != SpecHash(c.Spec):
		return refuse(CodeBadSpec, "the spec's hash is ", SpecHash(c.Spec), ", the configuration has ", c.Config.SpecHash)
	}
	if faults := c.Config.Check(c.Limits); len(faults) > 0 {
		return refuse(CodeBadConfig, faultText(faults))
	}
	if size := h.stateBytes() + coordinator.Size(c.Limits); len(h.runs) >= RunsMax || size > StateBytesMax {
		return refuse(CodeRunsFull, len(h.runs), " runs of ", RunsMax, "; states of ", size, " bytes of ", StateBytesMax, " with this one")
	}
	if _, standing := h.replicas.clock.At(h.timeMs); c.Config.Clock > 0 && standing {
		return refuse(CodeClock, "the run counts them, and replicas with more than two thirds of the weight have agreed on none for ten minutes; their operators name a node of Bittensor in chain.json")
	}
	if err := h.bank.mayPay(sender, h.RunDeposit()); err != nil {
		return err
	}
	if c.Config.VerificationPercent > 0 {
		if h.tried == refereesMax {
			return refuse(CodeRunsFull, refereesMax, " in this block; try again")
		}
		h.tried++
	}
	r := &run{name: name, spec: slices.Clone(c.Spec), changedMs: h.timeMs, clocked: c.Config.Clock > 0}
	if err := r.appoint(c.Config, h.rules); err != nil {
		why := err.Error() // may quote the specification, which a stranger wrote
		return refuse(CodeNoReferee, why[:min(len(why), refusalMax)])
	}
	var err error
	if r.state, err = coordinator.New(c.Limits, c.Config, h.env(r, sender)); err != nil {
		return refuse(CodeBadConfig, err)
	}
	r.live = r.state.Bytes()
	h.bank.pay(sender, h.RunDeposit())
	h.runs = slices.Insert(h.runs, i, r)
	return nil
}

// refusalMax bounds the text of a refusal, which replicas keep for those who wait for it.
const refusalMax = 2 << 10

// appoint makes the run's referee if it needs one.
func (r *run) appoint(c coordinator.Config, rules Rules) (err error) {
	if c.VerificationPercent == 0 {
		return nil
	}
	if rules.Referees == nil {
		return failed("this chain has no referees")
	}
	r.referee, err = rules.Referees(r.spec)
	return err
}

func faultText(faults []coordinator.Fault) string {
	all := ""
	for i, f := range faults {
		if i > 0 {
			all += "; "
		}
		all += f.Error()
	}
	return all
}

func (h *Host) stateBytes() int {
	n := 0
	for _, r := range h.runs {
		n += len(r.live)
	}
	return n
}

// env returns what a coordinator learns about the block. The seed differs for every run and
// block; it follows from the block's seed alone, and in a clocked run from the agreed block's hash.
func (h *Host) env(r *run, sender key.Public) coordinator.Env {
	seed := wire.Sum("entrain/ledger/seed", h.seed[:], wire.AppendU64(nil, h.height), []byte(r.name))
	return h.clocked(r, coordinator.Env{NowMs: h.timeMs, Height: h.height, Seed: seed, Sender: sender, Referee: r.referee})
}

func (h *Host) find(name string) (int, bool) {
	return slices.BinarySearchFunc(h.runs, name, func(r *run, name string) int { return cmp.Compare(r.name, name) })
}

func (h *Host) open(name string) (*run, error) {
	if i, ok := h.find(name); ok {
		return h.runs[i], nil
	}
	return nil, refuse(CodeUnknownRun, quote(name))
}
