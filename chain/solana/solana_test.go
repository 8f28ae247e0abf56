package solana_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/chain/solana"
	"github.com/entrain-network/entrain/chain/solana/svm"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// The program's own reasons for refusing, as command program numbers them.
const (
	badAccounts = 1000 + iota
	badOwner
	badSigner
	badWritable
	badData
	badKind
	badLength
	badVault
	badTokens
	badPayee
	badReferee
	badAuthor
	badLive
	badName
	badSpec
)

const (
	unix   = 1_800_000_000
	slot   = 1000
	stake  = 100
	plenty = 1 << 40 // lamports
)

// chain is the machine with the program, and everybody's accounts.
type chain struct {
	t       *testing.T
	m       *svm.Machine
	program solana.Program
	mint    solana.Address
	slot    uint64
	unix    int64
}

func newChain(t *testing.T) *chain {
	c := &chain{t: t, program: solana.Program{1, 1}, mint: solana.Address{2, 2}, slot: slot, unix: unix}
	c.m = svm.Start(t, "entrain", c.program)
	mint := make([]byte, 82)
	mint[45] = 1 // it is initialized; nobody makes more
	binary.LittleEndian.PutUint64(mint[36:], 1_000_000)
	c.m.Put(c.mint, solana.TokenProgram, plenty, mint)
	c.clock(0)
	return c
}

// clock lets seconds pass.
func (c *chain) clock(seconds int64) {
	c.slot++
	c.unix += seconds
	c.m.Clock(c.slot, c.unix, c.before())
}

func (c *chain) before() [32]byte { return wire.Sum("test/slot", wire.AppendU64(nil, c.slot)) }

// env is what the program must make of the clock.
func (c *chain) env(sender solana.Signer) coordinator.Env {
	before := c.before()
	return coordinator.Env{
		NowMs: uint64(c.unix) * 1000, Height: c.slot, Sender: key.Public(sender.Address()),
		Seed: wire.Sum("entrain/solana/seed", wire.AppendU64(nil, c.slot-1), before[:]),
	}
}

// signer returns somebody with lamports.
func (c *chain) signer(n byte) solana.Signer {
	s := solana.NewSigner(key.FromSeed([32]byte{n}))
	if c.m.Get(s.Address()).Lamports == 0 {
		c.m.Put(s.Address(), solana.SystemProgram, plenty<<10, nil)
	}
	return s
}

// tokens returns a new token account. change alters it.
func (c *chain) tokens(n byte, owner solana.Address, amount uint64, change func(b []byte)) solana.Address {
	at := solana.Address{9, n}
	b := make([]byte, 165)
	copy(b, c.mint[:])
	copy(b[32:], owner[:])
	binary.LittleEndian.PutUint64(b[64:], amount)
	b[108] = 1
	if change != nil {
		change(b)
	}
	c.m.Put(at, solana.TokenProgram, plenty, b)
	return at
}

func (c *chain) amount(at solana.Address) uint64 {
	return binary.LittleEndian.Uint64(c.m.Data(at)[64:])
}

// send sends instructions. want is the code of the expected refusal, or 0.
func (c *chain) send(what string, want uint32, signers []solana.Signer, list ...solana.Instruction) {
	c.t.Helper()
	tx, err := solana.Transaction(c.m.Blockhash(), signers, append(solana.Budget(solana.UnitsMax, 0), list...)...)
	if err != nil {
		c.t.Fatalf("%s: %v", what, err)
	}
	if r := c.m.Send(tx); r.Code != want || (r.Error == "") != (want == 0) {
		c.t.Errorf("%s: %q (code %d), want code %d; %q", what, r.Error, r.Code, want, r.Logs[max(0, len(r.Logs)-3):])
	}
}

func limits() coordinator.Limits { return coordinator.Limits{Members: 4, Witnesses: 4} }

// specText is every run's specification here.
var specText = []byte("name = \"test\"\n")

func config(owner solana.Signer, name string) coordinator.Config {
	return coordinator.Config{
		Name: name, MinMembers: 2, StartMembers: 2, WaitingMs: 10_000, WarmupMs: 20_000, RoundTrainMs: 30_000, RoundWitnessMs: 5_000,
		CooldownMs: 15_000, EpochMs: 600_000, TotalSteps: 100, BatchStart: 8, BatchEnd: 8, SequenceTokens: 16, Overlap: 1, MissedMax: 1,
		Stake: stake, ModelHash: wire.Sum("test/model"), SpecHash: host.SpecHash(specText), Owner: key.Public(owner.Address()),
	}
}

// run makes a run with a vault and returns its accounts, and the state that Go makes.
func (c *chain) run(n byte, owner solana.Signer) (run solana.Signer, vault solana.Address, s coordinator.State) {
	c.t.Helper()
	run = solana.NewSigner(key.FromSeed([32]byte{100, n}))
	authority, err := c.program.Authority(run.Address())
	if err != nil {
		c.t.Fatal(err)
	}
	vault = c.tokens(100+n, authority, 0, nil)
	own := config(owner, fmt.Sprint("run-", n))
	c.send("create", 0, []solana.Signer{owner, run},
		solana.NewAccount(owner.Address(), run.Address(), solana.Address(c.program), plenty, solana.RunBytes(limits())),
		c.create(run, owner, c.spec(owner, own.Name), vault, own))
	s, err = coordinator.New(limits(), own, c.env(owner))
	if err != nil {
		c.t.Fatal(err)
	}
	return run, vault, s
}

// spec publishes the specification.
func (c *chain) spec(owner solana.Signer, label string) solana.Address {
	c.t.Helper()
	at := c.program.BufferAt(owner.Address(), label)
	c.send("specification", 0, []solana.Signer{owner}, append(c.program.NewBuffer(owner.Address(), label, plenty, len(specText)),
		c.program.Write(at, owner.Address(), 0, specText))...)
	return at
}

func (c *chain) create(run, owner solana.Signer, spec, vault solana.Address, config coordinator.Config) solana.Instruction {
	in, err := c.program.Create(solana.Creation{Run: run.Address(), Sender: owner.Address(), Spec: spec, Vault: vault, Limits: limits(), Config: config})
	if err != nil {
		c.t.Fatal(err)
	}
	return in
}

func (c *chain) apply(s solana.Sending) solana.Instruction {
	in, err := c.program.Apply(s)
	if err != nil {
		c.t.Fatal(err)
	}
	return in
}

// same checks that the account of a run holds Go's state.
func (c *chain) same(what string, run solana.Address, s coordinator.State) {
	c.t.Helper()
	if !bytes.Equal(solana.State(c.m.Data(run)), s.Bytes()) {
		c.t.Errorf("%s: the run's account differs from Go's state", what)
	}
}

// TestRunOnSolana takes a run with tokens from its creation into training and a member out of it, by the chain's own clock and chance,
// and Go with it: the same bytes after every message, and every token where it belongs.
func TestRunOnSolana(t *testing.T) {
	c := newChain(t)
	owner := c.signer(1)
	run, vault, s := c.run(1, owner)
	c.same("create", run.Address(), s)
	members := []solana.Signer{c.signer(2), c.signer(3)}
	var purses []solana.Address
	step := func(what string, by solana.Signer, m coordinator.Message, value uint64, purse solana.Address) {
		t.Helper()
		sending := solana.Sending{Run: run.Address(), Sender: by.Address(), Message: m, Value: value, Vault: vault, From: purse}
		if value == 0 {
			sending.To = purse
		}
		c.send(what, 0, []solana.Signer{by}, c.apply(sending))
		env := c.env(by)
		env.Value = value
		if err := s.Apply(env, m); err != nil {
			t.Fatalf("%s: Go says %v", what, err)
		}
		c.same(what, run.Address(), s)
	}
	for i, m := range append(members, c.signer(4)) {
		purses = append(purses, c.tokens(byte(i), m.Address(), 2*stake, nil))
		c.clock(1)
		step("join", m, coordinator.Join{}, stake, purses[i])
	}
	step("withdraw", c.signer(4), coordinator.Withdraw{}, 0, solana.Address{})
	step("claim", c.signer(4), coordinator.Claim{}, 0, purses[2])
	none := solana.Address{}
	c.clock(10)
	step("tick", owner, coordinator.Tick{}, 0, none)
	for _, m := range members {
		step("ready", m, coordinator.Ready{Epoch: 1, Params: s.Config().ModelHash}, 0, none)
	}
	if s.Phase() != coordinator.RoundTrain {
		t.Fatalf("the run is in %v", s.Phase())
	}
	for range 10 { // rounds that nobody reports in, and so the end of the epoch
		c.clock(100)
		step("tick", owner, coordinator.Tick{}, 0, none)
	}
	for i, want := range []uint64{stake, stake, 2 * stake} {
		if got := c.amount(purses[i]); got != want {
			t.Errorf("member %d has %d tokens, want %d", i, got, want)
		}
	}
	if got := c.amount(vault); got != 2*stake || s.Escrow() != 2*stake {
		t.Errorf("the vault holds %d tokens, the escrow %d, want %d", got, s.Escrow(), 2*stake)
	}
}

// TestHostileAccountsOnSolana passes the program accounts that are not what they should be.
func TestHostileAccountsOnSolana(t *testing.T) {
	c := newChain(t)
	owner, member, thief := c.signer(1), c.signer(2), c.signer(3)
	run, vault, s := c.run(1, owner)
	other, _, _ := c.run(2, owner)
	purse := c.tokens(1, member.Address(), 1000, nil)
	loot := c.tokens(2, thief.Address(), 1000, nil)
	by := func(s ...solana.Signer) []solana.Signer { return s }
	join := func() solana.Sending {
		return solana.Sending{Run: run.Address(), Sender: member.Address(), Message: coordinator.Join{}, Value: stake, Vault: vault, From: purse}
	}
	tick := c.apply(solana.Sending{Run: run.Address(), Sender: member.Address(), Message: coordinator.Tick{}})
	changed := func(in solana.Instruction, f func(in *solana.Instruction)) solana.Instruction {
		in.Accounts, in.Data = slices.Clone(in.Accounts), slices.Clone(in.Data)
		f(&in)
		return in
	}
	account := func(in solana.Instruction, k int, f func(a *solana.AccountRef)) solana.Instruction {
		return changed(in, func(in *solana.Instruction) { f(&in.Accounts[k]) })
	}
	replaced := func(in solana.Instruction, k int, at solana.Address) solana.Instruction {
		return account(in, k, func(a *solana.AccountRef) { a.Address = at })
	}
	// The run.
	foreign := solana.Address{7}
	c.m.Put(foreign, solana.SystemProgram, plenty, c.m.Data(run.Address()))
	c.send("a copy of a run that belongs to another program", badOwner, by(member), replaced(tick, 0, foreign))
	c.send("a run that is not writable", badWritable, by(member), account(tick, 0, func(a *solana.AccountRef) { a.Writable = false }))
	c.send("a sender that does not sign", badSigner, by(thief), account(tick, 1, func(a *solana.AccountRef) { a.Signer = false }))
	c.send("the run as the sender, too", badAccounts, by(thief, run), replaced(tick, 1, run.Address()))
	c.send("no sender", badAccounts, by(member), changed(tick, func(in *solana.Instruction) { in.Accounts = in.Accounts[:1] }))
	c.send("one account too many", badAccounts, by(member),
		changed(tick, func(in *solana.Instruction) { in.Accounts = append(in.Accounts, solana.AccountRef{Address: purse}) }))
	c.send("flags that do not exist", badData, by(member), changed(tick, func(in *solana.Instruction) { in.Data[1] = 32 }))
	c.send("an operation of the program for tests", badData, by(member), changed(tick, func(in *solana.Instruction) { in.Data[0] = 101 }))
	c.send("no data", badData, by(member), changed(tick, func(in *solana.Instruction) { in.Data = nil }))
	// Creation.
	fresh := solana.NewSigner(key.FromSeed([32]byte{50}))
	account0 := func(size uint64) solana.Instruction {
		return solana.NewAccount(thief.Address(), fresh.Address(), solana.Address(c.program), plenty, size)
	}
	none, spec := solana.Address{}, c.spec(thief, "own")
	c.send("a run over a run", badKind, by(thief, run), c.create(run, thief, spec, none, config(thief, "new")))
	create := c.create(fresh, thief, spec, none, config(thief, "new"))
	size := solana.RunBytes(limits())
	c.send("an account that is too long", badLength, by(thief, fresh), account0(size+1), create)
	squatted := solana.Address{51} // made in a transaction of its own, so that anyone comes between
	c.m.Put(squatted, solana.Address(c.program), plenty, make([]byte, size))
	c.send("an account that does not sign", badSigner, by(thief),
		account(replaced(create, 0, squatted), 0, func(a *solana.AccountRef) { a.Signer = false }))
	verifies := config(thief, "new")
	verifies.VerificationPercent, verifies.VerifyMs, verifies.DisputeMs, verifies.StateHash = 10, 1000, 1000, wire.Sum("x")
	c.send("a run that needs a referee", badReferee, by(thief, fresh), account0(size), c.create(fresh, thief, spec, none, verifies))
	c.send("a name that is taken", badName, by(thief, fresh), account0(size), c.create(fresh, thief, spec, none, config(thief, "run-1")))
	c.send("another name's account", badName, by(thief, fresh), account0(size), replaced(create, 2, solana.Address{53}))
	c.send("a name's account that is not writable", badWritable, by(thief, fresh), account0(size),
		account(create, 2, func(a *solana.AccountRef) { a.Writable = false }))
	c.send("another system program", badOwner, by(thief, fresh), account0(size), replaced(create, 4, foreign))
	other2 := config(thief, "new")
	other2.SpecHash = wire.Sum("another")
	c.send("another specification", badSpec, by(thief, fresh), account0(size), c.create(fresh, thief, spec, none, other2))
	c.send("another's specification", badAuthor, by(thief, fresh), account0(size),
		c.create(fresh, thief, c.spec(member, "own"), none, config(thief, "new")))
	c.send("a specification that serves already", badKind, by(thief, fresh), account0(size),
		c.create(fresh, thief, c.program.BufferAt(owner.Address(), "run-1"), none, config(thief, "new")))
	c.send("a change of a specification", badKind, by(owner),
		c.program.Write(c.program.BufferAt(owner.Address(), "run-1"), owner.Address(), 0, []byte("x")))
	authority, err := c.program.Authority(fresh.Address())
	if err != nil {
		t.Fatal(err)
	}
	vaults := func(what string, want uint32, n byte, owner solana.Address, change func(b []byte)) {
		t.Helper()
		c.send(what, want, by(thief, fresh), account0(size),
			c.create(fresh, thief, spec, c.tokens(n, owner, 0, change), config(thief, "new")))
	}
	vaults("a vault of the creator's own", badVault, 10, thief.Address(), nil)
	vaults("a vault with a delegate", badVault, 11, authority, func(b []byte) { b[72] = 1 })
	vaults("a vault that another may close", badVault, 12, authority, func(b []byte) { b[129] = 1 })
	vaults("a vault that is frozen", badVault, 13, authority, func(b []byte) { b[108] = 2 })
	c.m.Put(solana.Address{8}, solana.Address{77}, plenty, c.m.Data(vault))
	c.send("a vault of another token program", badOwner, by(thief, fresh), account0(size),
		c.create(fresh, thief, spec, solana.Address{8}, config(thief, "new")))
	name, err := c.program.Name("new")
	if err != nil {
		t.Fatal(err)
	}
	c.m.Put(name, solana.SystemProgram, 1, nil) // a stranger's gift, so that the name cannot be made at once
	c.send("a name with lamports", 0, by(thief, fresh), account0(size), create)
	if at, of, ok := solana.Named(c.m.Data(name)); !ok || at != fresh.Address() || of != spec {
		t.Errorf("the name leads to %v and %v", at, of)
	}
	// Value.
	c.send("value without the accounts for it", badTokens, by(member), changed(tick, func(in *solana.Instruction) {
		in.Data = append(binary.LittleEndian.AppendUint64([]byte{1, 0}, stake), coordinator.Append(nil, coordinator.Join{})...)
	}))
	with := func(f func(s *solana.Sending)) solana.Instruction {
		s := join()
		f(&s)
		return c.apply(s)
	}
	c.send("another vault", badVault, by(member), with(func(s *solana.Sending) { s.Vault = loot }))
	c.send("another's tokens", 4, by(member), with(func(s *solana.Sending) { s.From = loot })) // the token program: owner does not match
	c.send("more tokens than there are", 1, by(member), with(func(s *solana.Sending) { s.Value = 1001 }))
	c.send("another token program", badOwner, by(member), replaced(c.apply(join()), 4, foreign))
	c.send("from the vault itself", badAccounts, by(member), with(func(s *solana.Sending) { s.From = vault }))
	c.same("so far", run.Address(), s)
	c.send("join", 0, by(member), c.apply(join()))
	c.send("withdraw", 0, by(member), c.apply(solana.Sending{Run: run.Address(), Sender: member.Address(), Message: coordinator.Withdraw{}}))
	claim := solana.Sending{Run: run.Address(), Sender: member.Address(), Message: coordinator.Claim{}, Vault: vault}
	c.send("a claim without an account to be paid", badTokens, by(member), c.apply(claim))
	claim.To = loot
	c.send("a claim for another's purse", badPayee, by(member), c.apply(claim))
	claim.To = foreign
	c.send("a claim to what is not a purse", badOwner, by(member), c.apply(claim))
	claim.To = vault
	c.send("a claim into the vault", badAccounts, by(member), c.apply(claim))
	claim.To = purse
	c.send("claim", 0, by(member), c.apply(claim))
	if got := c.amount(purse) + c.amount(vault); got != 1000 || c.amount(loot) != 1000 || c.amount(vault) != 0 {
		t.Errorf("the purse has %d, the vault %d, the thief %d tokens", c.amount(purse), c.amount(vault), c.amount(loot))
	}
	// Buffers.
	box := c.program.BufferAt(member.Address(), "box")
	message := coordinator.Append(nil, coordinator.Tick{})
	c.m.Put(box, solana.SystemProgram, 1_000_000, nil) // a stranger's gift
	c.send("a buffer", 0, by(member), append(c.program.NewBuffer(member.Address(), "box", plenty, len(message)),
		c.program.Write(box, member.Address(), 0, message))...)
	if author, content, ok := solana.Buffered(c.m.Data(box)); !ok || author != member.Address() || !bytes.Equal(content, message) {
		t.Errorf("the buffer of %v holds %x", author, content)
	}
	c.send("another's buffer", badAuthor, by(thief), c.program.Write(box, thief.Address(), 0, message))
	c.send("beyond the buffer", badLength, by(member), c.program.Write(box, member.Address(), 1, message))
	c.send("a part at the end of numbers", badLength, by(member), c.program.Write(box, member.Address(), 1<<32-1, message))
	c.send("a part for a run", badKind, by(owner), c.program.Write(run.Address(), owner.Address(), 0, message))
	buffered := solana.Sending{Run: run.Address(), Sender: thief.Address(), Buffer: box}
	c.send("a message from a buffer", 0, by(thief), c.apply(buffered))
	buffered.Buffer = other.Address()
	c.send("a message from a run", badKind, by(thief), c.apply(buffered))
	buffered.Buffer = run.Address()
	c.send("a message from the run itself", badAccounts, by(thief), c.apply(buffered))
	buffered.Buffer = foreign
	c.send("a message from another program's account", badOwner, by(thief), c.apply(buffered))
	forged := append([]byte("ENTB"), make([]byte, size-4)...)
	copy(forged[4+32:], c.m.Data(run.Address()))
	c.m.Put(solana.Address{52}, solana.Address(c.program), plenty, forged)
	c.send("a buffer as a run", uint32(coordinator.ErrCorrupt), by(member), replaced(tick, 0, solana.Address{52}))
	// Closing.
	c.send("closing another's buffer", badAuthor, by(thief), c.program.Close(box, thief.Address()))
	c.send("closing another's run", badAuthor, by(thief), c.program.Close(run.Address(), thief.Address()))
	c.send("closing a run that goes on", badLive, by(owner), c.program.Close(run.Address(), owner.Address()))
	before := c.m.Get(member.Address()).Lamports
	c.send("closing a buffer", 0, by(member), c.program.Close(box, member.Address()))
	if c.m.Get(box).Lamports != 0 || c.m.Get(member.Address()).Lamports < before+plenty-10_000 {
		t.Error("a closed buffer's rent is not its author's")
	}
	c.send("ending a run", 0, by(owner), c.apply(solana.Sending{Run: run.Address(), Sender: owner.Address(), Message: coordinator.End{}}))
	c.clock(100)
	c.send("the last tick", 0, by(owner), c.apply(solana.Sending{Run: run.Address(), Sender: owner.Address(), Message: coordinator.Tick{}}))
	own := c.program.BufferAt(owner.Address(), "run-1")
	loose := c.buffer(owner, "loose", specText)
	foreign = solana.Address{53}
	c.m.Put(foreign, solana.SystemProgram, plenty, c.m.Data(own))
	forged = c.m.Data(own)
	forged[len(forged)-1]++
	c.m.Put(solana.Address{54}, solana.Address(c.program), plenty, forged)
	forged = c.m.Data(own)
	forged[4]++
	c.m.Put(solana.Address{55}, solana.Address(c.program), plenty, forged)
	closing := func(spec solana.Address) solana.Instruction {
		return c.program.CloseRun(run.Address(), owner.Address(), spec, solana.Address{})
	}
	c.send("closing a run without its specification", badAccounts, by(owner), c.program.Close(run.Address(), owner.Address()))
	c.send("closing a run with a buffer", badKind, by(owner), closing(loose))
	c.send("closing a run with another specification", badSpec, by(owner), closing(solana.Address{54}))
	c.send("closing a run with another's specification", badAuthor, by(owner), closing(solana.Address{55}))
	c.send("closing a run with another program's account", badOwner, by(owner), closing(foreign))
	c.send("closing a run with itself", badAccounts, by(owner), closing(run.Address()))
	c.send("closing a specification as a buffer", badLength, by(owner), c.program.Close(own, owner.Address()))
	before = c.m.Get(owner.Address()).Lamports
	c.send("closing a run", 0, by(owner), closing(own))
	if c.m.Get(run.Address()).Lamports != 0 || c.m.Get(own).Lamports != 0 || c.m.Get(owner.Address()).Lamports < before+2*plenty-10_000 {
		t.Error("the rent of a closed run and its specification is not its owner's")
	}
}
