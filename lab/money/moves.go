package money

import (
	"fmt"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/prng"
)

// move makes one block with a transaction or two of the gang, after which the honest do their work.
func (e *episode) move(random prng.Source) {
	pause := []uint64{200, 200, 200, 1100, 1100, 5000, 25 * 3600 * 1000, host.PoolQuietMs}[random.Uint64n(8)]
	if pause > 5000 && random.Uint64n(4) > 0 {
		pause = 1100
	}
	e.ahead = pause
	var txs [][]byte
	var said []string
	for range 1 + random.Uint64n(2) {
		k := e.keys[random.Uint64n(gangSize)]
		body := e.body(&random, k.Public())
		if random.Uint64n(4) > 0 {
			k = e.fit(&random, k, body)
		}
		if random.Uint64n(4) > 0 {
			for _, run := range e.host.Runs() {
				if by, m, ok := e.trial(&random, run); ok {
					k, body = by, host.ToRun(run, m)
				}
			}
		}
		txs = append(txs, e.sign(k, body))
		said = append(said, fmt.Sprintf("%s: %s", e.name(k.Public()), describe(body)))
	}
	codes := e.block(pause, txs...)
	e.ahead = 0
	for i, code := range codes {
		e.sent++
		if code == host.CodeOK {
			e.accepted[said[i][len(said[i])-len(kindOf(said[i])):]]++
		}
		e.script = append(e.script, fmt.Sprintf("+%d ms %s -> %v", pause, said[i], code))
	}
	e.judge()
	e.work(e.member, goodRun)
	if random.Uint64n(8) == 0 {
		e.lend()
	}
	if random.Uint64n(3) > 0 { // part of the gang works as well
		for _, name := range e.host.Runs() {
			for _, k := range e.keys {
				e.work(k, name)
			}
		}
	}
}

// fit returns one of the gang who can send a body with success: the owner or a member of its run.
func (e *episode) fit(random *prng.Source, k key.Private, body host.Body) key.Private {
	run, owners := "", false
	switch b := body.(type) {
	case host.CloseRun:
		run, owners = b.Run, true
	case host.RunMessage:
		run = b.Run
		switch m, _ := coordinator.ParseMessage(b.Message); m.(type) {
		case coordinator.Pause, coordinator.Resume, coordinator.End, coordinator.Refund, coordinator.Change:
			owners = true
		case coordinator.Claim, coordinator.Withdraw, coordinator.RetireValidator:
		default:
			return k
		}
	}
	v, ok := e.host.View(run)
	if !ok {
		return k
	}
	from := random.Uint64n(gangSize)
	for i := range uint64(gangSize) {
		one := e.keys[(from+i)%gangSize]
		_, member := v.State.Find(one.Public())
		_, validator := v.State.Validator(one.Public())
		if owners && v.State.Config().Owner == one.Public() || !owners && (member || validator) {
			return one
		}
	}
	return k
}

// lend has the honest lender lend to a pool whose operator has at least as much in it, and which
// stakes in the honest run.
func (e *episode) lend() {
	for _, name := range e.host.Pools() {
		if p, _ := e.host.Pool(name); p.OwnBP >= 5000 && len(p.Runs) == 1 && p.Runs[0] == goodRun {
			e.block(200, e.sign(e.lender, host.Lend{Pool: name, Amount: max(1000, p.Least)}))
		}
	}
}

// kindOf returns the last word of a line, which is the kind of its transaction.
func kindOf(line string) string {
	for i := len(line) - 1; i >= 0; i-- {
		if line[i] == ' ' {
			return line[i+1:]
		}
	}
	return line
}

// describe prints a body, its kind last.
func describe(b host.Body) string {
	if m, ok := b.(host.RunMessage); ok {
		what, err := coordinator.ParseMessage(m.Message)
		if err != nil {
			return "garbage"
		}
		return fmt.Sprintf("%s with %d from %q: %+v %T", m.Run, m.Value, m.From, what, what)
	}
	if c, ok := b.(host.CreateRun); ok {
		return fmt.Sprintf("%s of %d members, %+v %T", c.Config.Name, c.Limits.Members, c.Config, c)
	}
	return fmt.Sprintf("%+v %T", b, b)
}

func (e *episode) name(k key.Public) string {
	for i, g := range e.keys {
		if g.Public() == k {
			return fmt.Sprint("g", i)
		}
	}
	return k.String()
}

// body draws what a key of the gang sends.
func (e *episode) body(random *prng.Source, who key.Public) host.Body {
	n := func(n uint64) uint64 { return random.Uint64n(n) }
	someone := func() key.Public {
		if n(6) == 0 {
			return host.PoolAddress(chainID, []string{"p", "q"}[n(2)])
		}
		return e.keys[n(gangSize)].Public()
	}
	amount := func() uint64 {
		have := e.host.Balance(who)
		return []uint64{0, 1, 20, 300, 1000, 5000, 1 << 16, have / 2, have, have - min(have, 16), 1 << 62}[n(11)]
	}
	runs := e.host.Runs()
	run := func() string {
		if len(runs) == 0 || n(20) == 0 {
			return "none"
		}
		return runs[n(uint64(len(runs)))]
	}
	pool := func() string { return []string{"p", "q"}[n(2)] }
	switch n(24) {
	case 0:
		return newRun(random, fmt.Sprint("run", n(6)), who)
	case 1, 2:
		return host.Transfer{To: someone(), Amount: amount()}
	case 3:
		c := host.CreatePool{Name: pool(), CommissionBP: uint16(n(10_001)), OwnBP: uint16(n(2) * 5000), Least: n(300), Runs: []string{run()}}
		if n(2) == 0 {
			c.Workers = []key.Public{someone()}
		}
		return c
	case 4, 5:
		return host.Lend{Pool: pool(), Amount: amount()}
	case 6:
		return host.Collect{Pool: pool()}
	case 7:
		return host.ClosePool{Pool: pool()}
	case 8:
		return host.ClaimFor{Run: run(), Member: someone()}
	case 9:
		return host.CloseRun{Run: run()}
	case 10:
		name := run()
		m := e.ownerMessage(random, name)
		return host.ToRun(name, m)
	case 11:
		name := run()
		return host.ToRun(name, e.equivocation(random, name))
	}
	name := run()
	b := bring(name, 0, memberMessage(random, someone, who))
	switch m, _ := coordinator.ParseMessage(b.Message); m.(type) {
	case coordinator.Fund:
		if name == goodRun {
			return b // a gift would hide a gain
		}
		b.Value = amount()
	case coordinator.Join, coordinator.Deposit, coordinator.RegisterValidator:
		b.Value = amount()
		if n(3) == 0 {
			b.From = pool()
		}
	}
	return b
}

// memberMessage draws a message of a member or validator.
func memberMessage(random *prng.Source, someone func() key.Public, who key.Public) coordinator.Message {
	payee := key.Public{}
	if random.Uint64n(3) == 0 {
		payee = someone()
	}
	switch random.Uint64n(10) {
	case 0, 1, 2:
		return coordinator.Join{Payee: payee}
	case 3:
		return coordinator.Withdraw{}
	case 4:
		return coordinator.Deposit{Member: someone()}
	case 5:
		return coordinator.Fund{}
	case 6, 7:
		return coordinator.Claim{}
	case 8:
		return coordinator.RegisterValidator{Payee: payee}
	}
	return coordinator.RetireValidator{}
}

// ownerMessage draws what an owner may do with a run.
func (e *episode) ownerMessage(random *prng.Source, run string) coordinator.Message {
	switch random.Uint64n(5) {
	case 0:
		return coordinator.Pause{}
	case 1:
		return coordinator.Resume{}
	case 2:
		return coordinator.End{}
	case 3:
		return coordinator.Refund{Amount: []uint64{1, 1000, 1 << 16, 1 << 20}[random.Uint64n(4)]}
	}
	m := coordinator.Change{
		Rate: []uint64{0, 1, 1 << 10}[random.Uint64n(3)], WarmupMs: 1000, RoundTrainMs: 1000, RoundWitnessMs: 1000, CooldownMs: 1000,
		EpochMs: 2000,
	}
	if v, ok := e.host.View(run); ok {
		m.Emission = v.State.Config().Emission + random.Uint64n(2)
	}
	return m
}

// equivocation is the proof that one of the gang signed twice.
func (e *episode) equivocation(random *prng.Source, run string) coordinator.Message {
	v, ok := e.host.View(run)
	k := e.keys[random.Uint64n(gangSize)]
	if !ok {
		return coordinator.Tick{}
	}
	i, ok := v.State.Find(k.Public())
	if !ok {
		return coordinator.Tick{}
	}
	one := dispute.Commitment{Run: v.State.ID(), Round: 1, Member: i}
	two := one
	two.Loss = 1
	return coordinator.Equivocation{A: one.Sign(k), B: two.Sign(k)}
}

// work sends what a member owes its run now: that it is ready, or its report as a witness, which
// holds the results of everybody.
func (e *episode) work(k key.Private, run string) {
	v, ok := e.host.View(run)
	if !ok {
		return
	}
	s := v.State
	i, ok := s.Find(k.Public())
	if !ok {
		return
	}
	var m coordinator.Message
	params, _ := s.Params()
	switch {
	case s.Phase() == coordinator.Warmup && s.Status(i) == coordinator.StatusWaiting:
		m = coordinator.Ready{Epoch: s.Epoch(), Params: params}
	case s.Phase() == coordinator.RoundTrain || s.Phase() == coordinator.RoundWitness:
		r, ok := s.At(s.Round())
		if !ok || !r.Elected(i) || r.Reported(i) {
			return
		}
		w := coordinator.Witness{Round: s.Round(), Complete: true, Params: params, Prev: params}
		if a, ok := s.At(r.Attests()); ok {
			for j := range s.Count() {
				if a.Expected(j) {
					w.Held = coordinator.SetHeld(w.Held, j)
				}
			}
			w.Commitments = make([]byte, r.Filter().Bits/8)
		}
		m = w
	default:
		return
	}
	e.send(k, run, m)
	e.judge()
}

// send makes a block with a message, and reports whether it is accepted.
func (e *episode) send(k key.Private, run string, m coordinator.Message) bool {
	e.sent++
	code := e.block(200, e.sign(k, host.ToRun(run, m)))[0]
	if code == host.CodeOK {
		e.accepted[fmt.Sprintf("%T", m)]++
	}
	return code == host.CodeOK
}

// liquidate has everybody leave, claim, close and collect, so that the gang's tokens are in its
// purses.
func (e *episode) liquidate() {
	all := append([]key.Private{e.owner, e.member, e.lender}, e.keys...)
	each := func(body func(k key.Private, run string) host.Body) {
		for _, name := range e.host.Runs() {
			var txs [][]byte
			for _, k := range all {
				txs = append(txs, e.sign(k, body(k, name)))
			}
			e.block(200, txs...)
			e.judge()
		}
	}
	rest := func() {
		for range 20 {
			e.block(5000)
			e.judge()
		}
		e.block(25 * 3600 * 1000)
		e.judge()
	}
	each(func(_ key.Private, run string) host.Body { return host.ToRun(run, coordinator.Withdraw{}) })
	each(func(_ key.Private, run string) host.Body { return host.ToRun(run, coordinator.End{}) })
	rest()
	rest()
	each(func(_ key.Private, run string) host.Body { return host.ToRun(run, coordinator.Claim{}) })
	each(func(_ key.Private, run string) host.Body { return host.CloseRun{Run: run} })
	if left := e.host.Runs(); len(left) > 0 {
		panic(fmt.Sprint("runs cannot be closed: ", left))
	}
	for range 3 { // closed, collected, removed
		for _, name := range e.host.Pools() {
			var txs [][]byte
			for _, k := range all {
				txs = append(txs, e.sign(k, host.Collect{Pool: name}), e.sign(k, host.ClosePool{Pool: name}))
			}
			e.block(200, txs...)
		}
	}
}
