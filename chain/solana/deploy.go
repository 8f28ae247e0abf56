package solana

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
)

// Accounts that deploying needs on every cluster.
var (
	LoaderProgram = must("BPFLoaderUpgradeab1e11111111111111111111111")
	rentSysvar    = must("SysvarRent111111111111111111111111111111111")
)

// At returns the address of the account that an author makes under a label for an owner, a program.
// It needs no key: the author signs for it. The label has at most 32 bytes.
func At(author Address, label string, owner Address) Address {
	return sha256.Sum256(slices.Concat(author[:], []byte(label), owner[:]))
}

// NewAccountAt makes the account At of n bytes.
func NewAccountAt(author Address, label string, owner Address, lamports, n uint64) Instruction {
	le := binary.LittleEndian
	data := append(le.AppendUint32(nil, 3), author[:]...) // CreateAccountWithSeed
	data = append(le.AppendUint64(data, uint64(len(label))), label...)
	data = le.AppendUint64(le.AppendUint64(data, lamports), n)
	return Instruction{
		Program: SystemProgram, Accounts: []AccountRef{{author, true, true}, {At(author, label, owner), false, true}}, Data: append(data, owner[:]...),
	}
}

// fundAccountAt makes the account At of n bytes, even where somebody sent lamports before, with
// which NewAccountAt would fail: a stranger could keep an accuser from its evidence.
func fundAccountAt(author Address, label string, owner Address, lamports, n uint64) []Instruction {
	le := binary.LittleEndian
	at := At(author, label, owner)
	transfer := le.AppendUint64(le.AppendUint32(nil, 2), lamports)
	allocate := append(le.AppendUint32(nil, 9), author[:]...) // AllocateWithSeed
	allocate = append(le.AppendUint64(allocate, uint64(len(label))), label...)
	allocate = append(le.AppendUint64(allocate, n), owner[:]...)
	return []Instruction{
		{Program: SystemProgram, Accounts: []AccountRef{{author, true, true}, {at, false, true}}, Data: transfer},
		{Program: SystemProgram, Accounts: []AccountRef{{at, false, true}, {author, true, false}}, Data: allocate},
	}
}

// A Deployment puts a program of some bytes on a cluster: make the accounts, Begin, Write every
// part, then End. The author signs and pays, and can replace the program later.
type Deployment struct {
	author Address
	label  string
	bytes  int
}

// NewDeployment returns the deployment of a program's file. The same author and file have the same
// addresses, so that one that broke off goes on.
func NewDeployment(author Address, file []byte) Deployment {
	h := sha256.Sum256(file)
	return Deployment{author, hex.EncodeToString(h[:15]), len(file)}
}

// Program is where the program will be, Buffer where its bytes are gathered.
func (d Deployment) Program() Program { return Program(At(d.author, "p-"+d.label, LoaderProgram)) }
func (d Deployment) Buffer() Address  { return At(d.author, "b-"+d.label, LoaderProgram) }

// The sizes of a program's accounts, and where its bytes begin in the buffer.
const (
	programBytes = 36
	BufferHeader = 37
)

// BufferBytes and ProgramBytes are the sizes of the accounts, for their rent.
func (d Deployment) BufferBytes() uint64  { return uint64(BufferHeader + d.bytes) }
func (d Deployment) ProgramBytes() uint64 { return programBytes }

// Begin makes the buffer.
func (d Deployment) Begin(rent uint64) []Instruction {
	return []Instruction{
		NewAccountAt(d.author, "b-"+d.label, LoaderProgram, rent, d.BufferBytes()),
		{Program: LoaderProgram, Data: []byte{0, 0, 0, 0}, Accounts: []AccountRef{{d.Buffer(), false, true}, {Address: d.author}}},
	}
}

// DeployPart is how many bytes of a program fit a transaction.
const DeployPart = 900

// Write puts a part of the program's bytes into the buffer.
func (d Deployment) Write(offset int, part []byte) Instruction {
	le := binary.LittleEndian
	data := le.AppendUint64(le.AppendUint32([]byte{1, 0, 0, 0}, uint32(offset)), uint64(len(part)))
	return Instruction{Program: LoaderProgram, Data: append(data, part...), Accounts: []AccountRef{{d.Buffer(), false, true}, {d.author, true, false}}}
}

// End makes the program of the buffer, whose rent becomes the program's.
func (d Deployment) End(rent uint64) ([]Instruction, error) {
	program := Address(d.Program())
	data, _, err := Derived(LoaderProgram, program[:])
	if err != nil {
		return nil, err
	}
	return []Instruction{
		NewAccountAt(d.author, "p-"+d.label, LoaderProgram, rent, programBytes),
		{
			Program: LoaderProgram, Data: binary.LittleEndian.AppendUint64([]byte{2, 0, 0, 0}, uint64(d.bytes)),
			Accounts: []AccountRef{{d.author, true, true}, {data, false, true}, {program, false, true}, {d.Buffer(), false, true},
				{Address: rentSysvar}, {Address: Clock}, {Address: SystemProgram}, {d.author, true, false}},
		},
	}, nil
}

// MintBytes is the size of a token's account.
const MintBytes = 82

// tokenLabel names an author's token.
const tokenLabel = "entrain-token"

// MintAt returns the token that an author makes with NewToken.
func MintAt(author Address) Address { return At(author, tokenLabel, TokenProgram) }

// NewToken makes a token without decimals, all of whose supply the author gets. Nobody can make
// more of it, or freeze it.
func NewToken(author Address, rent, supply uint64) ([]Instruction, error) {
	mint := MintAt(author)
	to, err := Purse(author, mint)
	if err != nil {
		return nil, err
	}
	purse, err := NewPurse(author, author, mint)
	// InitializeMint2: decimals, who makes tokens, who freezes (nobody). SetAuthority: nobody makes
	// tokens any more.
	begin, end := append(append([]byte{20, 0}, author[:]...), 0), []byte{6, 0, 0}
	return []Instruction{
		NewAccountAt(author, tokenLabel, TokenProgram, rent, MintBytes),
		{Program: TokenProgram, Data: begin, Accounts: []AccountRef{{mint, false, true}}},
		purse,
		{Program: TokenProgram, Data: binary.LittleEndian.AppendUint64([]byte{7}, supply), Accounts: []AccountRef{{mint, false, true}, {to, false, true}, {author, true, false}}},
		{Program: TokenProgram, Data: end, Accounts: []AccountRef{{mint, false, true}, {author, true, false}}},
	}, err
}

// Pay moves tokens between the purses of two owners. The first signs and makes the other's purse if
// it is not there.
func Pay(from, to, mint Address, amount uint64) ([]Instruction, error) {
	source, err := Purse(from, mint)
	if err != nil {
		return nil, err
	}
	target, err := Purse(to, mint)
	if err != nil {
		return nil, err
	}
	purse, err := NewPurse(from, to, mint)
	return []Instruction{purse, {
		Program: TokenProgram, Data: binary.LittleEndian.AppendUint64([]byte{3}, amount), // Transfer
		Accounts: []AccountRef{{source, false, true}, {target, false, true}, {from, true, false}},
	}}, err
}
