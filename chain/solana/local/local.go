// Package local is a cluster of Solana on this machine: litesvm, the virtual machine of Solana's
// validators without their network, behind the JSON-RPC that wallets and ledger/solana use. It is a
// process of Python, for trying things out and for tests.
package local

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/entrain-network/entrain/chain/solana"
)

//go:embed node.py
var script string

// Options describe a cluster.
type Options struct {
	Listen  string         // HOST:PORT of the JSON-RPC; "": a free port of this machine
	Program solana.Program // that is there from the beginning; zero: none
	Folder  string         // with the program's file, entrain.so
	Block   time.Duration  // between blocks; 0: as Solana
	Slots   int            // blocks for which a blockhash is good; 0: as on Solana
	Keep    string         // file from which a later start continues; "": none
}

// Programs returns the folder that ENTRAIN_SOLANA names, and an error that says what to do if it
// has no programs, or Python no solders.
func Programs(getenv func(string) string) (folder string, err error) {
	if folder = getenv("ENTRAIN_SOLANA"); folder == "" {
		return "", errors.New("ENTRAIN_SOLANA names no folder with the programs for Solana: build them with make solana, and set it to chain/solana/bin")
	}
	if folder, err = filepath.Abs(folder); err == nil {
		_, err = os.Stat(filepath.Join(folder, "entrain.so"))
	}
	if err != nil {
		return "", fmt.Errorf("ENTRAIN_SOLANA: %w; make solana builds it", err)
	}
	_, err = Python()
	return folder, err
}

// Python returns the Python that has solders.
var Python = sync.OnceValues(func() (string, error) {
	python, err := exec.LookPath("python3")
	if err != nil || exec.Command(python, "-c", "import solders.litesvm").Run() != nil {
		return "", errors.New("python3 with solders is missing: pip install solders")
	}
	return python, nil
})

// Command returns the command line of a cluster. The process prints one line, a JSON object whose
// "endpoint" is its URL, and ends when its standard input does.
func Command(o Options) (args []string, err error) {
	python, err := Python()
	if err != nil {
		return nil, err
	}
	args = []string{python, "-c", script}
	add := func(is bool, more ...string) {
		if is {
			args = append(args, more...)
		}
	}
	add(o.Listen != "", "--listen", o.Listen)
	add(o.Program != (solana.Program{}), "--program", solana.Address(o.Program).String(), filepath.Join(o.Folder, "entrain.so"))
	add(o.Block > 0, "--block", strconv.FormatInt(o.Block.Milliseconds(), 10))
	add(o.Slots > 0, "--slots", strconv.Itoa(o.Slots))
	add(o.Keep != "", "--keep", o.Keep)
	return args, nil
}
