package host

import (
	"slices"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
)

// message applies a message to a run's coordinator, and moves the tokens that come with it and
// those it pays out.
func (h *Host) message(r *run, sender key.Public, body RunMessage) error {
	m, err := coordinator.ParseMessage(body.Message)
	if err != nil {
		return refuse(CodeBadMessage, err)
	}
	if m, err = h.admitted(r, sender, m); err != nil {
		return err
	}
	var from *pool
	if body.From == "" {
		err = h.bank.mayPay(sender, body.Value)
	} else {
		from, m, err = h.fromPool(r, sender, body, m)
	}
	if err != nil {
		return err
	}
	env := h.env(r, sender)
	env.Value = body.Value
	if err := h.mayPayOut(r, env, m); err != nil {
		return err
	}
	_, evidence := m.(coordinator.Evidence)
	if evidence && slices.Contains(h.refuted, sender) {
		return &TxError{Code: codeOfCoordinator(coordinator.ErrEvidence)}
	}
	if err := r.state.Apply(env, m); err != nil {
		if evidence && err == coordinator.ErrEvidence {
			h.refuted = append(h.refuted, sender)
		}
		return &TxError{Code: codeOfCoordinator(err)}
	}
	if from != nil {
		from.stake(body.Value, h.timeMs)
		h.bank.inPools -= body.Value
		h.bank.dirty = true
	} else {
		h.bank.pay(sender, body.Value)
	}
	r.escrow += body.Value
	h.payOut(r)
	return nil
}

// fromPool returns the pool that pays for a message, and the message with the pool's address as
// payee. It returns a *TxError if the sender may not spend the pool's tokens on it: they can only
// become stake of a member that is paid at the pool's address.
func (h *Host) fromPool(r *run, sender key.Public, body RunMessage, m coordinator.Message) (*pool, coordinator.Message, error) {
	p, err := h.openPool(body.From)
	if err != nil {
		return nil, nil, err
	}
	_, works := slices.BinarySearchFunc(p.terms.Workers, sender, key.Public.Compare)
	switch {
	case sender != p.opener && !works:
		return nil, nil, refuse(CodeNotOperator, sender, " is neither operator nor worker of pool ", quote(p.name))
	case !slices.Contains(p.terms.Runs, r.name):
		return nil, nil, refuse(CodePoolTerms, "pool ", quote(p.name), " does not stake in run ", quote(r.name))
	case p.stage == poolClosed:
		return nil, nil, refuse(CodePoolStage, "pool ", quote(p.name), " is closed")
	case body.Value == 0:
		return nil, nil, refuse(CodeAmount, "no tokens from pool ", quote(p.name))
	case body.Value > p.idle:
		return nil, nil, refuse(CodeFunds, "pool ", quote(p.name), " has ", p.idle, " to stake, not ", body.Value)
	}
	switch m := m.(type) {
	case coordinator.Join:
		m.Payee = p.address // fixed while the run owes the member anything: see coordinator.ErrPayee
		return p, m, nil
	case coordinator.Deposit:
		if i, ok := r.state.Find(m.Member); ok && r.state.Member(i).Payee == p.address {
			return p, m, nil
		}
	}
	return nil, nil, &TxError{Code: CodePoolUse}
}

// mayPayOut returns a *TxError if the payee of a message cannot receive what the message pays out.
// Too few tokens for a purse do not stop a message that takes the place of another: see payOut.
func (h *Host) mayPayOut(r *run, env coordinator.Env, m coordinator.Message) error {
	to, amount := r.state.WillPay(env, m)
	err := h.bank.mayReceive(to, amount)
	if takesPlace(m) && CodeOf(err) == CodeDust {
		return nil
	}
	return err
}

// takesPlace reports whether a message may pay out somebody else than its sender.
func takesPlace(m coordinator.Message) bool {
	switch m.(type) {
	case coordinator.Join, coordinator.RegisterValidator:
		return true
	}
	return false
}

// payOut moves the tokens that a message has paid out of the run's escrow. Those of a member or
// validator that has lost its place, too few for a purse of its own, go to the run's treasury:
// otherwise they would keep the place.
func (h *Host) payOut(r *run) {
	to, amount := r.state.Payout()
	if h.bank.mayReceive(to, amount) == nil {
		r.escrow -= amount
		h.bank.receive(to, amount)
		return
	}
	env := h.env(r, to)
	env.Value = amount
	if err := r.state.Apply(env, coordinator.Fund{}); err != nil {
		panic(text("host: run ", quote(r.name), " cannot keep ", amount, " tokens that it had: ", err))
	}
}

// claimFor makes the claim of a member that is paid at a pool's address, or at the sender's.
func (h *Host) claimFor(sender key.Public, c ClaimFor) error {
	r, err := h.open(c.Run)
	if err != nil {
		return err
	}
	i, ok := r.state.Find(c.Member)
	if !ok || r.state.Member(i).Payee != sender && h.bank.poolAt(r.state.Member(i).Payee) == nil {
		return refuse(CodeUnknownPool, "run ", quote(r.name), " does not pay member ", c.Member, " at a pool's address, or at the sender's")
	}
	return h.message(r, c.Member, RunMessage{Run: c.Run, Message: coordinator.Append(nil, coordinator.Claim{})})
}

func (h *Host) transfer(sender key.Public, t Transfer) error {
	if t.Amount == 0 {
		return refuse(CodeAmount, "no tokens to transfer")
	}
	if err := h.bank.mayPay(sender, t.Amount); err != nil {
		return err
	}
	if err := h.bank.mayReceive(t.To, t.Amount); err != nil {
		return err
	}
	h.bank.pay(sender, t.Amount)
	h.bank.receive(t.To, t.Amount)
	return nil
}

// PoolDeposit returns the deposit for a pool.
func (h *Host) PoolDeposit() uint64 { return max(h.bank.floor(), h.bank.supply>>20) }

func (h *Host) createPool(sender key.Public, c CreatePool) error {
	if err := c.fault(); err != nil {
		return err
	}
	for _, name := range c.Runs {
		if _, err := h.open(name); err != nil {
			return err
		}
	}
	i, exists := h.bank.findPool(c.Name)
	switch {
	case exists:
		return refuse(CodePoolExists, quote(c.Name))
	case len(h.bank.pools) >= PoolsMax:
		return refuse(CodePoolsFull, len(h.bank.pools), " of ", PoolsMax)
	}
	deposit := h.PoolDeposit()
	if err := h.bank.mayPay(sender, deposit); err != nil {
		return err
	}
	h.bank.pay(sender, deposit)
	p := &pool{
		name: c.Name, address: PoolAddress(h.genesis.Chain, c.Name), terms: c, opener: sender,
		stage: poolLends, deposit: deposit, usedMs: h.timeMs,
	}
	p.terms.Workers, p.terms.Runs = slices.Clone(c.Workers), slices.Clone(c.Runs)
	early := h.bank.tokens(p.address) // paid to the address before there was a pool
	h.bank.pay(p.address, early)
	p.come(early)
	h.bank.pools = slices.Insert(h.bank.pools, i, p)
	h.bank.inPools += deposit + early
	return nil
}

func (h *Host) openPool(name string) (*pool, error) {
	if i, ok := h.bank.findPool(name); ok {
		return h.bank.pools[i], nil
	}
	return nil, refuse(CodeUnknownPool, quote(name))
}

func (h *Host) lend(sender key.Public, l Lend) error {
	p, err := h.openPool(l.Pool)
	if err == nil {
		err = h.bank.mayPay(sender, l.Amount)
	}
	if err == nil {
		err = p.mayLend(sender, l.Amount)
	}
	if err != nil {
		return err
	}
	h.bank.pay(sender, l.Amount)
	p.lend(sender, l.Amount)
	h.bank.inPools += l.Amount
	return nil
}

func (h *Host) collect(sender key.Public, c Collect) error {
	p, err := h.openPool(c.Pool)
	if err == nil {
		err = p.mayCollect(sender)
	}
	if err == nil {
		err = h.bank.mayReceive(sender, p.due(sender))
	}
	if err != nil {
		return err
	}
	amount := p.collect(sender)
	h.bank.inPools -= amount
	h.bank.receive(sender, amount)
	return nil
}

func (h *Host) closePool(sender key.Public, c ClosePool) error {
	p, err := h.openPool(c.Pool)
	if err != nil {
		return err
	}
	if !p.mayClose(sender, h.timeMs) {
		return refuse(CodeNotOperator, sender, " may not close pool ", quote(p.name), " now")
	}
	if p.stage != poolClosed {
		p.settle(poolClosed)
		h.bank.dirty = true
		return nil
	}
	if sender != p.opener {
		return refuse(CodeNotOperator, "only its operator may remove pool ", quote(p.name))
	}
	if !p.spent() {
		return refuse(CodePoolOwed, "pool ", quote(p.name), " owes tokens that were not collected")
	}
	if run, member, ok := h.owing(p.address); ok {
		return refuse(CodePoolOwed, "run ", quote(run), " pays member ", member, " at the address of pool ", quote(p.name))
	}
	left := p.tokens()
	if err := h.bank.mayReceive(sender, left); err != nil {
		return err
	}
	i, _ := h.bank.findPool(p.name)
	h.bank.pools = slices.Delete(h.bank.pools, i, i+1)
	h.bank.inPools -= left
	h.bank.receive(sender, left)
	return nil
}

// owing returns a run and a member of it that is paid at the address, or will be.
func (h *Host) owing(address key.Public) (string, key.Public, bool) {
	for _, r := range h.runs {
		over := r.state.Phase() == coordinator.Finished
		for i := range r.state.Count() {
			if m := r.state.Member(i); m.Payee == address && (m.Status.Present() && !over || r.state.Owes(i)) {
				return r.name, m.Key, true
			}
		}
	}
	return "", key.Public{}, false
}

// balanced panics if the rules have made or lost tokens: any further block would only spread the
// damage.
func (h *Host) balanced(after string) {
	for _, r := range h.runs {
		if got := r.state.Escrow(); got != r.escrow {
			panic(text("host: after ", after, " run ", quote(r.name), " accounts for ", got, " tokens, and holds ", r.escrow))
		}
	}
	if err := h.checkSupply(); err != nil {
		panic(text("host: after ", after, ": ", err))
	}
}

// checkSupply compares the tokens in purses, pools, runs and behind replicas with the supply.
func (h *Host) checkSupply() error {
	left := h.bank.supply
	parts := []uint64{h.bank.inPurses, h.bank.inPools, h.replicas.tokens()}
	deposit := h.RunDeposit()
	for _, r := range h.runs {
		parts = append(parts, r.escrow, deposit)
	}
	for _, n := range parts {
		if n > left {
			return failed("there are more tokens in purses, pools, runs and behind replicas than there can be")
		}
		left -= n
	}
	if left > 0 {
		return failed(left, " tokens are missing")
	}
	return nil
}
