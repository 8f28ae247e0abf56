package solana_test

import (
	"slices"
	"testing"

	"github.com/entrain-network/entrain/chain/solana"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/trace"
	"github.com/entrain-network/entrain/trace/referee"
	"github.com/entrain-network/entrain/wire"
)

// verifying is a configuration whose run checks results.
func verifying(owner solana.Signer, name string) coordinator.Config {
	c := config(owner, name)
	c.VerificationPercent, c.VerifyMs, c.DisputeMs, c.UnbondMs, c.StateHash = 100, 60_000, 120_000, 1_000_000, wire.Sum("test/fresh")
	return c
}

// buffer writes a buffer of an author's.
func (c *chain) buffer(author solana.Signer, label string, content []byte) solana.Address {
	c.t.Helper()
	at := c.program.BufferAt(author.Address(), label)
	list := c.program.NewBuffer(author.Address(), label, plenty, len(content))
	for from := 0; from < len(content); from += solana.WritePart {
		list = append(list, c.program.Write(at, author.Address(), from, content[from:min(from+solana.WritePart, len(content))]))
		c.send("buffer", 0, []solana.Signer{author}, list...)
		list = nil
	}
	return at
}

// verified makes a run that checks results, and its rules.
func (c *chain) verified(n byte, owner solana.Signer, name string) (run, rules solana.Address) {
	c.t.Helper()
	fresh := solana.NewSigner(key.FromSeed([32]byte{101, n}))
	own := verifying(owner, name)
	if faults := own.Check(limits()); len(faults) > 0 {
		c.t.Fatal(faults)
	}
	rules = c.buffer(owner, "rules-"+name, referee.Rules{Table: []byte("a table")}.Append(nil))
	in, err := c.program.Create(solana.Creation{Run: fresh.Address(), Sender: owner.Address(), Spec: c.spec(owner, own.Name), Rules: rules, Limits: limits(), Config: own})
	if err != nil {
		c.t.Fatal(err)
	}
	c.send("create", 0, []solana.Signer{owner, fresh},
		solana.NewAccount(owner.Address(), fresh.Address(), solana.Address(c.program), plenty, solana.RunBytes(limits())), in)
	return fresh.Address(), rules
}

// TestHostileRulesOnSolana passes the program rules and accounts for judgements that are not what
// they should be.
func TestHostileRulesOnSolana(t *testing.T) {
	c := newChain(t)
	owner, member, thief := c.signer(1), c.signer(2), c.signer(3)
	by := func(s ...solana.Signer) []solana.Signer { return s }
	run, rules := c.verified(1, owner, "checked")
	_, otherRules := c.verified(2, owner, "checked-too")
	plain, _, _ := c.run(3, owner)
	specOf := func(name string) solana.Address { return c.program.BufferAt(owner.Address(), name) }
	foreign := solana.Address{7}
	c.m.Put(foreign, solana.SystemProgram, plenty, c.m.Data(rules))
	loose := c.buffer(thief, "loose", c.m.Data(rules)[36:])
	tick := func(rules, work solana.Address) solana.Instruction {
		return c.apply(solana.Sending{Run: run, Sender: member.Address(), Message: coordinator.Tick{}, Rules: rules, Work: work})
	}
	none := solana.Address{}
	c.clock(1)
	c.send("a message with the rules", 0, by(member), tick(rules, none))
	c.send("a message without the rules", badReferee, by(member), tick(none, none))
	c.send("the rules of another run", badReferee, by(member), tick(otherRules, none))
	c.send("rules of another program", badOwner, by(member), tick(foreign, none))
	c.send("rules that are not sealed", badKind, by(member), tick(loose, none))
	c.send("the run as its rules", badAccounts, by(member), tick(run, none))
	c.send("rules where none are needed", badReferee, by(member),
		c.apply(solana.Sending{Run: plain.Address(), Sender: member.Address(), Message: coordinator.Tick{}, Rules: rules}))
	c.send("a change of rules", badKind, by(owner), c.program.Write(rules, owner.Address(), 0, []byte("x")))
	c.send("the rent of rules in use", uint32(coordinator.ErrCorrupt), by(owner), c.program.Close(rules, owner.Address()))
	c.send("the rent of a run and its rules while it lives", badLive, by(owner), c.program.CloseRun(run, owner.Address(), specOf("checked"), rules))

	// Creation.
	fresh := solana.NewSigner(key.FromSeed([32]byte{102}))
	creation := func(what string, want uint32, n solana.Creation) {
		t.Helper()
		n.Run, n.Sender, n.Limits = fresh.Address(), thief.Address(), limits()
		in, err := c.program.Create(n)
		if err != nil {
			t.Fatal(err)
		}
		c.send(what, want, by(thief, fresh),
			solana.NewAccount(thief.Address(), fresh.Address(), solana.Address(c.program), plenty, solana.RunBytes(limits())), in)
	}
	spec := c.spec(thief, "spec")
	creation("no rules", badReferee, solana.Creation{Spec: spec, Config: verifying(thief, "new")})
	creation("another's rules", badKind, solana.Creation{Spec: spec, Rules: rules, Config: verifying(thief, "new")})
	creation("another's buffer as rules", badAuthor, solana.Creation{Spec: spec, Rules: c.buffer(member, "own", []byte("rules")), Config: verifying(thief, "new")})
	creation("rules of another program", badOwner, solana.Creation{Spec: spec, Rules: foreign, Config: verifying(thief, "new")})
	creation("the specification as rules", badAccounts, solana.Creation{Spec: spec, Rules: spec, Config: verifying(thief, "new")})
	creation("rules of a run without checks", badOwner, solana.Creation{Spec: spec, Rules: loose, Config: config(thief, "new")})

	// Judgements. There is no dispute, so a sound one is in the wrong stage.
	evidence := c.buffer(member, "evidence", coordinator.Append(nil, coordinator.Evidence{Dispute: 1, Bytes: []byte("evidence")}))
	work := func(author solana.Signer, label string) solana.Address {
		c.send("work", 0, by(author), c.program.NewWork(author.Address(), label, plenty)...)
		return c.program.BufferAt(author.Address(), label)
	}
	at := work(member, "work")
	sending := solana.Sending{Run: run, Sender: member.Address(), Rules: rules, Buffer: evidence, Work: at}
	judge := c.program.Judge(sending, 1)
	changed := func(f func(in *solana.Instruction)) solana.Instruction {
		in := judge
		in.Accounts, in.Data = slices.Clone(in.Accounts), slices.Clone(in.Data)
		f(&in)
		return in
	}
	replaced := func(k int, with solana.Address) solana.Instruction {
		return changed(func(in *solana.Instruction) { in.Accounts[k].Address = with })
	}
	stage := uint32(coordinator.ErrStage)
	c.send("a judgement without a dispute", stage, by(member), judge)
	c.send("work that nobody began", badKind, by(member), tick(rules, at))
	c.send("a run of another program", badOwner, by(member), replaced(0, foreign))
	c.send("an author that does not sign", badSigner, by(thief), changed(func(in *solana.Instruction) { in.Accounts[1].Signer = false }))
	c.send("evidence of another program", badOwner, by(member), replaced(3, foreign))
	c.send("evidence that is no buffer", badKind, by(member), replaced(3, otherRules))
	c.send("another message as evidence", badKind, by(member), replaced(3, c.buffer(member, "message", coordinator.Append(nil, coordinator.Tick{}))))
	c.send("work that is not writable", badWritable, by(member), changed(func(in *solana.Instruction) { in.Accounts[4].Writable = false }))
	c.send("work of another program", badOwner, by(member), replaced(4, foreign))
	c.send("work of another length", badLength, by(member), replaced(4, loose))
	c.send("an account too many", badAccounts, by(member), changed(func(in *solana.Instruction) { in.Accounts = append(in.Accounts, solana.AccountRef{Address: loose}) }))
	c.send("too much work", badData, by(member), changed(func(in *solana.Instruction) { in.Data[4] = 255 }))
	begun := make([]byte, solana.WorkBytes)
	copy(begun, "ENTW")
	victim := thief.Address()
	copy(begun[4:], victim[:])
	stolen := solana.Address{8}
	c.m.Put(stolen, solana.Address(c.program), plenty, begun)
	c.send("another's work", badAuthor, by(member), replaced(4, stolen))
	c.send("the rent of another's work", badAuthor, by(member), c.program.Close(stolen, member.Address()))
	c.send("the rent of own work", 0, by(thief), c.program.Close(stolen, thief.Address()))
	c.send("a buffer as work", badKind, by(member), replaced(4, c.buffer(member, "long", make([]byte, solana.WorkBytes-36))))
	if want := 36 + 32 + 4 + 4*trace.ProgressWords; solana.WorkBytes != want {
		t.Errorf("work has %d bytes, want %d", solana.WorkBytes, want)
	}
}
