package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	chain "github.com/entrain-network/entrain/chain/solana"
	"github.com/entrain-network/entrain/chain/solana/local"
	"github.com/entrain-network/entrain/chain/solana/svm"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/key/keyfile"
	"github.com/entrain-network/entrain/ledger/comet"
	"github.com/entrain-network/entrain/ledger/solana"
	"github.com/entrain-network/entrain/onchain"
)

// The scripts in testdata are sessions at a command line. Besides the commands of testscript and
// entrain itself they have those below.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"keep": scriptKeep, "chain": scriptChain, "member": scriptMember, "airdrop": scriptAirdrop,
			// Starts a cluster of Solana without the program in $PROGRAM.
			"solana": func(ts *testscript.TestScript, _ bool, _ []string) {
				ts.Setenv("CLUSTER", "solana:"+svm.Serve(t, chain.Program{}, 5*time.Millisecond, 150))
				ts.Setenv("PROGRAM", filepath.Join(svm.Folder(t), "entrain.so"))
			},
		},
		Condition: func(cond string) (bool, error) {
			if cond != "solana" {
				return false, fmt.Errorf("no such condition: %s", cond)
			}
			_, missing := local.Programs(os.Getenv)
			return missing == nil, nil
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

// scriptAirdrop gives KEYs SOL.
func scriptAirdrop(ts *testscript.TestScript, _ bool, args []string) {
	place, err := solana.ParsePlace(ts.Getenv("CLUSTER"))
	ts.Check(err)
	client, err := solana.NewClient(context.Background(), solana.Options{Endpoints: []string{place.Endpoint}})
	ts.Check(err)
	for _, text := range args {
		k, err := key.ParsePublic(text)
		ts.Check(err)
		ts.Check(client.Airdrop(context.Background(), k, 20e9))
	}
	ts.Check(client.Close())
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
