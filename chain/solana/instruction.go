package solana

import (
	"encoding/binary"

	"github.com/entrain-network/entrain/chain/solana/units"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/trace"
)

// Limits of a transaction on Solana.
const (
	UnitsMax     = units.Max // compute units
	heapBytes    = 256 << 10
	accountsSize = 64 << 20 // bytes of all accounts
)

// Budget asks for compute units, at a price in millionths of a lamport each, and for the most heap
// and loaded accounts that a transaction may have.
func Budget(most uint32, price uint64) []Instruction {
	le := binary.LittleEndian
	return []Instruction{
		{Program: budgetProgram, Data: le.AppendUint32([]byte{2}, most)},
		{Program: budgetProgram, Data: le.AppendUint64([]byte{3}, price)},
		{Program: budgetProgram, Data: le.AppendUint32([]byte{1}, heapBytes)},
		{Program: budgetProgram, Data: le.AppendUint32([]byte{4}, accountsSize)},
	}
}

// Purse returns the token account of an owner that all wallets use for a mint: its associated one.
func Purse(owner, mint Address) (Address, error) {
	at, err := derived(purseProgram, owner[:], TokenProgram[:], mint[:])
	return at, err
}

// NewPurse makes an owner's Purse, at the payer's cost, unless it is there.
func NewPurse(payer, owner, mint Address) (Instruction, error) {
	at, err := Purse(owner, mint)
	return Instruction{
		Program: purseProgram, Data: []byte{1}, Accounts: []AccountRef{{payer, true, true}, {at, false, true}, {Address: owner},
			{Address: mint}, {Address: SystemProgram}, {Address: TokenProgram}},
	}, err
}

// NewAccount makes an account of size zero bytes that belongs to a program. The account signs, too.
func NewAccount(payer, account, owner Address, lamports, size uint64) Instruction {
	le := binary.LittleEndian
	data := le.AppendUint32(nil, 0)
	data = le.AppendUint64(le.AppendUint64(data, lamports), size)
	return Instruction{
		Program: SystemProgram, Accounts: []AccountRef{{payer, true, true}, {account, true, true}}, Data: append(data, owner[:]...),
	}
}

// TailBytes is what the program keeps behind a run's state: the vault, whether a closing is under
// way, and a count of messages.
const TailBytes = 64

// RunBytes returns the size of a run's account.
func RunBytes(l coordinator.Limits) uint64 { return uint64(coordinator.Size(l) + TailBytes) }

// Vault returns the token account that a run's account names; the zero address if it has none.
func Vault(account []byte) (a Address) {
	if len(account) >= TailBytes {
		copy(a[:], account[len(account)-TailBytes:])
	}
	return a
}

// Closing reports whether a run's account, or its last TailBytes, say that a round's end is being
// worked off: then only ticks are taken.
func Closing(account []byte) bool {
	return len(account) >= TailBytes && account[len(account)-TailBytes+33] != 0
}

// State returns the part of a run's account that is the coordinator's state.
func State(account []byte) []byte { return account[:max(0, len(account)-TailBytes)] }

// Program is the address of the program of runs on a cluster.
type Program Address

// Authority returns the address that owns the tokens of a run.
func (p Program) Authority(run Address) (Address, error) {
	at, err := derived(Address(p), []byte("vault"), run[:])
	return at, err
}

// The program's operations, flags, and errors; command program has their meaning.
const (
	opCreate = 0
	opApply  = 1
	opWrite  = 2
	opClose  = 3
	opJudge  = 4

	flagBuffer = 1
	flagValue  = 2
	flagPayout = 4
	flagRules  = 8
	flagWork   = 16
)

// Creation is a run to be made.
type Creation struct {
	Run, Sender Address // the run is a new account of RunBytes, which signs
	Spec        Address // a buffer of the sender's with the specification
	Rules       Address // one with the rules of the run's referee, if it verifies results
	Vault       Address // a token account of Authority; the zero address: the run has no tokens
	Limits      coordinator.Limits
	Config      coordinator.Config
}

// Create makes a run.
func (p Program) Create(n Creation) (Instruction, error) {
	name, err := p.Name(n.Config.Name)
	if err != nil {
		return Instruction{}, err
	}
	in := p.call(append([]byte{opCreate}, n.Config.Append(n.Limits.Append(nil))...), AccountRef{n.Run, true, true}, AccountRef{n.Sender, true, true},
		AccountRef{name, false, true}, AccountRef{n.Spec, false, true}, AccountRef{Address: SystemProgram})
	if n.Rules != (Address{}) {
		in.Accounts = append(in.Accounts, AccountRef{n.Rules, false, true})
	}
	if n.Vault != (Address{}) {
		in.Accounts = append(in.Accounts, AccountRef{Address: n.Vault})
	}
	return in, nil
}

// Name returns the account that says where the run of a name is.
func (p Program) Name(run string) (Address, error) {
	at, err := derived(Address(p), []byte("run"), []byte(run))
	return at, err
}

// NameBytes is the size of a name's account, which begins with NameMagic.
const (
	NameBytes = 4 + 2*32
	NameMagic = "ENTN"
)

// Named reads the account of a name: where the run and its specification are.
func Named(account []byte) (run, spec Address, ok bool) {
	if len(account) != NameBytes || string(account[:4]) != NameMagic {
		return run, spec, false
	}
	return Address(account[4:]), Address(account[36:]), true
}

// Buffered returns what is in a buffer or a specification, and its author.
func Buffered(account []byte) (author Address, content []byte, ok bool) {
	if len(account) < bufferHeader || string(account[:4]) != bufferMagic && string(account[:4]) != "ENTS" {
		return author, nil, false
	}
	return Address(account[4:]), account[bufferHeader:], true
}

const (
	bufferMagic  = "ENTB"
	bufferHeader = 4 + 32
)

// BufferedBy returns what the accounts of an author's buffers begin with, and after how many bytes
// their content follows. A specification is none.
func BufferedBy(author Address) (prefix []byte, header uint64) {
	return append([]byte(bufferMagic), author[:]...), bufferHeader
}

// BufferAt returns the address of an author's buffer. Its label has at most 32 bytes.
func (p Program) BufferAt(author Address, label string) Address {
	return At(author, label, Address(p))
}

// NewBuffer makes the account at BufferAt, for n bytes. The first Write belongs into the same
// transaction.
func (p Program) NewBuffer(author Address, label string, lamports uint64, n int) []Instruction {
	return newAccountAt(author, label, Address(p), lamports, BufferBytes(n))
}

// Sending is a message to a run.
type Sending struct {
	Run, Sender Address
	Message     coordinator.Message
	// Buffer is the account that holds the message if it is too long for a transaction; else the
	// zero address.
	Buffer Address
	// Rules are those of a run that verifies results, which every message to it needs; Work is where
	// the judgement that evidence asks for was computed, if it was. Else they are the zero address.
	Rules, Work Address
	// Value moves from the token account From to the Vault.
	Value       uint64
	Vault, From Address
	// To is the token account for what the message pays out; the zero address if it pays nothing.
	To Address
}

// Apply sends a message to a run.
func (p Program) Apply(s Sending) (Instruction, error) {
	accounts := []AccountRef{{s.Run, false, true}, {s.Sender, true, false}}
	flags := uint8(0)
	if s.Buffer != (Address{}) {
		flags |= flagBuffer
		accounts = append(accounts, AccountRef{Address: s.Buffer})
	}
	if s.Rules != (Address{}) {
		flags |= flagRules
		accounts = append(accounts, AccountRef{Address: s.Rules})
	}
	if s.Work != (Address{}) {
		flags |= flagWork
		accounts = append(accounts, AccountRef{Address: s.Work})
	}
	if s.Value > 0 || s.To != (Address{}) {
		authority, err := p.Authority(s.Run)
		if err != nil {
			return Instruction{}, err
		}
		accounts = append(accounts, AccountRef{s.Vault, false, true}, AccountRef{Address: authority}, AccountRef{Address: TokenProgram})
	}
	if s.Value > 0 {
		flags |= flagValue
		accounts = append(accounts, AccountRef{s.From, false, true})
	}
	if s.To != (Address{}) {
		flags |= flagPayout
		accounts = append(accounts, AccountRef{s.To, false, true})
	}
	data := binary.LittleEndian.AppendUint64([]byte{opApply, flags}, s.Value)
	if s.Buffer == (Address{}) {
		data = coordinator.Append(data, s.Message)
	}
	return p.call(data, accounts...), nil
}

// BufferBytes returns the size of the account of a buffer for n bytes.
func BufferBytes(n int) uint64 { return uint64(bufferHeader + n) }

// WritePart is a good length for the parts that are written into a buffer: with it a transaction
// fits.
const WritePart = 700

// Write writes a part of a message into a buffer. The first one makes it the author's.
func (p Program) Write(buffer, author Address, offset int, part []byte) Instruction {
	data := binary.LittleEndian.AppendUint32([]byte{opWrite}, uint32(offset))
	return p.call(append(data, part...), AccountRef{buffer, false, true}, AccountRef{author, true, false})
}

// WorkBytes is the size of an account for what of a judgement is computed.
const WorkBytes = bufferHeader + 32 + 4 + 4*trace.ProgressWords

// NewWork makes the account at BufferAt for what of a judgement is computed.
func (p Program) NewWork(author Address, label string, lamports uint64) []Instruction {
	return newAccountAt(author, label, Address(p), lamports, WorkBytes)
}

// Judge computes some results more of the judgement that the evidence in s.Buffer asks for, into
// s.Work, an account of the sender's. Nothing is computed twice.
func (p Program) Judge(s Sending, results uint32) Instruction {
	return p.call(binary.LittleEndian.AppendUint32([]byte{opJudge}, results), AccountRef{Address: s.Run}, AccountRef{s.Sender, true, false},
		AccountRef{Address: s.Rules}, AccountRef{Address: s.Buffer}, AccountRef{s.Work, false, true})
}

// Worked returns how much an account holds of a judgement.
func Worked(account []byte) uint32 {
	if len(account) != WorkBytes {
		return 0
	}
	return binary.LittleEndian.Uint32(account[bufferHeader+32:])
}

// RulesMagic begins the account of a run's rules: after it come the run, and the rules.
const RulesMagic = "ENTR"

// RulesOf returns the run that rules are for, and the rules.
func RulesOf(account []byte) (run Address, rules []byte, ok bool) {
	if len(account) < bufferHeader || string(account[:4]) != RulesMagic {
		return run, nil, false
	}
	return Address(account[4:]), account[bufferHeader:], true
}

// Close closes a buffer, or an account for a judgement, and gives its author the rent back.
func (p Program) Close(account, author Address) Instruction {
	return p.call([]byte{opClose}, AccountRef{account, false, true}, AccountRef{author, true, true})
}

// CloseRun closes a finished run without tokens, with its specification and the rules that it has
// unless they are the zero address, and gives the owner the rent back.
func (p Program) CloseRun(run, owner, spec, rules Address) Instruction {
	in := p.Close(run, owner)
	in.Accounts = append(in.Accounts, AccountRef{spec, false, true})
	if rules != (Address{}) {
		in.Accounts = append(in.Accounts, AccountRef{rules, false, true})
	}
	return in
}

func (p Program) call(data []byte, accounts ...AccountRef) Instruction {
	return Instruction{Program: Address(p), Accounts: accounts, Data: data}
}
