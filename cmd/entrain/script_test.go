package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key/keyfile"
	"github.com/entrain-network/entrain/ledger/comet"
	"github.com/entrain-network/entrain/onchain"
)

// The scripts in testdata are sessions at a command line. Besides the commands of testscript and
// entrain itself they have those below.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"keep": scriptKeep, "chain": scriptChain, "member": scriptMember,
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
			return nil
		},
		RequireExplicitExec: true,
	})
}

// scriptKeep sets the variable NAME to what the last command printed.
func scriptKeep(ts *testscript.TestScript, _ bool, args []string) {
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
}

// scriptChain starts the chain whose home is DIR, until the script ends.
func scriptChain(ts *testscript.TestScript, _ bool, args []string) {
	replica, err := comet.Open(ts.MkAbs(args[0]), nil, referees)
	ts.Check(err)
	ts.Setenv("ENTRAIN_CHAIN", replica.Endpoint())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- replica.Run(ctx) }()
	ts.Defer(func() {
		cancel()
		ts.Check(<-ended)
	})
}

// scriptMember makes the key in FILE a member of RUN, which does nothing.
func scriptMember(ts *testscript.TestScript, _ bool, args []string) {
	k, err := keyfile.Load(ts.MkAbs(args[1]), nil)
	ts.Check(err)
	client, err := onchain.Dial(context.Background(), []string{ts.Getenv("ENTRAIN_CHAIN")}, onchain.DialOptions{})
	ts.Check(err)
	defer client.Close()
	ts.Check(onchain.Submit(context.Background(), client.As(k), host.ToRun(args[0], coordinator.Join{})))
}
