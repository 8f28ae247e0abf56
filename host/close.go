package host

import (
	"slices"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

// CloseRun removes a finished run from the chain, and pays everybody what it owes. Only the run's
// owner may send it, once everything that the run owes is certain (coordinator.State.Closable). The
// owner gets the rest of the treasury and the deposit. The chain itself ends a run in which nothing
// has changed for RunIdleMs, and closes a finished one after that time.
type CloseRun struct {
	Run string
}

func (CloseRun) kind() uint8 { return kindCloseRun }

func (c CloseRun) append(dst []byte) []byte { return wire.AppendString(dst, c.Run) }

// Receipt is what remains of a closed run. Its name is not used again while the receipt is kept, or
// while the terms of a pool name it.
type Receipt struct {
	Name    string           `json:"name"`
	Owner   key.Public       `json:"owner"`
	Spec    wire.Hash        `json:"spec"`  // SpecHash
	State   wire.Hash        `json:"state"` // the coordinator's last
	Changes uint64           `json:"changes"`
	History wire.Hash        `json:"history"` // Merkle root over all its states; see Change
	Step    coordinator.Step `json:"step"`
	Points  uint64           `json:"points"`
	Paid    uint64           `json:"paid"` // tokens paid at the end, without the owner's
	Height  uint64           `json:"height"`
	TimeMs  uint64           `json:"time_ms"`
}

// archive holds the receipts of the runs closed last.
type archive struct {
	list  []Receipt // in order of closing, at most ClosedMax
	hash  wire.Hash // if not dirty
	dirty bool
}

func (a *archive) find(name string) int {
	return slices.IndexFunc(a.list, func(c Receipt) bool { return c.Name == name })
}

func (a *archive) add(c Receipt) {
	if len(a.list) == ClosedMax {
		a.list = slices.Delete(a.list, 0, 1)
	}
	a.list, a.dirty = append(a.list, c), true
}

func (a *archive) sum() wire.Hash {
	if a.dirty || a.hash.IsZero() {
		a.hash, a.dirty = wire.Sum("entrain/ledger/closed", a.append(nil)), false
	}
	return a.hash
}

func (a *archive) append(dst []byte) []byte {
	dst = wire.AppendU32(dst, uint32(len(a.list)))
	for _, c := range a.list {
		dst = append(wire.AppendString(dst, c.Name), c.Owner[:]...)
		dst = wire.AppendHash(wire.AppendHash(dst, c.Spec), c.State)
		dst = wire.AppendHash(wire.AppendU64(dst, c.Changes), c.History)
		dst = wire.AppendU64(wire.AppendU64(wire.AppendU32(dst, uint32(c.Step)), c.Points), c.Paid)
		dst = wire.AppendU64(wire.AppendU64(dst, c.Height), c.TimeMs)
	}
	return dst
}

const receiptBytesMin = 4 + 1 + 4*32 + 4 + 5*8

func parseArchive(r *wire.Reader) archive {
	n := r.U32()
	if n > ClosedMax || int(n)*receiptBytesMin > r.Len() {
		r.Fail(wire.ErrTooLong)
		return archive{}
	}
	var a archive
	for range n {
		c := Receipt{Name: readName(r), Owner: readKey(r), Spec: r.Hash(), State: r.Hash(), Changes: r.U64(), History: r.Hash()}
		c.Step, c.Points, c.Paid, c.Height, c.TimeMs = coordinator.Step(r.U32()), r.U64(), r.U64(), r.U64(), r.U64()
		if r.Err() == wire.OK && !RunNameValid(c.Name) {
			r.Fail(wire.ErrNotCanonical)
		}
		if r.Err() != wire.OK {
			return archive{}
		}
		a.list = append(a.list, c)
	}
	return a
}

// Closed returns the receipts of closed runs, oldest first.
func (h *Host) Closed() []Receipt { return append([]Receipt{}, h.archive.list...) }

// ProveClosed returns the receipts of closed runs, and the path to the hash of the chain's state.
func (h *Host) ProveClosed() []byte {
	_, leaves := h.roots()
	return appendWay(wire.AppendVar(nil, h.archive.append(nil)), merkle.Prove(leaves, leafClosed))
}

// OpenClosed reads what ProveClosed returned, with the hash of the chain's state that contains it.
func OpenClosed(b []byte) ([]Receipt, wire.Hash, error) {
	r := wire.NewReader(b)
	list := wire.NewReader(r.Var(ClosedMax * (receiptBytesMin + RunNameBytesMax)))
	way := readWay(&r)
	a := parseArchive(&list)
	err := r.Done().OrNil()
	if err == nil {
		err = list.Done().OrNil()
	}
	if err != nil {
		return nil, wire.Hash{}, failed("closed runs: ", err)
	}
	root, err := climbTop(a.sum(), leafClosed, way)
	return append([]Receipt{}, a.list...), root, err
}

// RunDeposit returns what the owner of a run pays for its place on the chain, and gets back when it
// is closed: a 16384th of the supply, so RunsMax runs take a 256th. It is 0 on a chain without
// tokens, or where the genesis names the creators of runs.
func (h *Host) RunDeposit() uint64 {
	if h.bank.supply == 0 || len(h.genesis.Creators) > 0 {
		return 0
	}
	return max(2*h.bank.floor(), h.bank.supply>>14)
}

// named reports whether the terms of a pool name a run.
func (b *bank) named(run string) bool {
	return slices.ContainsFunc(b.pools, func(p *pool) bool { return slices.Contains(p.terms.Runs, run) })
}

func (h *Host) closeRun(sender key.Public, c CloseRun) error {
	r, err := h.open(c.Run)
	if err != nil {
		return err
	}
	if owner := r.state.Config().Owner; owner != sender {
		return refuse(CodeNotOwner, "the owner of run ", quote(r.name), " is ", owner)
	}
	if !r.state.Closable(h.timeMs) {
		return refuse(CodeRunOpen, quote(r.name), " is in ", r.state.Phase(), ", for ", (h.timeMs-r.state.PhaseSince())/60_000, " minutes; it can go a day after its end, once no stake is bound")
	}
	return h.close(r)
}

// idle reports whether nothing has changed in a run for so long that the chain ends or closes it.
func (h *Host) idle(r *run, nowMs uint64) bool {
	after := uint64(RunIdleMs)
	if h.RunDeposit() == 0 && len(h.genesis.Creators) == 0 && r.state.PointsTotal() == 0 {
		after = RunIdleFreeMs
	}
	if nowMs < r.changedMs+after {
		return false
	}
	switch r.state.Phase() {
	case coordinator.Finished:
		return r.state.Closable(nowMs)
	case coordinator.WaitingForMembers, coordinator.Paused:
		return true
	}
	return false
}

// closeIdle ends the runs in which nothing changes, and closes those that have finished. One that
// cannot be paid out waits for the same time again.
func (h *Host) closeIdle() {
	for _, r := range slices.Clone(h.runs) {
		if !h.idle(r, h.timeMs) {
			continue
		}
		if r.state.Phase() != coordinator.Finished {
			_ = r.state.Apply(h.env(r, r.state.Config().Owner), coordinator.End{})
		} else if h.close(r) != nil {
			r.changedMs = h.timeMs
		}
	}
}

// close pays out everything that a run holds, and removes the run. What is too little for a purse
// is the owner's. It changes nothing if it returns a *TxError.
func (h *Host) close(r *run) error {
	owner := r.state.Config().Owner
	debts := r.state.Debts()
	rest := debts[len(debts)-1].Amount + h.RunDeposit()
	debts = debts[:len(debts)-1]
	slices.SortFunc(debts, func(a, b coordinator.Debt) int { return a.To.Compare(b.To) })
	paid, fresh := uint64(0), 0
	sums := debts[:0]
	for len(debts) > 0 {
		d := debts[0]
		for debts = debts[1:]; len(debts) > 0 && debts[0].To == d.To; debts = debts[1:] {
			d.Amount += debts[0].Amount
		}
		err := h.bank.mayReceive(d.To, d.Amount)
		switch CodeOf(err) {
		case CodeOK:
			paid += d.Amount
			if _, has := h.bank.find(d.To); !has && d.Amount > 0 {
				fresh++
			}
			sums = append(sums, d)
		case CodePursesFull:
			return err
		default: // too little for a purse, or for the zero key
			rest += d.Amount
		}
	}
	if err := h.bank.mayReceive(owner, rest); err != nil {
		return err
	}
	if len(h.bank.purses)+fresh+1 > PursesMax {
		return &TxError{Code: CodePursesFull}
	}
	h.bank.receiveAll(append(sums, coordinator.Debt{To: owner, Amount: rest}))
	h.archive.add(Receipt{
		Name: r.name, Owner: owner, Spec: SpecHash(r.spec), State: r.hash, Changes: r.history.Len(), History: r.history.Root(),
		Step: r.state.Step(), Points: r.state.PointsTotal(), Paid: paid, Height: h.height, TimeMs: h.timeMs,
	})
	i, _ := h.find(r.name)
	h.runs = slices.Delete(h.runs, i, i+1)
	return nil
}

// receiveAll is receive for many keys. It makes all new purses at once: each by itself moves half
// of the table.
func (b *bank) receiveAll(debts []coordinator.Debt) {
	var fresh []purse
	for _, d := range debts {
		if _, has := b.find(d.To); has || d.Amount == 0 || b.poolAt(d.To) != nil {
			b.receive(d.To, d.Amount)
			continue
		}
		if i := slices.IndexFunc(fresh, func(p purse) bool { return p.key == d.To }); i >= 0 {
			fresh[i].tokens += d.Amount
			continue
		}
		fresh = append(fresh, purse{key: d.To, tokens: d.Amount})
	}
	for _, p := range fresh {
		b.dirty, b.stale[p.key[0]] = true, true
		b.inPurses += p.tokens
	}
	b.purses = append(b.purses, fresh...)
	slices.SortFunc(b.purses, func(x, y purse) int { return x.key.Compare(y.key) })
}
