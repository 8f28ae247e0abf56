package solana

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
)

// Accounts that deploying needs on every cluster.
var (
	loaderProgram = must("BPFLoaderUpgradeab1e11111111111111111111111")
	rentSysvar    = must("SysvarRent111111111111111111111111111111111")
)

// At returns the address of the account that an author makes under a label for an owner, a program.
// It needs no key: the author signs for it. The label has at most 32 bytes.
func At(author Address, label string, owner Address) Address {
	return sha256.Sum256(slices.Concat(author[:], []byte(label), owner[:]))
}

// newAccountAt makes the account At of n bytes, even where a stranger sent lamports before, to
// block the address.
func newAccountAt(author Address, label string, owner Address, lamports, n uint64) []Instruction {
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
	author          Address
	program, buffer string // labels
	bytes           int
}

// NewDeployment returns the deployment of a program's file. The same author and file have the same
// addresses, so that one that broke off goes on. Nobody else can compute them: the loader fails
// where somebody has sent lamports to the address of a program's bytes.
func NewDeployment(author Signer, file []byte) Deployment {
	label := func(of string) string {
		h := sha256.Sum256(file)
		secret := author.k.Sign("entrain/solana/"+of, h[:])
		h = sha256.Sum256(secret[:])
		return hex.EncodeToString(h[:16])
	}
	return Deployment{author.Address(), label("program"), label("buffer"), len(file)}
}

// Program is where the program will be, Buffer where its bytes are gathered.
func (d Deployment) Program() Program { return Program(At(d.author, d.program, loaderProgram)) }
func (d Deployment) Buffer() Address  { return At(d.author, d.buffer, loaderProgram) }

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
	return append(newAccountAt(d.author, d.buffer, loaderProgram, rent, d.BufferBytes()), Instruction{
		Program: loaderProgram, Data: []byte{0, 0, 0, 0}, Accounts: []AccountRef{{d.Buffer(), false, true}, {Address: d.author}},
	})
}

// DeployPart is how many bytes of a program fit a transaction.
const DeployPart = 900

// Write puts a part of the program's bytes into the buffer.
func (d Deployment) Write(offset int, part []byte) Instruction {
	le := binary.LittleEndian
	data := le.AppendUint64(le.AppendUint32([]byte{1, 0, 0, 0}, uint32(offset)), uint64(len(part)))
	return Instruction{Program: loaderProgram, Data: append(data, part...), Accounts: []AccountRef{{d.Buffer(), false, true}, {d.author, true, false}}}
}

// End makes the program of the buffer, whose rent becomes the program's.
func (d Deployment) End(rent uint64) ([]Instruction, error) {
	program := Address(d.Program())
	content, err := derived(loaderProgram, program[:])
	return append(newAccountAt(d.author, d.program, loaderProgram, rent, programBytes), Instruction{
		Program: loaderProgram, Data: binary.LittleEndian.AppendUint64([]byte{2, 0, 0, 0}, uint64(d.bytes)),
		Accounts: []AccountRef{{d.author, true, true}, {content, false, true}, {program, false, true}, {d.Buffer(), false, true},
			{Address: rentSysvar}, {Address: Clock}, {Address: SystemProgram}, {d.author, true, false}},
	}), err
}

// MintBytes is the size of a token's account, PurseBytes that of an owner's account for it.
const (
	MintBytes  = 82
	PurseBytes = 165
)

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
	return append(newAccountAt(author, tokenLabel, TokenProgram, rent, MintBytes),
		Instruction{Program: TokenProgram, Data: begin, Accounts: []AccountRef{{mint, false, true}}},
		purse,
		Instruction{Program: TokenProgram, Data: binary.LittleEndian.AppendUint64([]byte{7}, supply), Accounts: []AccountRef{{mint, false, true}, {to, false, true}, {author, true, false}}},
		Instruction{Program: TokenProgram, Data: end, Accounts: []AccountRef{{mint, false, true}, {author, true, false}}},
	), err
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
