// Package svm is Solana's virtual machine for tests: litesvm, the machine of Solana's validators
// without a network, in a process of Python that this package starts. It has no part in a program
// that is shipped.
package svm

import (
	"bufio"
	_ "embed"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/mr-tron/base58"

	"github.com/entrain-network/entrain/chain/solana"
	"github.com/entrain-network/entrain/chain/solana/local"
)

//go:embed svm.py
var script string

// Machine is a machine of its own. It ends with the test.
type Machine struct {
	t   testing.TB
	in  io.Writer
	out *bufio.Reader
}

// Start starts a machine with a program of chain/solana/build, named entrain or replay, at an
// address. It skips the test where ENTRAIN_SOLANA does not name the folder with the programs, or
// Python lacks solders.
func Start(t testing.TB, name string, program solana.Program) *Machine {
	t.Helper()
	folder := Folder(t)
	python, err := local.Python()
	if err != nil {
		t.Fatal(err)
	}
	in, out := start(t, []string{python, "-c", script})
	m := &Machine{t: t, in: in, out: out}
	m.ask(question{Op: "program", Key: solana.Address(program).String(), File: filepath.Join(folder, name+".so")}, nil)
	return m
}

// Serve starts a local cluster with the program at its address, unless that is zero, and returns
// the URL of its JSON-RPC. A blockhash is good for that number of blocks. It skips the test as
// Start does.
func Serve(t testing.TB, program solana.Program, block time.Duration, blocks int) string {
	t.Helper()
	args, err := local.Command(local.Options{Program: program, Folder: Folder(t), Block: block, Slots: blocks})
	if err != nil {
		t.Fatal(err)
	}
	_, out := start(t, args)
	var ready struct{ Endpoint string }
	line, err := out.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &ready)
	}
	if err != nil {
		t.Fatal("the node has ended: ", err)
	}
	return ready.Endpoint
}

// Folder returns the folder with the programs. It skips the test as Start does.
func Folder(t testing.TB) string {
	t.Helper()
	folder, err := local.Programs(os.Getenv)
	if err != nil {
		t.Skip("not tested on Solana's machine: ", err)
	}
	return folder
}

// start starts a process, which ends with the test.
func start(t testing.TB, args []string) (in io.Writer, out *bufio.Reader) {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		_ = cmd.Wait()
	})
	return stdin, bufio.NewReaderSize(stdout, 1<<16)
}

type question struct {
	Op       string `json:"op"`
	Key      string `json:"key,omitempty"`
	Owner    string `json:"owner,omitempty"`
	Lamports uint64 `json:"lamports,omitempty"`
	Data     string `json:"data,omitempty"`
	File     string `json:"file,omitempty"`
	Tx       string `json:"tx,omitempty"`
	Whole    bool   `json:"whole,omitempty"`
	Slot     uint64 `json:"slot,omitempty"`
	Unix     int64  `json:"unix,omitempty"`
	Hash     string `json:"hash,omitempty"`
}

func (m *Machine) ask(q question, answer any) {
	m.t.Helper()
	line, err := json.Marshal(q)
	if err != nil {
		m.t.Fatal(err)
	}
	if _, err := m.in.Write(append(line, '\n')); err != nil {
		m.t.Fatal("the machine has ended: ", err)
	}
	if line, err = m.out.ReadBytes('\n'); err != nil {
		m.t.Fatal("the machine has ended: ", err)
	}
	var failed struct{ Failed string }
	if err := json.Unmarshal(line, &failed); err != nil || failed.Failed != "" {
		m.t.Fatalf("%s: %v%s", q.Op, err, failed.Failed)
	}
	if answer != nil {
		if err := json.Unmarshal(line, answer); err != nil {
			m.t.Fatal(err)
		}
	}
}

// Account is an account as the machine has it.
type Account struct {
	Lamports uint64
	Owner    string
	Bytes    int
	Sum      string // SHA-256 of the data, in hexadecimal digits
	Data     string // base 64, from Whole
}

// Put makes or replaces an account.
func (m *Machine) Put(at, owner solana.Address, lamports uint64, data []byte) {
	m.t.Helper()
	m.ask(question{Op: "put", Key: at.String(), Owner: owner.String(), Lamports: lamports, Data: base64.StdEncoding.EncodeToString(data)}, nil)
}

// Get returns an account without its data; the zero Account if there is none.
func (m *Machine) Get(at solana.Address) (a Account) {
	m.t.Helper()
	m.ask(question{Op: "get", Key: at.String()}, &a)
	return a
}

// Data returns the data of an account.
func (m *Machine) Data(at solana.Address) []byte {
	m.t.Helper()
	var a Account
	m.ask(question{Op: "get", Key: at.String(), Whole: true}, &a)
	b, err := base64.StdEncoding.DecodeString(a.Data)
	if err != nil {
		m.t.Fatal(err)
	}
	return b
}

// Result is what became of a transaction.
type Result struct {
	Units uint64
	Logs  []string
	Error string // empty if it was applied
	Code  uint32 // a program's own code, if it refused
}

// Send runs a transaction.
func (m *Machine) Send(tx []byte) (r Result) {
	m.t.Helper()
	m.ask(question{Op: "send", Tx: base64.StdEncoding.EncodeToString(tx)}, &r)
	return r
}

// SendTo runs a transaction, and returns also what [Machine.Get] then returns of an account.
func (m *Machine) SendTo(at solana.Address, tx []byte) (Result, Account) {
	m.t.Helper()
	var r struct {
		Result
		Account Account
	}
	m.ask(question{Op: "send", Key: at.String(), Tx: base64.StdEncoding.EncodeToString(tx)}, &r)
	return r.Result, r.Account
}

// Clock sets what programs see of time and chance: the slot, the time in seconds since 1970, and
// the hash of the slot before.
func (m *Machine) Clock(slot uint64, unix int64, before [32]byte) {
	m.t.Helper()
	m.ask(question{Op: "clock", Slot: slot, Unix: unix, Hash: hex.EncodeToString(before[:])}, nil)
}

// Unlimited lifts the limit of compute units, to see what a message would need.
func (m *Machine) Unlimited() { m.ask(question{Op: "unlimited"}, nil) }

// Unsigned makes the machine take transactions of any age, repeated ones, and ones with bad
// signatures.
func (m *Machine) Unsigned() { m.ask(question{Op: "unsigned"}, nil) }

// Blockhash makes a new block and returns its hash, for transactions.
func (m *Machine) Blockhash() [32]byte {
	m.t.Helper()
	var a struct{ Hash string }
	m.ask(question{Op: "blockhash"}, &a)
	b, err := base58.Decode(a.Hash)
	if err != nil || len(b) != 32 {
		m.t.Fatalf("%q is not a hash of a block", a.Hash)
	}
	return [32]byte(b)
}
